//===- processors.h - how many processors this process may use -----------------------------------------===//
#pragma once
#include <string>

namespace zero::runtime {

/// Those that it may run on.
unsigned boundProcessors();

/// By the set of processors it is bound to and by the time its control groups are given, rounded up; at least 1.
/// `root`: where /proc and /sys are, "" for the system's.
unsigned processors(const std::string &root = "");

} // namespace zero::runtime
