//===- optimizer.cpp - the optimizer as kernels ------------------------------------------------------===//
#include "passes/train/optimizer.h"
#include "compiler/nn/kernel.h"
#include <limits>

using namespace mlir;

namespace zero::train {
namespace {

/// Positions in the hyper tensor; HyperIndex of runtime/plan/plan.proto is the contract.
enum Hyper { Lr, Beta1, Beta2, Eps, WeightDecay, BiasCorrection1, BiasCorrection2, Momentum, Clip, InverseLossScale };

struct Kernel : nn::KernelBuilder {
  int64_t rows, cols;

  /// `matrices` arguments of [rows, cols], then `others`.
  Kernel(ModuleOp module, StringRef name, int64_t rows, int64_t cols, int64_t matrices, ArrayRef<Type> others)
      : KernelBuilder(module, name, argumentsOf(module, rows, cols, matrices, others)), rows(rows), cols(cols) {}
  /// One number for every element.
  Value spread(Value one) { return b.broadcast(one, {rows, cols}, {1}); }

private:
  static SmallVector<Type> argumentsOf(ModuleOp module, int64_t rows, int64_t cols, int64_t matrices, ArrayRef<Type> others) {
    SmallVector<Type> types(matrices, RankedTensorType::get({rows, cols}, Float32Type::get(module.getContext())));
    llvm::append_range(types, others);
    return types;
  }
};

/// m and v are the moments, g the gradient; see torch.optim.AdamW (decay is decoupled: it scales the parameter first).
void adamw(Kernel &k, ArrayRef<Value> h, Value g, SmallVectorImpl<Value> &results) {
  auto &b = k.b;
  Value one = b.like(h[Lr], 1), p = k.arg(0), m = k.arg(2), v = k.arg(3);
  Value keep = b.sub(one, b.mul(h[Lr], h[WeightDecay]));
  Value step = b.div(h[Lr], h[BiasCorrection1]);
  Value unbias = k.builder.create<nn::RsqrtOp>(b.loc, h[BiasCorrection2]); // 1 / sqrt(bias correction 2)
  m = b.add(m, b.mul(k.spread(b.sub(one, h[Beta1])), b.sub(g, m)));
  v = b.add(b.mul(k.spread(h[Beta2]), v), b.mul(k.spread(b.sub(one, h[Beta2])), b.mul(g, g)));
  Value root = k.builder.create<nn::SqrtOp>(b.loc, v);
  Value denominator = b.add(b.mul(root, k.spread(unbias)), k.spread(h[Eps]));
  p = b.sub(b.mul(p, k.spread(keep)), b.div(b.mul(k.spread(step), m), denominator));
  results.append({p, m, v});
}

/// torch.optim.SGD: decay joins the gradient; a momentum that starts at 0 gives the first step its gradient.
void sgd(Kernel &k, ArrayRef<Value> h, Value g, SmallVectorImpl<Value> &results) {
  auto &b = k.b;
  Value p = k.arg(0), momentum = k.arg(2);
  g = b.add(g, b.mul(k.spread(h[WeightDecay]), p));
  momentum = b.add(b.mul(k.spread(h[Momentum]), momentum), g);
  p = b.sub(p, b.mul(k.spread(h[Lr]), momentum));
  results.append({p, momentum});
}

} // namespace

func::FuncOp buildUpdateKernel(ModuleOp module, StringRef name, OptimizerKind kind, int64_t rows, int64_t cols, const UpdateForm &form) {
  Type f32 = Float32Type::get(module.getContext());
  SmallVector<Type> others{RankedTensorType::get({16}, f32)};
  if (form.clips) others.push_back(RankedTensorType::get({1}, f32));
  int64_t matrices = 2 + statesOf(kind);
  Kernel k(module, name, rows, cols, matrices, others);
  auto &b = k.b;
  SmallVector<Value> h, results;
  for (int64_t i = 0; i <= (kind == OptimizerKind::AdamW ? BiasCorrection2 : Momentum); ++i)
    h.push_back(b.slice(k.arg(matrices), {i}, {1}, {1}));
  Value g = k.arg(1), raw = g;
  if (form.clips) { // min(1, clip / (norm + 1e-6))
    Value norm = k.builder.create<nn::SqrtOp>(b.loc, k.arg(matrices + 1));
    Value clip = b.slice(k.arg(matrices), {Clip}, {1}, {1});
    Value inverse = form.scaled ? b.slice(k.arg(matrices), {InverseLossScale}, {1}, {1}) : Value();
    if (inverse) norm = b.mul(norm, inverse);
    Value factor = b.div(clip, b.add(norm, b.like(norm, 1e-6)));
    factor = k.builder.create<nn::MinOp>(b.loc, factor, b.like(factor, 1));
    g = b.mul(g, k.spread(inverse ? b.mul(factor, inverse) : factor));
  }
  kind == OptimizerKind::AdamW ? adamw(k, h, g, results) : sgd(k, h, g, results);
  if (form.scaled) { // what is kept lies where it is read: parameters, and states after the gradient
    Value norm2 = k.arg(matrices + 1);
    Value finite = k.spread(b.compare(nn::Predicate::le, norm2, b.like(norm2, std::numeric_limits<float>::max())));
    for (auto [i, changed] : llvm::enumerate(results)) changed = b.select(finite, changed, k.arg(i ? i + 1 : 0));
  }
  if (form.compute) results.push_back(b.cast(results[0], form.compute));
  if (!form.clips && !form.apart) results.push_back(b.sumLast(b.mul(raw, raw)));
  auto function = k.finish(results);
  // Slices of hyper-parameters that this optimizer has no use for.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(function.getBody().front())))
    if (isOpTriviallyDead(&op)) op.erase();
  return function;
}

func::FuncOp buildSumSquaresKernel(ModuleOp module, StringRef name, int64_t rows, int64_t cols) {
  Kernel k(module, name, rows, cols, 1, {});
  return k.finish(k.b.sumLast(k.b.mul(k.arg(0), k.arg(0))));
}

func::FuncOp buildRoundKernel(ModuleOp module, StringRef name, int64_t rows, int64_t cols, Type type) {
  Kernel k(module, name, rows, cols, 1, {});
  return k.finish(k.b.cast(k.arg(0), type));
}

func::FuncOp buildAccumulateKernel(ModuleOp module, StringRef name, int64_t rows, int64_t cols) {
  Kernel k(module, name, rows, cols, 2, {});
  return k.finish(k.b.add(k.arg(0), k.arg(1)));
}

} // namespace zero::train
