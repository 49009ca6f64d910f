#include "runtime/comm/tcp/tcp.h"
#include "runtime/comm/tcp/mesh.h"
#include "runtime/comm/tcp/tcp_communicator.h"
#include "runtime/comm/tcp/watch.h"
#include "runtime/files/lock_file.h"
#include "runtime/process/file_limit.h"
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace zero::runtime {
namespace {

class TcpFactory final : public CommunicatorFactory {
public:
  explicit TcpFactory(const Membership &membership)
      : self(membership.rank), meeting(meet(membership)), known(meeting.peers, self), meshes(meeting, known, self),
        watch(meshes.connect(), known, self) {}

  int rank() const override { return self; }
  int world() const override { return static_cast<int>(meeting.peers.size()); }
  Neighbours neighbours() const override { return known.neighbours(); }
  const Peers *peers() const override { return &known; }
  std::unique_ptr<Communicator> create() override { return std::make_unique<TcpCommunicator>(meshes.connect(), known, self); }
  void closeListeners() override { meshes.close(); }

  void sayLast(const std::string &line) override { watch.sayLast(line); }
  void abort() override {
    std::fflush(nullptr);
    removeLockFiles();
    watch.abort();
    std::_Exit(1);
  }
  void awaitAbort() override {
    std::fflush(nullptr);
    std::this_thread::sleep_for(std::chrono::seconds(10)); // the watch ends the process before
    std::_Exit(1);
  }
  void finalize() override { watch.leave(); }

private:
  int self;
  Meeting meeting;
  Peers known;
  Meshes meshes;
  Watch watch;
};

} // namespace

std::unique_ptr<CommunicatorFactory> connectTcp(const Membership &membership) {
  raiseFileLimit(); // each rank has a connection to every other one, several times
  return std::make_unique<TcpFactory>(membership);
}

} // namespace zero::runtime
