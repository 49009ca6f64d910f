//===- interleave.cpp - zero-interleave --------------------------------------------------------------===//
#include "compiler/nn/Nn.h"
#include "mlir/IR/IRMapping.h"
#include "passes/shard/Passes.h"
#include "passes/shard/pieces.h"
#include "passes/shard/uses.h"
#include "llvm/ADT/DenseSet.h"

#define DEBUG_TYPE "zero-interleave"

using namespace mlir;

namespace zero::shard {
#define GEN_PASS_DEF_INTERLEAVEPASS
#include "passes/shard/Passes.h.inc"

namespace {

/// One program, from one micro-step to all of them.
class Interleaving {
public:
  Interleaving(func::FuncOp program, const llvm::DenseMap<StringAttr, int64_t> &bucketOf, int64_t microSteps)
      : program(program), bucketOf(bucketOf), clones(size_t(microSteps)) {}

  /// Yields the number of pieces.
  size_t run(int64_t buckets) {
    Block &block = program.getBody().front();
    SmallVector<Operation *> operations;
    for (Operation &op : block.without_terminator()) operations.push_back(&op);
    std::vector<size_t> begins = cutPieces(readsOf(operations), buckets);
    addInputs();
    OpBuilder b(block.getTerminator());
    for (size_t piece = 0; piece < begins.size(); ++piece) {
      size_t end = piece + 1 < begins.size() ? begins[piece + 1] : operations.size();
      for (size_t micro = 0; micro < clones.size(); ++micro)
        for (size_t i = begins[piece]; i < end; ++i) clone(b, operations[i], micro);
    }
    returnAll();
    for (Operation *op : llvm::reverse(operations)) op->erase();
    return begins.size();
  }

private:
  SmallVector<BucketSet> readsOf(ArrayRef<Operation *> operations) {
    SmallVector<Read> reads;
    for (auto get : program.getOps<nn::GetOp>()) collectReads(get, reads);
    llvm::DenseMap<Operation *, BucketSet> readBy;
    for (Read &read : reads) readBy[read.operand->getOwner()].push_back(bucketOf.lookup(read.get.getParameterAttr().getAttr()));
    return llvm::map_to_vector(operations, [&](Operation *op) { return readBy.lookup(op); });
  }

  /// Samples and seeds of the others, in front of the hyper-parameters, which stay the last.
  void addInputs() {
    unsigned inputs = program.getNumArguments() - 1;
    for (unsigned i = 0; i < inputs; ++i) {
      auto role = program.getArgAttrOfType<StringAttr>(i, nn::NnDialect::kRoleAttr);
      if (!role || (role != "data" && role != "labels" && role != "seed")) continue;
      own.insert(program.getArgument(i));
      for (size_t micro = 1; micro < clones.size(); ++micro) {
        NamedAttrList attributes(program.getArgAttrDict(i));
        attributes.set(state::ZeroDialect::kMicroStep, IntegerAttr::get(IntegerType::get(program.getContext(), 64), int64_t(micro)));
        unsigned at = program.getNumArguments() - 1;
        BlockArgument argument = program.getArgument(i);
        program.insertArgument(at, argument.getType(), attributes.getDictionary(program.getContext()), argument.getLoc());
        clones[micro].map(program.getArgument(i), program.getArgument(at));
      }
    }
  }

  /// A gradient is every micro-step's own, whatever it depends on.
  bool isOwn(Operation *op) const {
    return isa<nn::GradientOp>(op) || llvm::any_of(op->getOperands(), [&](Value operand) { return own.contains(operand); });
  }

  void clone(OpBuilder &b, Operation *op, size_t micro) {
    bool differs = isOwn(op);
    if (micro > 0 && !differs) return;
    Operation *copy = b.clone(*op, clones[micro]);
    if (differs) {
      own.insert(op->result_begin(), op->result_end());
      return;
    }
    for (IRMapping &other : clones) other.map(op->getResults(), copy->getResults());
  }

  /// The losses of one micro-step after the other.
  void returnAll() {
    auto terminator = cast<func::ReturnOp>(program.getBody().front().getTerminator());
    SmallVector<Value> results;
    for (IRMapping &of : clones)
      for (Value result : terminator.getOperands()) results.push_back(of.lookupOrDefault(result));
    terminator->setOperands(results);
    program.setType(FunctionType::get(program.getContext(), program.getArgumentTypes(), ValueRange(results).getTypes()));
  }

  func::FuncOp program;
  const llvm::DenseMap<StringAttr, int64_t> &bucketOf;
  SmallVector<IRMapping> clones; // of each micro-step
  llvm::DenseSet<Value> own;     // values that are another in each
};

struct Interleave : impl::InterleavePassBase<Interleave> {
  using InterleavePassBase::InterleavePassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    llvm::DenseMap<StringAttr, int64_t> bucketOf;
    for (auto [i, bucket] : llvm::enumerate(module.getOps<state::BucketOp>()))
      for (auto name : bucket.getParameters().getAsRange<FlatSymbolRefAttr>()) bucketOf[name.getAttr()] = int64_t(i);
    for (auto program : module.getOps<func::FuncOp>()) {
      int64_t microSteps = state::ZeroDialect::microStepsOf(program);
      if (microSteps < 2) continue;
      if (program.getNumResults() != 1 || program.getNumArguments() == 0) {
        program.emitError() << "@" << program.getName()
                            << " holds one micro-step if it returns its loss alone and takes hyper-parameters; it "
                            << "returns " << program.getNumResults() << " values";
        return signalPassFailure();
      }
      pieces += Interleaving(program, bucketOf, microSteps).run(buckets);
    }
  }
};

} // namespace
} // namespace zero::shard
