//===- differentiate.cpp - nn-differentiate ------------------------------------------------------------===//
#include "passes/train/Passes.h"
#include "passes/train/join_pads.h"
#include "passes/train/join_products.h"

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_DIFFERENTIATEPASS
#include "passes/train/Passes.h.inc"

namespace {

/// Whose gradient it is: what is computed of parameters alone are weights, too.
enum class Of { Parameter, Weights, Activation };

/// Gradient of one value while its contributions come in. They are added at once, so that none is kept waiting; those of
/// slices are kept apart, for several may tile the tensor, and so are those of weights that are products of few rows, one after another.
struct Partial {
  Of of = Of::Activation;
  bool joinsProducts = false;
  Value sum;
  SmallVector<nn::PadOp> pads;
  SmallVector<nn::MatMulOp> products; // the last first
  bool ofRows = true;                 // all pads

  /// What the gradient of an operand of `op` adds. Products of parameters are made onto the sum, so that none needs room of its own: those
  /// that the rule of `op` has made itself. What an addition hands on is the gradient of its other operand as well.
  void add(OpBuilder &builder, Operation *op, Value more) {
    auto product = isa<nn::MatMulOp>(op) ? more.getDefiningOp<nn::MatMulOp>() : nn::MatMulOp();
    if (joinsProducts && of != Of::Activation && product && more.use_empty() && hasFewRows(product)) {
      products.push_back(product);
      return;
    }
    addProducts(builder);
    if (more.getDefiningOp<nn::PadOp>()) ofRows &= isa<nn::RowsOp>(op);
    addOne(builder, op->getLoc(), more, product);
  }

  /// Products that have come one after another.
  void addProducts(OpBuilder &builder) {
    if (products.size() >= kManyProducts) {
      SmallVector<nn::MatMulOp> inOrder(llvm::reverse(products)); // of forward, as what is joined there
      Location loc = inOrder[0].getLoc();
      Value joined = joinProducts({builder, loc}, inOrder);
      addOne(builder, loc, joined, joined.getDefiningOp<nn::MatMulOp>());
    } else {
      for (nn::MatMulOp product : products) addOne(builder, product.getLoc(), product, product);
    }
    products.clear();
  }

  /// `product`: what makes it, if that may be changed.
  void addOne(OpBuilder &builder, Location loc, Value more, nn::MatMulOp product) {
    if (of != Of::Parameter || !sum || !product || !more.use_empty()) return add(builder, loc, more);
    product.getOntoMutable().assign(sum);
    sum = more;
  }

  void add(OpBuilder &builder, Location loc, Value more) {
    auto pad = more.getDefiningOp<nn::PadOp>();
    if (pad && matchPattern(pad.getValue(), m_AnyZeroFloat()) && llvm::all_of(pad.getInterior(), [](int64_t n) { return n == 0; }))
      pads.push_back(pad);
    else
      sum = sum ? nn::Build{builder, loc}.add(sum, more) : more;
  }

  /// The complete gradient, or null.
  Value take(OpBuilder &builder, Location loc) {
    nn::Build b{builder, loc};
    addProducts(builder);
    if (Value joined = pads.size() > 1 ? joinPads(b, pads, ofRows) : Value())
      sum = sum ? b.add(sum, joined) : joined;
    else
      for (nn::PadOp pad : pads) sum = sum ? b.add(sum, pad) : Value(pad);
    pads.clear();
    return sum;
  }
};

struct Reverse {
  ModuleOp module;
  func::FuncOp train;
  SymbolTable symbols;
  OpBuilder builder;
  DenseSet<Value> active;             // depends on a trainable parameter
  DenseSet<Operation *> ofParameters; // reads of parameters, and what is computed of these alone
  DenseMap<Value, Partial> partials;
  DenseMap<StringAttr, Partial> wanted; // gradients of parameters
  DenseMap<StringAttr, size_t> open;    // uses of a parameter that backward has not met yet
  DenseSet<StringAttr> done;
  const bool joinsProducts; // not of tiles, which are there in order that they are not all in memory

  Reverse(ModuleOp module, func::FuncOp train)
      : module(module), train(train), symbols(module), builder(train.getContext()), joinsProducts(!module->hasAttr(kTokenTiles)) {}

  bool isTrainable(nn::GetOp get) {
    auto parameter = symbols.lookup<nn::ParameterOp>(get.getParameter());
    return parameter && parameter.getTrainable() && nn::isFloat(get);
  }

  /// What reads parameters alone stands right before its first use, so that backward meets it right after that.
  void sinkParameters(Block &block) {
    DenseMap<Operation *, int64_t> places; // of what has sunk that of what it stands before: a block that changes cannot tell at once
    for (Operation &op : block) {
      places[&op] = int64_t(places.size());
      bool only = op.getNumOperands() > 0 && isPure(&op);
      for (Value v : op.getOperands()) only = only && v.getDefiningOp() && ofParameters.contains(v.getDefiningOp());
      if (only || isa<nn::GetOp>(op)) ofParameters.insert(&op);
    }
    auto isBefore = [&](Operation *a, Operation *b) {
      int64_t place = places.lookup(a);
      if (place != places.lookup(b)) return place < places.lookup(b);
      while (a && a != b && places.lookup(a) == place) a = a->getNextNode(); // those that sank to one place stand side by side
      return a == b;
    };
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
      if (!ofParameters.contains(&op)) continue;
      Operation *first = nullptr;
      for (Operation *user : op.getUsers())
        if (!first || isBefore(user, first)) first = user;
      if (!first) continue;
      op.moveBefore(first);
      places[&op] = places.lookup(first);
    }
  }

