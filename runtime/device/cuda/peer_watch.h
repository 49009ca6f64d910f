// What a rank looks at while its GPU waits for those of other ranks: whether their processes are still there. NCCL sees that a connection
// broke, and neither that a process was stopped nor which one it was.
#pragma once
#include "runtime/comm/patience.h"
#include "runtime/comm/peers.h"
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace zero::runtime::cuda {

struct PeerWatchLimits {
  PatienceLimits patience;
  int stoppedLooks = 15; // in a row, one a second, that find a rank stopped: then it is given up
};

class PeerWatch {
public:
  // `peers` may be null: then nothing is known of them.
  PeerWatch(const Peers *peers, int self, int world, const PeerWatchLimits &limits);

  // From the loop of a wait that began then. Throws a sentence that names a rank which has ended, or is stopped; and TimedOut if nothing
  // has come for as long as --timeout allows.
  void look(Patience::Clock::time_point begin);
  // Whether the process of another rank has ended or is stopped: then look() will say which, if nobody else ends the run before.
  bool missesAnyone() const;

private:
  Awaited suspects(Patience::Clock::time_point begin);

  const Peers *peers;
  int self, world;
  PeerWatchLimits limits;
  std::optional<Patience> patience;
  std::vector<int> stopped; // of each rank: looks in a row
};

} // namespace zero::runtime::cuda
