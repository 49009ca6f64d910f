// Whether the files a plan was compiled from are still the same. Parameters are read from the places the plan names, so another
// file under the same name would be read, and written back, as nonsense without a word.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zero::plan {

// The model and every file that holds weights of it. Made once: some models keep each of thousands of weights in its own file.
class ModelFiles {
public:
  explicit ModelFiles(const Plan &plan);

  // Named as the plan names them, in alphabetical order.
  std::vector<std::string> names() const;

  // Throws a sentence if this file has another size or other bytes around the weights than `plan.files` recorded. Other weights
  // in the same places are welcome. A file that was not recorded is not checked.
  void check(const std::string &name) const;

  // For `plan.files`: all of them as they are now. Throws a sentence if one cannot be read.
  std::vector<ModelFile> record() const;

private:
  struct Contents {
    std::vector<std::pair<uint64_t, uint64_t>> weights; // [begin, end), in the file's order
    ModelFile recorded;                                 // without a name if there is none
  };
  std::map<std::string, Contents> files;
};

} // namespace zero::plan
