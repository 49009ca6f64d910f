//===- stored_types.cpp - which type each value of a function is stored in ---------------------------------===//
#include "passes/fuse/stored_types.h"
#include "compiler/codegen/classify.h"
#include "passes/fuse/access.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::fuse {
namespace {

bool isSingle(Value v) { return cast<RankedTensorType>(v.getType()).getElementType().isF32(); }

/// What is known of the results of a kernel by looking at its body.
struct KernelFacts {
  llvm::SmallBitVector statistic;           // a reduction, or made of reductions
  SmallVector<llvm::SmallBitVector> madeOf; // arguments of f32 that it is made of, element by element
  llvm::SmallBitVector summed;              // in memory, term by term
  SmallVector<SmallVector<unsigned>> terms; // arguments whose elements are added up to it
};

class Body {
public:
  explicit Body(func::FuncOp kernel) {
    auto results = kernel.getBody().front().getTerminator()->getOperands();
    facts.statistic.resize(results.size());
    facts.summed.resize(results.size());
    for (auto [i, result] : llvm::enumerate(results)) {
      facts.statistic[i] = isStatistic(result);
      madeOf.clear();
      findMadeOf(result);
      llvm::SmallBitVector &from = facts.madeOf.emplace_back(kernel.getNumArguments());
      for (Value v : madeOf)
        if (auto argument = dyn_cast<BlockArgument>(v); argument && isSingle(argument)) from.set(argument.getArgNumber());
      facts.summed[i] = !kernel.getOps<ScatterAddOp>().empty() || !kernel.getOps<CumSumOp>().empty();
      addTerms(result, facts.terms.emplace_back());
    }
  }
  KernelFacts facts;

private:
  bool isStatistic(Value v) {
    Operation *op = v.getDefiningOp();
    if (!op || isa<ConstantOp, BroadcastOp, IotaOp, RandomOp>(op)) return false;
    if (auto [known, fresh] = statistic.try_emplace(v, false); !fresh) return known->second;
    auto reduce = dyn_cast<ReduceOp>(op);
    bool is = (reduce && codegen::reachOf(reduce) != codegen::Reach::Nothing) ||
              llvm::any_of(op->getOperands(), [&](Value operand) { return isStatistic(operand); });
    return statistic[v] = is;
  }

  void findMadeOf(Value v) {
    Operation *op = v.getDefiningOp();
    if (!madeOf.insert(v).second || !op || isa<ConstantOp, BroadcastOp, IotaOp, RandomOp>(op)) return;
    for (Value operand : op->getOperands()) findMadeOf(operand);
  }

  static void addTerms(Value result, SmallVectorImpl<unsigned> &terms) {
    llvm::SetVector<Value> values;
    values.insert(result);
    for (size_t i = 0; i < values.size(); ++i) {
      Value v = values[i];
      if (auto argument = dyn_cast<BlockArgument>(v))
        terms.push_back(argument.getArgNumber());
      else if (isa<AddOp, ReshapeOp, SliceOp, TransposeOp>(v.getDefiningOp()))
        for (Value operand : v.getDefiningOp()->getOperands()) values.insert(operand);
    }
  }

  llvm::DenseMap<Value, bool> statistic;
  llvm::DenseSet<Value> madeOf;
};

class Decision {
public:
  Decision(func::FuncOp function, SymbolTable &kernels, const StoredTypes &types) : function(function), kernels(kernels), types(types) {}

  llvm::DenseMap<Value, Type> run() {
    Block &block = function.getBody().front();
    for (Operation &op : block)
      for (OpOperand *operand : halfOperands(&op)) wanted.insert(storedIn(operand->get()));
    for (Operation &op : llvm::reverse(block)) keepBelow(op);
    for (Operation &op : block)
      for (Value result : op.getResults()) {
        if (!isSingle(result)) continue;
        if (isStatistic(cast<OpResult>(result))) statistics.insert(result);
        if (Type type = typeOf(cast<OpResult>(result)); type && !type.isF32()) narrowed[result] = type;
      }
    return std::move(narrowed);
  }

private:
  /// Users stand after what they use, so that by now it is known which results of `op` stay f32.
  void keepBelow(Operation &op) {
    if (isa<GradientOp, func::ReturnOp>(op))
      for (Value operand : op.getOperands()) kept.insert(viewed(operand));
    for (OpOperand *operand : singleOperands(&op)) kept.insert(viewed(operand->get()));
    if (auto join = dyn_cast<JoinRowsOp>(op)) // in which they lie
      for (Value part : join.getInputs())
        for (auto *values : {&kept, &wanted})
          if (values->contains(join)) values->insert(viewed(part));
    auto launch = dyn_cast<LaunchOp>(op);
    if (!launch) return;
    for (auto [result, terms] : llvm::zip(launch.getOutputs(), factsOf(launch).terms)) {
      if (!kept.contains(result)) continue;
      for (unsigned term : terms) // of no other use: what else is read of an activation would stay f32 as well
        if (Value root = viewed(launch.getInputs()[term]); isReadOnce(launch.getInputs()[term])) kept.insert(root);
    }
  }

  static bool isReadOnce(Value v) {
    while (v.hasOneUse()) {
      auto view = v.getDefiningOp<ReshapeOp>();
      if (!view) return true;
      v = view.getInput();
    }
    return false;
  }

