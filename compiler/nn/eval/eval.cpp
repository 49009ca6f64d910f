//===- eval.cpp - one operation, and a function of them -------------------------------------------===//
#include "compiler/nn/eval/eval.h"
#include "compiler/nn/eval/kernels.h"

using namespace mlir;

namespace zero::nn {

bool canEvaluate(Operation *op) { return isa<PointwiseOpInterface, EvaluableOpInterface>(op); }

FailureOr<SmallVector<Tensor>> evaluate(Operation *op, ArrayRef<const Tensor *> operands) {
  if (!canEvaluate(op)) return op->emitOpError() << "cannot be evaluated from its operands alone";
  assert(operands.size() == op->getNumOperands());
  auto f32 = Float32Type::get(op->getContext());
  bool widen = !op->hasTrait<Movement>();
  SmallVector<Tensor> widened(operands.size()), results;
  SmallVector<const Tensor *> in(operands);
  for (size_t i = 0; i < in.size(); ++i)
    if (widen && isNarrow(in[i]->elementType())) {
      widened[i] = in[i]->cast(f32);
      in[i] = &widened[i];
    }
  if (auto formula = dyn_cast<PointwiseOpInterface>(op)) {
    auto result = eval::pointwise(formula, in);
    if (failed(result)) return failure();
    results.push_back(std::move(*result));
  } else {
    for (Type type : op->getResultTypes()) {
      auto ranked = cast<RankedTensorType>(type);
      results.emplace_back(widen && isNarrow(ranked.getElementType()) ? RankedTensorType::get(ranked.getShape(), f32) : ranked);
    }
    if (failed(cast<EvaluableOpInterface>(op).evaluate(in, results))) return failure();
  }
  for (auto [result, type] : llvm::zip(results, op->getResultTypes()))
    if (result.type != type) result = result.cast(cast<RankedTensorType>(type).getElementType());
  return results;
}

FailureOr<SmallVector<Tensor>> evaluateFunction(func::FuncOp function, ArrayRef<Tensor> inputs, const ParameterLookup &parameters,
                                                const GradientSink &gradients) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return function.emitError() << "only a function with one block can be evaluated";
  if (inputs.size() != function.getNumArguments())
    return function.emitError() << "takes " << function.getNumArguments() << " tensors, not " << inputs.size();
  DenseMap<Value, std::shared_ptr<const Tensor>> values;
  DenseMap<Value, size_t> remaining; // uses not yet executed
  for (auto [argument, input] : llvm::zip(function.getArguments(), inputs)) {
    if (argument.getType() != input.type)
      return function.emitError() << "argument " << argument.getArgNumber() << " is " << argument.getType() << ", not " << input.type;
    values[argument] = std::shared_ptr<const Tensor>(std::shared_ptr<void>(), &input);
  }
  SymbolTableCollection symbols;
  auto lookUp = [&](Operation *user, FlatSymbolRefAttr name) { return symbols.lookupNearestSymbolFrom<ParameterOp>(user, name); };

  for (Operation &op : function.getBody().front()) {
    SmallVector<const Tensor *> operands;
    for (Value operand : op.getOperands()) operands.push_back(values.at(operand).get());
    if (isa<func::ReturnOp>(op)) {
      SmallVector<Tensor> results;
      for (const Tensor *operand : operands) results.push_back(*operand);
      return results;
    }
    SmallVector<Tensor> results;
    if (auto get = dyn_cast<GetOp>(op)) {
      auto value = parameters ? parameters(lookUp(get, get.getParameterAttr())) : FailureOr<Tensor>(failure());
      if (failed(value)) return get.emitOpError() << "has no value for " << get.getParameterAttr();
      results.push_back(std::move(*value));
    } else if (auto gradient = dyn_cast<GradientOp>(op)) {
      if (gradients) gradients(lookUp(gradient, gradient.getParameterAttr()), *operands[0]);
    } else if (isa<LaunchOp, func::CallOp>(op)) {
      auto name = isa<LaunchOp>(op) ? cast<LaunchOp>(op).getKernelAttr() : cast<func::CallOp>(op).getCalleeAttr();
      auto callee = symbols.lookupNearestSymbolFrom<func::FuncOp>(&op, name);
      if (!callee) return op.emitOpError() << "calls " << name << ", which is not in the module";
      SmallVector<Tensor> arguments;
      for (const Tensor *operand : operands) arguments.push_back(*operand);
      auto outputs = evaluateFunction(callee, arguments, parameters, gradients);
      if (failed(outputs)) return failure();
      results = std::move(*outputs);
    } else {
      auto outputs = evaluate(&op, operands);
      if (failed(outputs)) return failure();
      results = std::move(*outputs);
    }
    for (auto [value, result] : llvm::zip(op.getResults(), results))
      if (!value.use_empty()) {
        remaining[value] = size_t(std::distance(value.use_begin(), value.use_end()));
        values[value] = std::make_shared<const Tensor>(std::move(result));
      }
    for (Value operand : op.getOperands())
      if (auto left = remaining.find(operand); left != remaining.end() && --left->second == 0) values.erase(operand);
  }
  return function.emitError() << "has no func.return";
}

} // namespace zero::nn
