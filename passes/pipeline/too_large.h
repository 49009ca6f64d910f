//===- too_large.h - why a plan does not fit ----------------------------------------------------------===//
#pragma once
#include "passes/pipeline/search.h"
#include "runtime/plan/plan.pb.h"

namespace zero::pipeline {

/// Why the plan does not fit into the budgets: for each tier that is too small the state that is too much for it, or a smallest set of what
/// must exist at once beside the state, and what would help. Empty if it does fit. What the search has tried is not advised.
std::string tooLarge(const plan::Plan &plan, const Question &question);

} // namespace zero::pipeline
