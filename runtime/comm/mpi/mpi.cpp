#include "runtime/comm/mpi/mpi.h"
#include "runtime/base/error.h"
#include "runtime/comm/collectives.h"
#include "runtime/comm/patience.h"
#include "runtime/files/lock_file.h"
#include "runtime/process/addresses.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mpi.h>
#include <thread>
#include <vector>

namespace zero::runtime {
namespace {

// Open MPI 4.1 maps 26 MiB where threads share a heap (addresses.h), and does not live without them.
constexpr uint64_t kMpiBytes = uint64_t(40) << 20;

std::atomic<uint64_t> messageLimit{uint64_t(1) << 30};

void check(int status, const char *what, int rank) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw Error(std::string(what) + " failed on rank " + std::to_string(rank) + ": " + std::string(text, static_cast<size_t>(length)) +
              "; did another rank end?");
}

class MpiCommunicator final : public MessageCommunicator {
public:
  MpiCommunicator(const Peers &peers, int rank, int world) : MessageCommunicator(rank, world), patience(peers, rank) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "making a communicator", 0);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    requests.reserve(static_cast<size_t>(size) * 4);
    senders.reserve(static_cast<size_t>(size) * 4);
  }
  ~MpiCommunicator() override {
    // After a failure messages may still be under way; the process is about to be aborted.
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (requests.empty() && !finalized) MPI_Comm_free(&comm);
  }

private:
  // `sender`: the rank a message comes from, -1 - receiver for one that goes out.
  template <typename Pointer, typename Call> void inPieces(Pointer *data, uint64_t bytes, int sender, Call &&call) {
    uint64_t limit = messageLimit.load(std::memory_order_relaxed);
    for (uint64_t offset = 0; offset < bytes; offset += limit) {
      requests.push_back(MPI_REQUEST_NULL);
      senders.push_back(sender);
      call(data + offset, static_cast<int>(std::min(limit, bytes - offset)), &requests.back());
    }
  }

  void receive(void *data, uint64_t bytes, int peer) override {
    inPieces(static_cast<char *>(data), bytes, peer, [&](char *piece, int count, MPI_Request *request) {
      check(MPI_Irecv(piece, count, MPI_BYTE, peer, 0, comm, request), "receiving", self);
    });
  }

  void send(const void *data, uint64_t bytes, int peer) override {
    inPieces(static_cast<const char *>(data), bytes, -1 - peer, [&](const char *piece, int count, MPI_Request *request) {
      check(MPI_Isend(piece, count, MPI_BYTE, peer, 0, comm, request), "sending", self);
    });
  }

  void begin(const char *) override {} // Isend and Irecv have

  // MPI's own wait would hold a processor that the compute threads need, and could not be interrupted.
  void complete(const char *what) override {
    auto begin = Patience::Clock::now();
    for (;;) {
      int done = 0;
      check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), what, self);
      if (done) break;
      checkInterrupted(what);
      auto now = Patience::Clock::now();
      if (now - begin < std::chrono::microseconds(50)) {
        std::this_thread::yield();
      } else {
        patience.wait(begin, now, what, [this] { return awaited(); });
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
    patience.done(begin, what);
    requests.clear();
    senders.clear();
  }

  // The ranks whose messages have not come; if all have, those that have not taken ours.
  Awaited awaited() {
    std::set<int> late, untaken;
    uint64_t left = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      int done = 0;
      check(MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE), "waiting", self); // a request that is done stays so
      left += !done;
      if (!done && senders[i] >= 0) late.insert(senders[i]);
      if (!done && senders[i] < 0) untaken.insert(-1 - senders[i]);
    }
    return {late.empty() ? untaken : late, left};
  }

  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<MPI_Request> requests;
  std::vector<int> senders; // of each request; -1 - receiver for what this rank sends
  Patience patience;
};

class MpiFactory final : public CommunicatorFactory {
public:
  MpiFactory() {
    int provided = 0;
    requireAddresses("MPI", kMpiBytes);
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS) throw Error("MPI could not be started");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (provided < MPI_THREAD_MULTIPLE)
      throw Error(
          "this MPI does not allow several threads to communicate (MPI_THREAD_MULTIPLE); use one that does, for example Open MPI 4");
    std::vector<Peer> all(static_cast<size_t>(size));
    Peer mine = Peers::self();
    check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD), "meeting the other ranks", self);
    known = std::make_unique<Peers>(std::move(all), self);
    base = std::make_unique<MpiCommunicator>(*known, self, size);
  }
  int rank() const override { return self; }
  int world() const override { return size; }
  Neighbours neighbours() const override { return known->neighbours(); }
  const Peers *peers() const override { return known.get(); }
  std::unique_ptr<Communicator> create() override {
    base->barrier(); // making a communicator waits for all ranks inside MPI, where nobody could say for whom
    return std::make_unique<MpiCommunicator>(*known, self, size);
  }
  void abort() override {
    std::fflush(nullptr);
    removeLockFiles();
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::_Exit(1);
  }
  void awaitAbort() override {
    std::fflush(nullptr);
    std::this_thread::sleep_for(std::chrono::seconds(10));
    std::_Exit(1);
  }
  void finalize() override {
    base->barrier(); // as in create()
    MPI_Finalize();
  }

private:
  int self = 0, size = 1;
  std::unique_ptr<Peers> known;
  std::unique_ptr<MpiCommunicator> base;
};

} // namespace

std::unique_ptr<CommunicatorFactory> connectMpi() { return std::make_unique<MpiFactory>(); }

void setMpiMessageLimit(uint64_t bytes) { messageLimit.store(bytes); }

} // namespace zero::runtime
