//===- partition.cpp - zero-partition -------------------------------------------------------------===//
#include "compiler/nn/library/table_rows.h"
#include "passes/shard/Passes.h"
#include "passes/shard/layout.h"
#include "llvm/ADT/MapVector.h"

#define DEBUG_TYPE "zero-partition"

using namespace mlir;

namespace zero::shard {
#define GEN_PASS_DEF_PARTITIONPASS
#include "passes/shard/Passes.h.inc"

namespace {

/// A parameter, and the type in which it is read.
using Used = std::pair<nn::ParameterOp, Type>;

/// Parameters `function` reads, in the order of their first use.
SmallVector<Used> parametersOf(func::FuncOp function) {
  llvm::MapVector<nn::ParameterOp, Type> found;
  SymbolTable symbols(function->getParentOfType<ModuleOp>());
  function.walk([&](nn::GetOp get) {
    found.try_emplace(symbols.lookup<nn::ParameterOp>(get.getParameter()), cast<ShapedType>(get.getType()).getElementType());
  });
  return found.takeVector();
}

/// Gradients go between ranks in two bytes an element.
bool travelsInHalf(func::FuncOp train) {
  return llvm::any_of(train.getOps<nn::GradientOp>(),
                      [](nn::GradientOp g) { return g.getValue().getType().getElementTypeBitWidth() == 16; });
}

/// Parameters whose rows are looked up, by kernels too.
struct Tables {
  llvm::SmallPtrSet<Operation *, 4> all, exchanged; // by a launch that looks up alone (nn-table-rows)

  explicit Tables(func::FuncOp function) {
    SymbolTable symbols(function->getParentOfType<ModuleOp>());
    auto looksUp = [](OpOperand &use) { return isa<nn::GatherOp>(use.getOwner()) && use.getOperandNumber() == 0; };
    function.walk([&](nn::GetOp get) {
      for (OpOperand &use : get->getUses()) {
        auto launch = dyn_cast<nn::LaunchOp>(use.getOwner());
        bool table = looksUp(use);
        if (launch) {
          auto kernel = symbols.lookup<func::FuncOp>(launch.getKernel());
          table = llvm::any_of(kernel.getArgument(use.getOperandNumber()).getUses(), looksUp);
        }
        if (table) all.insert(symbols.lookup(get.getParameter()));
        if (launch && launch->hasAttr(nn::kLooksUp)) exchanged.insert(symbols.lookup(get.getParameter()));
      }
    });
  }
};

int64_t elementsOf(nn::ParameterOp p) { return cast<ShapedType>(p.getType()).getNumElements(); }

struct Partition : impl::PartitionPassBase<Partition> {
  using PartitionPassBase::PartitionPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto train = module.lookupSymbol<func::FuncOp>("train");
    if (!train) {
      module.emitError() << "there is no function @train to shard; run the train phase first";
      return signalPassFailure();
    }
    if (world < 1 || stage < 0 || stage > 3 || accumulate < 1 || (optimizer != "adamw" && optimizer != "sgd")) {
      module.emitError() << "world and accumulate are at least 1, stage is 0 to 3, optimizer is adamw or sgd";
      return signalPassFailure();
    }
    OpBuilder b(module.getBodyRegion());
    module->setAttr(state::ZeroDialect::kWorld, b.getI64IntegerAttr(world));
    module->setAttr(state::ZeroDialect::kStage, b.getI64IntegerAttr(stage));
    module->setAttr(state::ZeroDialect::kAccumulate, b.getI64IntegerAttr(accumulate));
    if (vertical && accumulate > 1) module->setAttr(state::ZeroDialect::kVertical, b.getUnitAttr());
    module->setAttr(state::ZeroDialect::kOptimizer, b.getStringAttr(optimizer));

    auto used = parametersOf(train);
    Tables tables(train);
    // The smallest numbers of f16 are much larger than those of f32 and bf16: gradients come multiplied by a scale.
    if (llvm::any_of(used, [](const Used &u) { return nn::ParameterOp(u.first).getTrainable() && u.second.isF16(); }))
      module->setAttr(state::ZeroDialect::kScalesLoss, b.getUnitAttr());
    b.setInsertionPoint(train);
    trainableCount = frozenCount = 0;
    for (bool trainable : {true, false})
      if (failed(makeBuckets(b, used, tables, train, trainable))) return signalPassFailure();
  }

