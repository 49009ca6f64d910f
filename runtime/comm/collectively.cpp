#include "runtime/comm/collectively.h"
#include "runtime/process/addresses.h"
#include <algorithm>

namespace zero::runtime {

std::vector<uint8_t> everyones(Communicator &communicator, uint8_t mine) {
  std::vector<uint8_t> all(static_cast<size_t>(communicator.world()));
  communicator.allGather(&mine, all.data(), 1);
  return all;
}

void collectively(Communicator &communicator, const std::function<void()> &work) {
  std::string sentence;
  try {
    work();
  } catch (const std::exception &error) {
    sentence = sentenceOf(error);
  }
  std::vector<uint8_t> failed = everyones(communicator, !sentence.empty());
  auto first = std::find(failed.begin(), failed.end(), 1);
  if (first == failed.end()) return;
  auto speaker = static_cast<int>(first - failed.begin());
  if (speaker == communicator.rank()) throw CollectiveError(speaker == 0 ? sentence : "rank " + std::to_string(speaker) + ": " + sentence);
  throw ReportedElsewhere();
}

} // namespace zero::runtime