  Type typeOf(OpResult result) {
    if (isHandedOver(result)) return types.gradients;
    return isHalf(result) ? types.activations : Type();
  }

  /// A gradient of a parameter, of no other use, in a type that its operation can write.
  bool isHandedOver(OpResult result) {
    Value value = result;
    while (value.hasOneUse() && isa<ReshapeOp>(*value.user_begin())) value = value.user_begin()->getResult(0);
    if (!value.hasOneUse() || !isa<GradientOp>(*value.user_begin())) return false;
    if (auto product = dyn_cast<MatMulOp>(result.getOwner())) return types.gradients == types.activations && !product.getOnto();
    auto launch = dyn_cast<LaunchOp>(result.getOwner());
    return launch && !factsOf(launch).summed[result.getResultNumber()];
  }

  bool isHalf(OpResult result) {
    Operation *op = result.getOwner();
    if (isa<GetOp>(op)) return true;
    if (isa<MatMulEpilogueOp>(op)) return true;
    if (auto gradient = dyn_cast<AttentionGradOp>(op)) return !gradient.getBias() || result != gradient.getGradients().back();
    if (auto attention = dyn_cast<AttentionOp>(op)) return result == attention.getResult();
    if (kept.contains(result)) return false;
    if (auto product = dyn_cast<MatMulOp>(op)) return !product.getOnto();
    if (isa<BlockMatMulOp>(op)) return true;
    auto launch = dyn_cast<LaunchOp>(op);
    if (!launch) return false;
    const KernelFacts &facts = factsOf(launch);
    if (facts.summed[result.getResultNumber()]) return false;
    return wanted.contains(result) || (!statistics.contains(result) && elementsOf(result) > 1);
  }

  /// Made of statistics alone where its kernel makes none.
  bool isStatistic(OpResult result) {
    if (auto attention = dyn_cast<AttentionOp>(result.getOwner())) return result == attention.getLse();
    auto launch = dyn_cast<LaunchOp>(result.getOwner());
    if (!launch) return false;
    const KernelFacts &facts = factsOf(launch);
    if (facts.statistic[result.getResultNumber()]) return true;
    const llvm::SmallBitVector &from = facts.madeOf[result.getResultNumber()];
    return from.any() && llvm::all_of(from.set_bits(), [&](unsigned i) { return statistics.contains(viewed(launch.getInputs()[i])); });
  }

  const KernelFacts &factsOf(LaunchOp launch) {
    auto [known, fresh] = facts.try_emplace(launch.getKernelAttr());
    if (fresh) known->second = Body(kernels.lookup<func::FuncOp>(launch.getKernelAttr().getAttr())).facts;
    return known->second;
  }

  func::FuncOp function;
  SymbolTable &kernels;
  StoredTypes types;
  llvm::DenseMap<Attribute, KernelFacts> facts; // by kernel
  llvm::DenseSet<Value> kept, wanted;           // roots of views: must stay f32; a product reads them
  llvm::DenseSet<Value> statistics;             // of those before
  llvm::DenseMap<Value, Type> narrowed;
};

} // namespace

Type storedType(StringRef name, MLIRContext *context) {
  if (name == "f32") return Float32Type::get(context);
  if (name == "bf16") return BFloat16Type::get(context);
  return name == "f16" ? Type(Float16Type::get(context)) : Type();
}

SmallVector<OpOperand *> halfOperands(Operation *op) {
  if (auto product = dyn_cast<MatMulOp>(op)) return {&product.getLhsMutable(), &product.getRhsMutable()};
  if (auto blocks = dyn_cast<BlockMatMulOp>(op)) return {&blocks.getLhsMutable(), &blocks.getRhsMutable()};
  if (auto blocks = dyn_cast<BlockMatMulSumOp>(op)) return {&blocks.getLhsMutable(), &blocks.getRhsMutable()};
  if (auto product = dyn_cast<MatMulEpilogueOp>(op))
    return {&product.getLhsMutable(), &product.getRhsMutable(), &product.getOtherMutable()};
  if (auto attention = dyn_cast<AttentionOp>(op)) return {&attention.getQMutable(), &attention.getKMutable(), &attention.getVMutable()};
  if (auto gradient = dyn_cast<AttentionGradOp>(op))
    return {&gradient.getQMutable(), &gradient.getKMutable(), &gradient.getVMutable(), &gradient.getOutMutable(),
            &gradient.getDoutMutable()};
  return {};
}

SmallVector<OpOperand *> singleOperands(Operation *op) {
  SmallVector<OpOperand *> operands;
  auto take = [&](auto &&...optional) {
    for (MutableOperandRange range : {optional...})
      for (OpOperand &operand : range) operands.push_back(&operand);
  };
  if (auto product = dyn_cast<MatMulOp>(op)) take(product.getOntoMutable());
  if (auto attention = dyn_cast<AttentionOp>(op)) take(attention.getMaskMutable(), attention.getBiasMutable());
  if (auto gradient = dyn_cast<AttentionGradOp>(op)) take(gradient.getMaskMutable(), gradient.getBiasMutable());
  return operands;
}

llvm::DenseMap<Value, Type> narrowedValues(func::FuncOp function, SymbolTable &kernels, const StoredTypes &types) {
  return Decision(function, kernels, types).run();
}

} // namespace zero::fuse
