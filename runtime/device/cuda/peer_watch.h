// What a rank looks at while its GPU waits for those of other ranks: whether their processes are still there. NCCL sees that a connection
// broke, and neither that a process was stopped nor which one it was.
#pragma once
#include "runtime/comm/patience.h"
#include "runtime/comm/peers.h"
#include <optional>

namespace zero::runtime::cuda {

class PeerWatch {
public:
  // `peers` may be null: then nothing is known of them. `limits` outlive it.
  PeerWatch(const Peers *peers, int self, int world, const PatienceLimits &limits = usualPatience());
  PeerWatch(const Peers *, int, int, PatienceLimits &&) = delete;

  // From the loop of a wait that began then; throws as Patience::wait() does.
  void look(Patience::Clock::time_point begin);
  // Whether the process of another rank has ended or is stopped: then look() will say which, if nobody else ends the run before.
  bool missesAnyone() const;

private:
  Awaited suspects(Patience::Clock::time_point begin);

  const Peers *peers;
  int self, world;
  const PatienceLimits &limits;
  std::optional<Patience> patience;
};

} // namespace zero::runtime::cuda