  /// Where the gradient of an operand is summed up: reads of one parameter have one.
  Partial &partialOf(Value v) {
    Operation *op = v.getDefiningOp();
    auto get = dyn_cast_or_null<nn::GetOp>(op);
    Partial &partial = get ? wanted[get.getParameterAttr().getAttr()] : partials[v];
    partial.of = get ? Of::Parameter : ofParameters.contains(op) ? Of::Weights : Of::Activation;
    partial.joinsProducts = joinsProducts;
    return partial;
  }

  void findActive(Block &block) {
    for (Operation &op : block) {
      auto get = dyn_cast<nn::GetOp>(op);
      bool depends = get ? isTrainable(get) : llvm::any_of(op.getOperands(), [&](Value v) { return active.contains(v); });
      if (depends && !op.hasTrait<nn::NoGradient>())
        for (Value v : op.getResults())
          if (nn::isFloat(v)) active.insert(v);
      for (Value v : op.getOperands())
        if (auto read = v.getDefiningOp<nn::GetOp>()) ++open[read.getParameterAttr().getAttr()];
    }
  }

  LogicalResult run() {
    Block &block = train.getBody().front();
    sinkParameters(block);
    findActive(block);
    Operation *terminator = block.getTerminator();
    Value loss = terminator->getOperand(0);
    if (!active.contains(loss)) return train.emitError("the loss depends on no trainable parameter: there is nothing to train");
    SmallVector<Operation *> forward;
    for (Operation &op : block.without_terminator()) forward.push_back(&op);
    builder.setInsertionPoint(terminator);
    // Uses by the return are not backward's.
    if (auto read = loss.getDefiningOp<nn::GetOp>()) --open[read.getParameterAttr().getAttr()];
    partials[loss].add(builder, loss.getLoc(), nn::Build{builder, loss.getLoc()}.like(loss, 1));
    for (Operation *op : llvm::reverse(forward)) {
      if (auto get = dyn_cast<nn::GetOp>(op)) {
        finishIfComplete(get); // only a loss that is a parameter gets here unfinished
        continue;
      }
      if (failed(visit(op))) return failure();
    }
    return success();
  }

  LogicalResult visit(Operation *op) {
    bool needed = false;
    SmallVector<Value> dresults, doperands(op->getNumOperands());
    for (Value v : op->getResults()) {
      auto found = partials.find(v);
      Value d;
      if (found != partials.end() && active.contains(v)) d = found->second.take(builder, op->getLoc());
      partials.erase(v);
      dresults.push_back(d);
      needed |= bool(d);
    }
    if (needed) {
      auto rule = dyn_cast<nn::DifferentiableOpInterface>(op);
      if (!rule)
        return op->emitError() << "'" << op->getName() << "' has no gradient, but a trainable parameter reaches the loss through it";
      if (failed(rule.differentiate(builder, dresults, doperands))) return failure();
    }
    for (auto [i, v] : llvm::enumerate(op->getOperands())) {
      auto get = v.getDefiningOp<nn::GetOp>();
      if (needed && active.contains(v)) {
        if (!doperands[i])
          return op->emitError() << "'" << op->getName() << "' has no gradient for its operand #" << i
                                 << ", but that depends on a trainable parameter";
        if (doperands[i].getType() != v.getType())
          return op->emitError() << "the gradient of operand #" << i << " is " << doperands[i].getType() << ", not " << v.getType();
        partialOf(v).add(builder, op, doperands[i]);
      }
      if (get) {
        --open[get.getParameterAttr().getAttr()];
        finishIfComplete(get);
      }
    }
    return success();
  }

  void finishIfComplete(nn::GetOp get) {
    StringAttr name = get.getParameterAttr().getAttr();
    if (auto direct = partials.find(get.getResult()); direct != partials.end()) {
      wanted[name].add(builder, get.getLoc(), direct->second.take(builder, get.getLoc()));
      partials.erase(get.getResult());
    }
    auto found = wanted.find(name);
    if (open[name] || found == wanted.end() || !done.insert(name).second) return;
    builder.create<nn::GradientOp>(get.getLoc(), get.getParameterAttr(), found->second.take(builder, get.getLoc()));
    wanted.erase(name);
  }
};

struct Differentiate : impl::DifferentiatePassBase<Differentiate> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto train = module.lookupSymbol<func::FuncOp>("train");
    if (train && failed(nn::verifyTensorFunction(train))) return signalPassFailure();
    if (!train || train.isExternal() || train.getNumResults() != 1 || cast<ShapedType>(train.getResultTypes()[0]).getRank() > 1) {
      module.emitError("needs @train with one result, the loss (see nn-add-loss)");
      return signalPassFailure();
    }
    Block &block = train.getBody().front();
    Operation *last = block.getTerminator()->getPrevNode();
    Reverse reverse(module, train);
    if (failed(reverse.run())) return signalPassFailure();
    gradients += reverse.done.size();
    // Rules also give gradients that nobody asked for (of the data, of constants).
    for (Operation *op = block.getTerminator()->getPrevNode(); op && op != last;) {
      Operation *before = op->getPrevNode();
      if (isOpTriviallyDead(op))
        op->erase();
      else
        ++emitted;
      op = before;
    }
    module.walk([](nn::DetachOp detached) {
      detached.getResult().replaceAllUsesWith(detached.getInput());
      detached.erase();
    });
    for (auto parameter : module.getOps<nn::ParameterOp>())
      if (parameter.getTrainable() && !reverse.done.contains(parameter.getSymNameAttr())) {
        parameter.emitWarning() << "parameter '" << parameter.getSymName() << "' does not influence the loss and is not trained";
        parameter.setTrainable(false);
      }
  }
};

} // namespace
} // namespace zero::train
