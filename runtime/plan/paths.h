// Names of files: those a plan keeps of its model and weights, and those under which results appear.
#pragma once
#include "runtime/plan/plan.pb.h"
#include <string>

namespace zero::plan {

// In memory the names of the model and of the weights' files can be opened as they stand. In a plan's file a name inside the
// plan's own folder is relative to that folder, so that both can be moved together, and every other name is absolute, so
// that the plan can be run from anywhere. `path` is where the plan is written to or was read from.
void storeNames(Plan &plan, const std::string &path);
void restoreNames(Plan &plan, const std::string &path);

// The name that a new file is to be renamed to if it shall appear as `path`: behind symbolic links, which stay. Throws a
// sentence if something else than a regular file is there: a device or a pipe cannot be replaced, only destroyed.
std::string replaceable(const std::string &path);

} // namespace zero::plan
