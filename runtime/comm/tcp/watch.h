// Over connections of its own, a thread of each rank watches over the life of all others: while it runs, none can end and leave
// the others waiting, whether they wait for a message, compute or write a file. It also carries the words that ranks say about their
// end: that the run is aborted, that it is because another rank has ended, and goodbye. Ranks that were started one by one each have a
// terminal or a log of their own, so each of them says why it ends, if only which other one has said it.
#pragma once
#include "runtime/comm/peers.h"
#include "runtime/comm/tcp/socket.h"
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace zero::runtime {

class Watch {
public:
  // `links`: a connection to each other rank, which this watch alone uses.
  Watch(std::vector<Socket> links, const Peers &peers, int self);
  ~Watch();

  // Prints the line, unless this rank has said such a line already (communicator.h).
  void sayLast(const std::string &line);
  // Tells all others to end at once, and returns.
  void abort();
  // Says goodbye and waits until all others have done so; throws TimedOut if one never does.
  void leave();

private:
  using Clock = std::chrono::steady_clock;
  void run();
  void listen(int peer);
  void ended(int peer, bool silently);
  [[noreturn]] void endRun(const std::string &why);
  std::string whyLost() const;
  void tell(char word);

  std::vector<Socket> links;
  std::vector<std::atomic<bool>> away; // ranks that have said goodbye
  const Peers &peers;
  int self;
  Socket wake;               // readable when the thread shall stop
  std::vector<bool> silent;  // said goodbye or ended
  int lost = -1;             // the rank whose end ends the run
  bool vanished = false;     // it, or its machine, has not even said that it has ended
  Clock::time_point speakAt; // when this rank says so: the word of another one may be under way, which knows more
  std::mutex speaking;
  bool spoken = false; // the last line
  std::atomic<bool> aborting{false};
  std::atomic<int> present; // others that have not said goodbye
  std::thread thread;
};

} // namespace zero::runtime
