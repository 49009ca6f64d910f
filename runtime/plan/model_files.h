// Whether the files a plan was compiled from are still the same. Parameters are read from the places the plan names, so another
// file under the same name would be read, and written back, as nonsense without a word.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <string>

namespace zero::plan {

// Fills `plan.files` with the model and every file of weights, as they are now. One that cannot be read is left out.
void recordFiles(Plan &plan);

// Throws a sentence if this file, named as the plan names it, has another size or other bytes around the weights than recorded.
// Other weights in the same places are welcome.
void checkFile(const Plan &plan, const std::string &file);

} // namespace zero::plan
