// Collectives between the ranks of a run. Every rank makes the same calls on a communicator in the same order; two
// communicators are independent of each other (each lane has its own). Sums are made in rank order 0..N-1 for every
// element, whatever the algorithm, so that all ZeRO stages and schedules give the same bits.
//
// A peer that dies or fails must not leave the others waiting: an implementation ends the whole run.
#pragma once
#include "runtime/base/error.h"
#include "runtime/comm/neighbours.h"
#include <cstdint>
#include <memory>
#include <string>

namespace zero::runtime {

// Room for what other ranks send towards a sum: `slice` elements of each rank, world * slice in all. A longer sum goes slice by slice, so
// that the room need not grow with what is summed; bits do not depend on it. All ranks must give the same slice. Not used in a world of
// one.
struct Staging {
  void *room = nullptr; // of what is sent
  uint64_t slice = 0;   // elements, > 0
};

// What ranks send each other towards a sum. The sum itself is f32 and made in f32: what is sent as bf16 is widened and then added.
enum class WireType { F32, Bf16 };

class Communicator {
public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;

  // dst[r * bytes ...] = src of rank r. src may be dst + rank * bytes (in place).
  virtual void allGather(const void *src, void *dst, uint64_t bytes) = 0;
  // dst = sum over ranks r, in rank order, of src_r[rank * count ...]. dst may be src + rank * count if that is f32, else they are apart.
  virtual void reduceScatter(WireType type, const void *src, float *dst, uint64_t count, Staging staging) = 0;
  // data = sum over ranks, in rank order; the same bits everywhere.
  virtual void allReduce(float *data, uint64_t count, Staging staging) = 0;
  virtual void barrier() = 0;
  // Copies `bytes` from the root to all others.
  virtual void broadcast(void *data, uint64_t bytes, int root) = 0;

  // From any thread: calls under way and all later ones throw. For an engine whose other lane failed.
  virtual void interrupt() = 0;

  // Bytes this rank has sent to others so far.
  virtual uint64_t bytesSent() const = 0;
};

class Peers;

// The run's membership: made once in main, before any lane starts.
class CommunicatorFactory {
public:
  virtual ~CommunicatorFactory() = default;
  virtual int rank() const = 0;
  virtual int world() const = 0;
  virtual Neighbours neighbours() const = 0;
  // Who the ranks are, as long as the factory is there; null in a world of one.
  virtual const Peers *peers() const { return nullptr; }
  // Collective over all ranks, in the same order everywhere.
  virtual std::unique_ptr<Communicator> create() = 0;
  // No communicator will be made any more: a factory that listens for other ranks stops, so that a run has no open ports.
  virtual void closeListeners() {}
  // Prints why this rank ends the run: the line is the last one of a run that fails. Nothing, if such a line has been printed already:
  // where no launcher ends the other ranks, each of them says which one ended the run.
  virtual void sayLast(const std::string &line);
  // Ends the whole run at once with exit status 1; call after sayLast(). In a world of one it simply exits.
  [[noreturn]] virtual void abort() = 0;
  // For ranks that leave the sentence to another one, which is about to call abort(): waits to be ended with it, so
  // that no launcher takes this rank's end for the reason and cuts the sentence off.
  [[noreturn]] virtual void awaitAbort() = 0;
  // After an orderly end: waits for the others and leaves. Throws TimedOut if they do not come to their end.
  virtual void finalize() = 0;
};

// Thrown by a collective in which nothing has moved for as long as --timeout allows. It is thrown on all ranks that wait, at about the
// same time, and each of them says for whom.
class TimedOut : public Error {
public:
  using Error::Error;
};

// What connect() throws where ranks must find each other by themselves: each rank says its own reason.
class RankError : public Error {
public:
  using Error::Error;
};

// Reads how the program was started: by mpirun or srun, with RANK, WORLD_SIZE and MASTER_ADDR in the environment, or alone. Throws
// a sentence for what it cannot serve.
std::unique_ptr<CommunicatorFactory> connect();

// For what goes wrong before or in connect(), on all ranks alike: prints `program: sentence` on the launcher's first rank
// and returns; the other ranks say nothing and return a little later.
void complainOnce(const std::string &line);

} // namespace zero::runtime
