//===- judge.h - re-checks a finished plan without trusting who made it ------------------------------===//
// Four promises, each with its own message:
//   places   a buffer lies inside its arena, is only touched in its life, and shares no byte with another live one
//   order    waits form no cycle, and every two conflicting accesses of different lanes are ordered by happens-before
//   values   what a step reads through a buffer was last written through that buffer
//   ranks    every rank calls the same collectives of a lane in the same order
// Happens-before is computed with vector clocks: one tick counter per lane (Fidge 1988, Mattern 1989).
#pragma once
#include "runtime/judge/problem.h"

namespace zero::judge {

/// Sentences, one per broken promise found (at most `most`); empty when the program holds.
std::vector<std::string> check(const Problem &problem, size_t most = 8);

/// The same program on several ranks: collectives agree.
std::vector<std::string> checkRanks(const std::vector<Problem> &ranks);

/// Every program of a plan, on the ranks whose addresses differ in kind (first, second, last).
std::vector<std::string> checkPlan(const plan::Plan &plan);

} // namespace zero::judge