  /// Of all parameters of `used` that are trained, or of all others.
  LogicalResult makeBuckets(OpBuilder &b, ArrayRef<Used> used, const Tables &tables, func::FuncOp train, bool trainable) {
    SmallVector<nn::ParameterOp> all, group, alone;
    std::vector<int64_t> sizes;
    int64_t total = 0, largestTile = 0;
    Type read; // one of all: a module is of mixed precision or it is not
    for (auto [p, type] : used)
      if (p.getTrainable() == trainable) {
        if (read && read != type)
          return p.emitOpError() << "is read as " << type << " and others as " << read
                                 << "; run nn-mixed-precision on the whole module or not at all";
        read = type;
        all.push_back(p);
        total += elementsOf(p);
        if (p.getTileOf()) largestTile = std::max(largestTile, elementsOf(p));
      }
    if (total == 0) return success();
    BucketLimit limit =
        bucketElements ? limitOf(bucketElements) : defaultLimit(total, largestTile, /*portions=*/world == 1 && !manyThreads);
    // A tile is to move by itself; and a large table is read at both ends of the model, where what shared its bucket would bring it
    // again. Where rows are exchanged, ranks own whole ones.
    for (nn::ParameterOp p : all) {
      bool table = tables.exchanged.contains(p) || (tables.all.contains(p) && elementsOf(p) > limit.most);
      (p.getTileOf() || table ? alone : group).push_back(p);
    }
    for (nn::ParameterOp p : group) sizes.push_back(elementsOf(p));
    int64_t align = alignElements(read.getIntOrFloatBitWidth() / 8);
    if (trainable && travelsInHalf(train)) align = std::max(align, alignElements(2));
    ArrayAttr tensors = tensorsOf(b, trainable, read);
    for (const BucketLayout &layout : layOut(sizes, world, limit, align)) makeBucket(b, group, sizes, layout, trainable, tensors);
    for (nn::ParameterOp p : alone) {
      auto shape = cast<ShapedType>(p.getType()).getShape();
      makeBucket(b, p, {elementsOf(p)},
                 tables.exchanged.contains(p) ? layOutTable(shape[0], shape[1], world, align)
                                              : layOut({elementsOf(p)}, world, limit, align).front(),
                 trainable, tensors);
    }
    return success();
  }

  void makeBucket(OpBuilder &b, MutableArrayRef<nn::ParameterOp> group, const std::vector<int64_t> &sizes, const BucketLayout &layout,
                  bool trainable, ArrayAttr tensors) {
    SmallVector<Attribute> names;
    int64_t owned = 0;
    for (size_t i : layout.members) {
      names.push_back(FlatSymbolRefAttr::get(group[i].getSymNameAttr()));
      owned += sizes[i];
    }
    std::string name = (trainable ? "bucket" : "frozen") + std::to_string(trainable ? trainableCount++ : frozenCount++);
    b.create<state::BucketOp>(group[layout.members[0]].getLoc(), name, layout.shard * world, layout.shard, b.getArrayAttr(names),
                              b.getDenseI64ArrayAttr(layout.offsets), trainable, tensors);
    ++buckets;
    padding += layout.shard * world - owned;
  }

  /// Stage 1 shards what the optimizer keeps, stage 3 the parameters too; a gradient that is kept between programs is one rank's always.
  /// Parameters that are read as another type than f32 have a compute copy of that type, and the master is the optimizer's alone: what is
  /// frozen, and never updated, has none.
  ArrayAttr tensorsOf(OpBuilder &b, bool trainable, Type read) const {
    using state::Part, state::Role;
    SmallVector<Attribute> tensors;
    auto add = [&](Role role, bool sharded, Type type = nullptr) {
      Part part = sharded && world > 1 ? Part::shard : Part::whole;
      tensors.push_back(state::TensorAttr::get(b.getContext(), role, type ? type : b.getF32Type(), part, state::Tier::device));
    };
    bool mixed = !read.isF32();
    if (trainable || !mixed) add(Role::master, stage >= (mixed ? 1 : 3));
    if (mixed) add(Role::compute, stage == 3, read);
    if (!trainable) return b.getArrayAttr(tensors);
    if (accumulate > 1 && !vertical) add(Role::gradient, true);
    if (optimizer == "sgd") {
      add(Role::momentum, stage >= 1);
    } else {
      add(Role::first_moment, stage >= 1);
      add(Role::second_moment, stage >= 1);
    }
    return b.getArrayAttr(tensors);
  }

  int trainableCount = 0, frozenCount = 0;
};

} // namespace
} // namespace zero::shard
