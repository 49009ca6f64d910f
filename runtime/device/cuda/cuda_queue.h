// The submissions to the GPU. Lanes are streams and ticks are events: submit() puts a whole program into the streams, in an order in which
// whatever is waited for has been put there before, and returns; so lanes run on from one program into the next, and nothing on the host
// can hold up a stream but a disk. An event is recorded for a tick that somebody waits for.
#pragma once
#include "runtime/device/cuda/graphs.h"
#include "runtime/device/cuda/timeline.h"
#include "runtime/device/device.h"
#include <array>
#include <optional>
#include <vector>

namespace zero::runtime::cuda {

class CudaQueue {
public:
  // `pointer` says where addresses of transfers are. `failure` is the one that DiskCalls tell, and must outlive the queue. `graphs`:
  // programs are made graphs when they are submitted for the second time, and where no step of theirs is looked at they run as these.
  CudaQueue(std::vector<CudaProgram> programs, std::function<Pointer(Address)> pointer, const Issuer &issuer, Failure &failure,
            bool graphs);
  ~CudaQueue(); // after what was submitted
  CudaQueue(const CudaQueue &) = delete;
  CudaQueue &operator=(const CudaQueue &) = delete;

  void submit(const Submission &submission);
  Completion finish();

private:
  struct Slot {
    Submission submission;
    const CudaProgram *program = nullptr;
    Clock::time_point submitted;
    std::array<std::vector<OwnedEvent>, kLanes> ticks; // null: of those that nobody waits for
  };
  void makeEvents();
  const Graphs *graphsFor(const Submission &submission);
  void putInputs(Slot &slot, const Slot &before, const CudaEntry *entry);
  void putOperation(Slot &slot, const CudaOperation &operation);
  void putGraph(Slot &slot, const Graphs::Graph &graph);
  void recordTick(const Slot &slot, const CudaOperation &operation);
  void putResults(Slot &slot);
  void copy(Pointer to, Pointer from, uint64_t bytes);
  void showUpdate(const Slot &slot, const CudaOperation &operation);
  Completion completionOf(Slot &slot);
  void await(const OwnedEvent &event) const;
  void drain() noexcept;
  void wait(int lane, const Slot &slot, const LaneWait &wait);
  void wait(int lane, EventHandle event);
  void record(const OwnedEvent &event, int lane);
  const CudaEntry *entryOf(const CudaProgram &program) const;
  StreamHandle stream(int lane) const { return streams[static_cast<size_t>(lane)].get(); }
  Slot &slotOf(uint64_t number) { return slots[number % kSubmissions]; }

  const Driver &driver;
  std::vector<CudaProgram> programs;
  std::vector<std::optional<Graphs>> graphs; // of each program that has run
  bool useGraphs;
  std::function<Pointer(Address)> pointer;
  Issuer issuer;
  Failure &failure;
  std::array<OwnedStream, kLanes> streams; // null: not in use
  std::array<Slot, kSubmissions> slots;
  std::optional<Timeline> timeline;
  uint64_t submitted = 0, finished = 0; // numbers of submissions, which count from 1
  bool failed = false;                  // and said so
  OwnedEvent shown;                     // what an update waits for that is to be shown first
};

} // namespace zero::runtime::cuda
