//===- evaluate_pass.h - nn-evaluate, a pass for tests --------------------------------------------===//
#pragma once

namespace zero::nn {
/// Registers `nn-evaluate`, which runs a function with the reference interpreter and prints what comes out.
void registerEvaluatePass();
} // namespace zero::nn
