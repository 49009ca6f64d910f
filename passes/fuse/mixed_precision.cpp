//===- mixed_precision.cpp - nn-mixed-precision ------------------------------------------------------------===//
#include "compiler/codegen/codegen.h"
#include "compiler/nn/rows.h"
#include "passes/fuse/Passes.h"
#include "passes/fuse/stored_types.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
#define GEN_PASS_DEF_MIXEDPRECISIONPASS
#include "passes/fuse/Passes.h.inc"

namespace {

RankedTensorType withElement(Value v, Type element) {
  return RankedTensorType::get(cast<RankedTensorType>(v.getType()).getShape(), element);
}

/// The types a launch needs of its kernel.
using Signature = std::pair<SmallVector<Type>, SmallVector<Type>>;

struct MixedPrecision : impl::MixedPrecisionPassBase<MixedPrecision> {
  using MixedPrecisionPassBase::MixedPrecisionPassBase;

  void runOnOperation() override {
    types = {storedType(stored, &getContext()), storedType(gradients, &getContext())};
    if (!types.activations || !types.gradients || types.gradients.isF16()) {
      getOperation().emitError() << "stored is f32, bf16 or f16, and gradients are f32 or bf16";
      return signalPassFailure();
    }
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && !function->hasAttr(NnDialect::kKernelAttr)) functions.push_back(function);
    for (func::FuncOp function : functions) {
      auto values = narrowedValues(function, symbols, types);
      narrowed += values.size();
      retype(function, values);
      for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) adaptOperands(op, symbols);
    }
    if (failed(retypeKernels(functions, symbols))) signalPassFailure();
  }

  void retype(func::FuncOp function, const llvm::DenseMap<Value, Type> &values) {
    for (Operation &op : function.getBody().front())
      for (Value result : op.getResults()) {
        if (Type type = values.lookup(result)) result.setType(withElement(result, type));
        if (isView(&op) || isa<JoinRowsOp>(op)) result.setType(withElement(result, elementOf(op.getOperand(0))));
      }
  }
  static Type elementOf(Value v) { return cast<RankedTensorType>(v.getType()).getElementType(); }

  //===--------------------------------------------------------------------===//
  // Operands that only come in one type
  //===--------------------------------------------------------------------===//

  void adaptOperands(Operation &op, SymbolTable &symbols) {
    auto adapt = [&](OpOperand &operand, Type to) {
      if (elementOf(operand.get()) != to) operand.set(converted(operand.get(), to, symbols));
    };
    Type f32 = Float32Type::get(&getContext());
    for (OpOperand *operand : halfOperands(&op)) adapt(*operand, types.activations);
    if (isa<JoinRowsOp>(op))
      for (OpOperand &part : op.getOpOperands()) adapt(part, elementOf(op.getResult(0)));
    for (OpOperand *operand : singleOperands(&op)) adapt(*operand, f32);
    if (isa<GradientOp, func::ReturnOp>(op))
      for (OpOperand &operand : op.getOpOperands()) adapt(operand, isa<GradientOp>(op) ? types.gradients : f32);
  }

  /// A kernel after the value's definition that does nothing else; one for all who ask.
  Value converted(Value v, Type to, SymbolTable &symbols) {
    Value &known = conversions[{v, to}];
    if (known) return known;
    OpBuilder b(&getContext());
    b.setInsertionPointAfterValue(v);
    auto type = withElement(v, to);
    func::FuncOp kernel = conversionKernel(cast<RankedTensorType>(v.getType()), type, symbols);
    return known = b.create<LaunchOp>(v.getLoc(), TypeRange(type), kernel.getSymName(), ValueRange(v)).getResult(0);
  }

  func::FuncOp conversionKernel(RankedTensorType from, RankedTensorType to, SymbolTable &symbols) {
    func::FuncOp &kernel = conversionKernels[{from, to}];
    if (kernel) return kernel;
    OpBuilder b(&getContext());
    Location nowhere = b.getUnknownLoc();
    kernel = func::FuncOp::create(nowhere, to.getElementType().isF32() ? "widen" : "narrow", b.getFunctionType({from}, {to}));
    kernel.setPrivate();
    kernel->setAttr(NnDialect::kKernelAttr, b.getUnitAttr());
    kernel->setAttr(NnDialect::kInplaceAttr, b.getArrayAttr({}));
    b.setInsertionPointToStart(kernel.addEntryBlock());
    b.create<func::ReturnOp>(nowhere, ValueRange(b.create<CastOp>(nowhere, to, kernel.getArgument(0))));
    symbols.insert(kernel, getOperation().getBody()->begin());
    return kernel;
  }

  //===--------------------------------------------------------------------===//
  // Kernels
  //===--------------------------------------------------------------------===//

  /// Each kernel in the types it is launched with; several kernels where launches differ.
  LogicalResult retypeKernels(ArrayRef<func::FuncOp> functions, SymbolTable &symbols) {
    llvm::MapVector<Attribute, SmallVector<std::pair<Signature, SmallVector<LaunchOp>>>> launches; // by kernel, then by types
    for (func::FuncOp function : functions)
      for (auto launch : function.getOps<LaunchOp>()) {
        Signature signature{SmallVector<Type>(launch.getInputs().getTypes()), SmallVector<Type>(launch.getOutputs().getTypes())};
        auto &variants = launches[launch.getKernelAttr()];
        auto *found = llvm::find_if(variants, [&](auto &variant) { return variant.first == signature; });
        if (found == variants.end()) found = &variants.emplace_back(signature, SmallVector<LaunchOp>());
        found->second.push_back(launch);
      }
    for (auto &[name, variants] : launches) {
      auto kernel = symbols.lookup<func::FuncOp>(cast<FlatSymbolRefAttr>(name).getAttr());
      for (auto &[signature, callers] : ArrayRef(variants).drop_front()) {
        func::FuncOp variant = kernel.clone();
        symbols.insert(variant, std::next(kernel->getIterator())); // with a name of its own
        for (LaunchOp launch : callers) launch.setKernel(variant.getSymName());
        if (failed(retypeKernel(variant, signature))) return failure();
      }
      if (failed(retypeKernel(kernel, variants[0].first))) return failure();
    }
    return success();
  }

  /// Arguments are widened where they are read, results rounded where they are written.
  LogicalResult retypeKernel(func::FuncOp kernel, const Signature &signature) {
    auto type = FunctionType::get(&getContext(), signature.first, signature.second);
    if (kernel.getFunctionType() == type) return success();
    Block &body = kernel.getBody().front();
    OpBuilder b = OpBuilder::atBlockBegin(&body);
    for (auto [argument, wanted] : llvm::zip(body.getArguments(), signature.first)) {
      if (argument.getType() == wanted) continue;
      Type computed = argument.getType();
      argument.setType(wanted);
      auto widened = b.create<CastOp>(kernel.getLoc(), computed, argument);
      argument.replaceAllUsesExcept(widened, widened);
    }
    Operation *end = body.getTerminator();
    b.setInsertionPoint(end);
    for (auto [result, wanted] : llvm::zip(end->getOpOperands(), signature.second))
      if (result.get().getType() != wanted) result.set(b.create<CastOp>(kernel.getLoc(), wanted, result.get()));
    kernel.setType(type);
    auto info = codegen::describe(kernel);
    if (failed(info)) return failure();
    SmallVector<Attribute> pairs;
    for (auto [result, operand] : info->inplace) pairs.push_back(b.getI64ArrayAttr({int64_t(result), int64_t(operand)}));
    kernel->setAttr(NnDialect::kInplaceAttr, b.getArrayAttr(pairs));
    return success();
  }

  StoredTypes types;
  llvm::DenseMap<std::pair<Value, Type>, Value> conversions;
  llvm::DenseMap<std::pair<Type, Type>, func::FuncOp> conversionKernels;
};

} // namespace
} // namespace zero::fuse
