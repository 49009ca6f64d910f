//===- too_large.h - why a plan does not fit ----------------------------------------------------------===//
#pragma once
#include "passes/pipeline/search.h"
#include "runtime/plan/plan.pb.h"

namespace zero::pipeline {

/// Why the plan does not fit into the budgets: for the device a smallest set of what must exist at once, and what would help. Empty if it
/// does. What the search has tried is not advised.
std::string tooLarge(const plan::Plan &plan, const Question &question);

} // namespace zero::pipeline
