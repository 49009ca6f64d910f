// What the ranks of a run know and strangers do not.
#pragma once
#include <string>

namespace zero::runtime {

// ZERORUN_SECRET of the environment, or the contents of the file that ZERORUN_SECRET_FILE names, without white space at their ends;
// empty if neither is set. Throws a sentence for one that is too short, both at once, or a file that others may read.
std::string secretFromEnvironment();

} // namespace zero::runtime
