// MLIR's libraries are built with NDEBUG, and how much memory a pass's statistics take depends on it: a build with assertions
// must read that header as the libraries did. Everything else keeps its assertions.
#ifndef NDEBUG
#define NDEBUG
#include "llvm/ADT/Statistic.h"
#undef NDEBUG
#include <cassert>
static_assert(sizeof(llvm::Statistic) == sizeof(llvm::NoopStatistic));
#endif
