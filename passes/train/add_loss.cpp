//===- add_loss.cpp - nn-add-loss ----------------------------------------------------------------------===//
#include "compiler/nn/build.h"
#include "passes/train/Passes.h"

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_ADDLOSSPASS
#include "passes/train/Passes.h.inc"

namespace {
using nn::NnDialect;

struct AddLoss : impl::AddLossPassBase<AddLoss> {
  using AddLossPassBase::AddLossPassBase;
  func::FuncOp train;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    train = module.lookupSymbol<func::FuncOp>("forward");
    if (!train || train.isExternal()) {
      module.emitError("there is no @forward to train");
      return signalPassFailure();
    }
    if (failed(nn::verifyTensorFunction(train))) return signalPassFailure();
    train.setName("train");
    train.setPublic();
    auto text = StringAttr::get(&getContext(), "data");
    for (unsigned i = 0; i < train.getNumArguments(); ++i)
      if (!train.getArgAttr(i, NnDialect::kRoleAttr)) train.setArgAttr(i, NnDialect::kRoleAttr, text);
    if (failed(addLoss())) return signalPassFailure();
    OpBuilder after(module.getContext());
    after.setInsertionPointAfter(train);
    auto eval = cast<func::FuncOp>(after.clone(*train));
    eval.setName("eval");
    for (auto dropout : llvm::make_early_inc_range(eval.getOps<nn::DropoutOp>())) {
      dropout.getResult().replaceAllUsesWith(dropout.getInput());
      dropout.erase();
    }
  }

  /// Return the loss of @train instead of its results.
  LogicalResult addLoss() {
    StringRef kind = loss;
    auto result = pick(kind);
    if (failed(result)) return failure();
    Operation *terminator = train.getBody().front().getTerminator();
    OpBuilder builder(terminator);
    nn::Build b{builder, result->getLoc()};
    Type f32 = builder.getF32Type();
    Value x = b.cast(*result, f32), total;
    auto shape = nn::typeOf(x).getShape();
    if (kind == "cross_entropy") {
      int64_t classes = shape.back(), rows = nn::typeOf(x).getNumElements() / std::max<int64_t>(1, classes);
      Value labels = argument("labels", "labels", RankedTensorType::get(shape.drop_back(), builder.getI64Type()), classes);
      Value scale = argument("loss_scale", "loss_scale", RankedTensorType::get({1}, f32));
      if (!labels || !scale) return failure();
      Value rowsOf = b.reshape(x, {rows, classes}), flat = b.reshape(labels, {rows});
      total = builder.create<nn::CrossEntropyOp>(b.loc, rowsOf, flat, scale, builder.getI64IntegerAttr(ignoreIndex)).getLoss();
    } else if (kind == "mse") {
      Value target = argument("labels", "labels", nn::typeOf(x));
      Value scale = argument("loss_scale", "loss_scale", RankedTensorType::get({1}, f32));
      if (!target || !scale) return failure();
      Value error = b.sub(x, target);
      Value sum = b.sumAll(b.mul(error, error)), factor = b.reshape(scale, {});
      total = b.mul(sum, factor);
    } else {
      Value scale = argument("loss_scale", "loss_scale", RankedTensorType::get({1}, f32));
      if (!scale) return failure();
      Value one = b.reshape(x, {}), factor = b.reshape(scale, {});
      total = b.mul(one, factor);
    }
    terminator->setOperands(total);
    train.setFunctionType(builder.getFunctionType(train.getArgumentTypes(), total.getType()));
    train.setResAttrsAttr(
        builder.getArrayAttr(builder.getDictionaryAttr(builder.getNamedAttr(NnDialect::kNameAttr, builder.getStringAttr("loss")))));
    return success();
  }

  StringRef nameOf(unsigned result) {
    auto name = train.getResultAttrOfType<StringAttr>(result, NnDialect::kNameAttr);
    return name ? name.getValue() : "";
  }

  /// The result of @forward that the loss is made of.
  FailureOr<Value> pick(StringRef kind) {
    ValueRange results = train.getBody().front().getTerminator()->getOperands();
    StringRef wanted = kind;
    bool named = wanted.consume_front("output:");
    if (!named && kind != "cross_entropy" && kind != "mse")
      return train.emitError() << "loss '" << kind << "' is not known; it is cross_entropy, mse or output:NAME", failure();
    if (!named) wanted = "logits";
    SmallVector<Value> fitting;
    for (auto [i, v] : llvm::enumerate(results)) {
      bool fits = nn::isFloat(v) && (named ? nn::typeOf(v).getNumElements() == 1 : kind == "mse" || nn::typeOf(v).getRank() >= 2);
      if (nameOf(i) == wanted && fits) return v;
      if (nameOf(i) == wanted && named)
        return train.emitError() << "output '" << wanted << "' cannot be the loss: it is " << v.getType() << ", not one float", failure();
      if (fits && !named) fitting.push_back(v);
    }
    if (fitting.size() == 1) return fitting.front();
    auto error = train.emitError();
    if (named)
      error << "no output is called '" << wanted << "'";
    else
      error << "loss '" << kind << "' needs an output called 'logits' or exactly one float output"
            << (kind == "mse" ? "" : " of rank 2 or more");
    error << "; the outputs are";
    for (auto [i, v] : llvm::enumerate(results)) error << (i ? ", '" : " '") << nameOf(i) << "' " << v.getType();
    return error << "; --loss output:NAME takes one of them as the loss", failure();
  }

  /// A further argument of @train; null, with an error, if one has that name.
  Value argument(StringRef name, StringRef role, RankedTensorType type, int64_t limit = 0) {
    for (unsigned i = 0; i < train.getNumArguments(); ++i)
      if (auto taken = train.getArgAttrOfType<StringAttr>(i, NnDialect::kNameAttr); taken && taken.getValue() == name) {
        train.emitError() << "the model has an input '" << name << "' of its own, which loss '" << loss
                          << "' would add; if the model computes its loss, use --loss output:NAME";
        return {};
      }
    Builder b(&getContext());
    SmallVector<NamedAttribute> attributes{b.getNamedAttr(NnDialect::kNameAttr, b.getStringAttr(name)),
                                           b.getNamedAttr(NnDialect::kRoleAttr, b.getStringAttr(role))};
    if (limit) attributes.push_back(b.getNamedAttr(NnDialect::kLimitAttr, b.getI64IntegerAttr(limit)));
    train.insertArgument(train.getNumArguments(), type, b.getDictionaryAttr(attributes), train.getLoc());
    return train.getArguments().back();
  }
};

} // namespace
} // namespace zero::train
