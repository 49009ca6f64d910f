//===- add_loss.cpp - nn-add-loss ----------------------------------------------------------------------===//
#include "compiler/nn/build.h"
#include "passes/train/Passes.h"
#include "passes/train/batch.h"
#include "passes/train/undrawn.h"

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
    if (failed(addLosses())) return signalPassFailure();
    OpBuilder after(module.getContext());
    after.setInsertionPointAfter(train);
    auto eval = cast<func::FuncOp>(after.clone(*train));
    eval.setName("eval");
    removeDraws(eval);
  }

  /// Return the losses, weighted, instead of the results of @train.
  LogicalResult addLosses() {
    SmallVector<std::string> texts(losses.begin(), losses.end());
    if (texts.empty()) texts.push_back("cross_entropy");
    auto found = findLosses(texts, train);
    if (failed(found) || failed(findBatch(train, *found))) return failure();
    if (labelSmoothing > 0 && llvm::none_of(*found, [](const Loss &loss) { return loss.kind == Loss::Kind::CrossEntropy; }))
      return train.emitError() << "label smoothing is of cross_entropy, and no loss is one";
    Operation *terminator = train.getBody().front().getTerminator();
    OpBuilder builder(terminator);
    SmallVector<Value> labels;
    for (const Loss &loss : *found) {
      labels.push_back(loss.hasLabels() ? labelsOf(loss) : Value());
      if (loss.hasLabels() && !labels.back()) return failure();
    }
    int64_t count = int64_t(found->size());
    Value scales = argument("loss_scale", "loss_scale", RankedTensorType::get({count}, builder.getF32Type()));
    SmallVector<Value> terms;
    if (!scales) return failure();
    for (auto [i, loss] : llvm::enumerate(*found)) {
      nn::Build b{builder, loss.value.getLoc()};
      Value scale = count == 1 ? scales : b.slice(scales, {int64_t(i)}, {1}, {1});
      Value term = sumOf(b, loss, labels[i], scale);
      terms.push_back(count == 1 ? term : b.reshape(term, {1}));
    }
    Value result = count == 1 ? terms[0] : builder.create<nn::ConcatOp>(train.getLoc(), terms, builder.getI64IntegerAttr(0)).getResult();
    terminator->setOperands(result);
    train.setFunctionType(builder.getFunctionType(train.getArgumentTypes(), result.getType()));
    train.setResAttrsAttr(
        builder.getArrayAttr(builder.getDictionaryAttr(builder.getNamedAttr(NnDialect::kNameAttr, builder.getStringAttr("loss")))));
    record(*found);
    return success();
  }

  Value labelsOf(const Loss &loss) {
    auto type = nn::typeOf(loss.value);
    Builder b(&getContext());
    if (loss.kind == Loss::Kind::Mse) return argument(loss.labels, "labels", RankedTensorType::get(type.getShape(), b.getF32Type()));
    return argument(loss.labels, "labels", RankedTensorType::get(type.getShape().drop_back(), b.getI64Type()), type.getShape().back());
  }

  /// The sum of a loss over what this rank has of the batch, times `scale` : tensor<1xf32>.
  Value sumOf(nn::Build &b, const Loss &loss, Value labels, Value scale) {
    Value x = b.cast(loss.value, b.b.getF32Type());
    auto shape = nn::typeOf(x).getShape();
    if (loss.kind == Loss::Kind::CrossEntropy) {
      int64_t classes = shape.back(), rows = nn::typeOf(x).getNumElements() / std::max<int64_t>(1, classes);
      Value rowsOf = b.reshape(x, {rows, classes}), flat = b.reshape(labels, {rows});
      return b.b
          .create<nn::CrossEntropyOp>(b.loc, rowsOf, flat, scale, b.b.getI64IntegerAttr(ignoreIndex), b.b.getF32FloatAttr(labelSmoothing))
          .getLoss();
    }
    Value sum;
    if (loss.kind == Loss::Kind::Mse) {
      Value error = b.sub(x, labels);
      sum = b.sumAll(b.mul(error, error));
    } else {
      sum = b.reshape(x, {});
    }
    return b.mul(sum, b.reshape(scale, {}));
  }

  /// What the plan says of them.
  void record(ArrayRef<Loss> found) {
    Builder b(&getContext());
    SmallVector<Attribute> all;
    for (const Loss &loss : found) {
      NamedAttrList fields;
      fields.append("kind", b.getStringAttr(loss.name()));
      fields.append("output", b.getStringAttr(loss.output));
      fields.append("weight", b.getF64FloatAttr(loss.weight));
      if (loss.hasLabels()) fields.append("labels", b.getStringAttr(loss.labels));
      if (loss.kind == Loss::Kind::CrossEntropy) fields.append("ignore_index", b.getI64IntegerAttr(ignoreIndex));
      all.push_back(fields.getDictionary(&getContext()));
    }
    getOperation()->setAttr(NnDialect::kLossesAttr, b.getArrayAttr(all));
  }

  /// A further argument of @train; null, with an error, if one has that name.
  Value argument(StringRef name, StringRef role, RankedTensorType type, int64_t limit = 0) {
    for (unsigned i = 0; i < train.getNumArguments(); ++i)
      if (auto taken = train.getArgAttrOfType<StringAttr>(i, NnDialect::kNameAttr); taken && taken.getValue() == name) {
        train.emitError() << "the model has an input '" << name
                          << "' of its own, which the loss would add; if the model computes its loss, use --loss output:NAME";
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
