//===- judge.h - re-checks a finished plan without trusting who made it ------------------------------===//
// Eleven promises, each with its own message:
//   places   a buffer lies inside its arena and is aligned as that asks, is only touched in its life, and shares no byte with another live
//   order    waits form no cycle, and every two conflicting accesses of different lanes are ordered by happens-before
//   values   what a step reads through a buffer was last written through that buffer, every step writes something that is read or
//            outlives the program, and the results are written
//   ranks    every rank calls the same collectives of a lane in the same order
//   owners   what outlives a program is written by those alone whose it is, and is filled before it is read
//   sums     micro-steps leave sums of all gradients, and use all that earlier ones have left
//   norm     is that of the gradients that updates use, once each, and updates that wait for it read it
//   updates  every trainable bucket changes once in a step, after all that reads its old parameters, and on every rank
//   rows     what updates set apart of a table is updated after them and comes to its place, and nothing overwrites it there
//   entries  the same order holds where lanes run on from one program into the next; the one before that is complete by then
//   tiers    what rests on host or disk is fetched before it is used there, and what was changed of it returns
// Happens-before is computed with vector clocks: one tick counter per lane (Fidge 1988, Mattern 1989).
#pragma once
#include "runtime/judge/order.h"
#include "runtime/judge/problem.h"

namespace zero::judge {

/// Sentences, one per broken promise found (at most `most`); none when the program holds. And what its steps leave, if they can all run.
struct Judged {
  std::vector<std::string> found;
  HappensBefore order;
  std::vector<History> reach; // by arena, of all ranks
};
Judged judge(const Problem &problem, size_t most = 8);

/// Two programs that hold, one right after the other with lanes running on between them as the entry of the later one says: every two
/// conflicting accesses are ordered across the boundary too.
std::vector<std::string> checkEntry(const Problem &before, Judged &left, const Problem &next, const Judged &judged, const Entry &entry,
                                    size_t most = 8);

/// All of a list of ranks or of programs in text form.
std::vector<std::string> checkAll(const std::vector<Problem> &problems);

/// The same program on several ranks: collectives agree.
std::vector<std::string> checkRanks(const std::vector<Problem> &ranks);

/// The updates of a program of a plan.
std::vector<std::string> checkUpdates(const plan::Plan &plan, int program);

/// Who writes what outlives the programs of a plan.
std::vector<std::string> checkOwners(const plan::Plan &plan);

/// The sums of gradients that a micro-step uses and leaves.
std::vector<std::string> checkGradientSums(const plan::Plan &plan, int program);

/// The norm of the gradients, and the updates that wait for it.
std::vector<std::string> checkNorm(const plan::Plan &plan, int program);

/// The rows of tables that a program updates apart from the rest.
std::vector<std::string> checkRows(const plan::Plan &plan, int program);

/// What a program fetches from other tiers and brings back to them.
std::vector<std::string> checkTiers(const plan::Plan &plan, int program);

/// Every program of a plan, on the ranks whose addresses differ in kind (the first, its neighbour along each axis, the last).
std::vector<std::string> checkPlan(const plan::Plan &plan);

} // namespace zero::judge
