//===- input_numbers.cpp - indices and labels, followed to the inputs they come from ----------------------===//
// The runtime holds the numbers of an input against the table that they index, or the classes that they are labels of, once per step.
#include "compiler/nn/build.h"
#include "compiler/onnx/importer.h"

using namespace mlir;

namespace zero::onnx {

/// What the runtime may ask of every element of the input.
int64_t Importer::InputLimit::note(int64_t rows, bool isPart) {
  if (isPart) // other columns may belong to larger tables
    ofParts = std::max(ofParts, rows);
  else
    ofAll = ofAll ? std::min(*ofAll, rows) : rows;
  return ofAll.value_or(ofParts);
}

/// Labels of which those that do not count have another number: labels != ignored ? labels : another, or the other way round.
struct Ignoring {
  Value labels, another;
  double ignored;
};
static std::optional<Ignoring> ignoring(nn::SelectOp select) {
  Value condition = select.getCondition();
  bool isNegated = false;
  while (auto negation = condition.getDefiningOp<nn::NotOp>()) condition = negation.getInput(), isNegated = !isNegated;
  auto counts = condition.getDefiningOp<nn::CompareOp>();
  if (!counts || (counts.getPredicate() != nn::Predicate::ne && counts.getPredicate() != nn::Predicate::eq)) return std::nullopt;
  bool ne = (counts.getPredicate() == nn::Predicate::ne) != isNegated;
  Value labels = ne ? select.getOnTrue() : select.getOnFalse();
  auto ignored = nn::splatOf(counts.getRhs());
  if (counts.getLhs() != labels || !ignored) return std::nullopt;
  return Ignoring{labels, ne ? select.getOnFalse() : select.getOnTrue(), *ignored};
}

/// Elements of an input stay elements of the input however they are moved; what is put beside them must be an index, or ignored, too.
Importer::Origin Importer::originOf(Value indices, int64_t rows, std::optional<int64_t> ignored) {
  Origin o{indices, {}, ignored};
  auto fits = [&](std::optional<double> number) { return number && ((*number >= 0 && *number < double(rows)) || *number == o.ignored); };
  while (Operation *op = o.input.getDefiningOp()) {
    Value from = op->getNumOperands() ? op->getOperand(0) : Value();
    if (auto pad = dyn_cast<nn::PadOp>(op)) {
      auto with = dyn_cast<IntegerAttr>(pad.getValue());
      if (!with || !fits(double(with.getInt()))) break;
    } else if (auto select = dyn_cast<nn::SelectOp>(op)) {
      auto labels = ignoring(select);
      if (!labels || o.ignored || !fits(nn::splatOf(labels->another))) break;
      o.ignored = int64_t(labels->ignored), from = labels->labels;
    } else if (isa<nn::CastOp>(op)) {
      if (!cast<RankedTensorType>(from.getType()).getElementType().isIntOrIndex()) break;
    } else if (!isa<nn::ReshapeOp, nn::TransposeOp, nn::SliceOp, nn::BroadcastOp>(op)) {
      break;
    }
    if (isa<nn::SliceOp>(op)) o.part = o.input;
    o.input = from;
  }
  return o;
}

bool Importer::isInput(Value v) {
  auto argument = dyn_cast<BlockArgument>(v);
  return argument && argument.getOwner() == &function.front();
}

/// Whether the runtime refuses all other indices.
bool Importer::noteRows(const Origin &origin, int64_t rows) {
  if (!isInput(origin.input)) return false;
  unsigned argument = cast<BlockArgument>(origin.input).getArgNumber();
  int64_t limit = numbers[argument].rows.note(rows, bool(origin.part));
  if (origin.part) numbers[argument].parts.insert(origin.part);
  function.setArgAttr(argument, nn::NnDialect::kLimitAttr, Builder(module.getContext()).getI64IntegerAttr(limit));
  return !origin.part;
}

/// Where losses ignore several labels, the runtime holds none against the classes.
void Importer::noteClasses(const Origin &origin, int64_t classes) {
  if (!isInput(origin.input)) return;
  unsigned argument = cast<BlockArgument>(origin.input).getArgNumber();
  InputNumbers &of = numbers[argument];
  of.ignored.insert(origin.ignored);
  if (origin.part) of.parts.insert(origin.part);
  SmallVector<int64_t, 2> said{of.classes.note(classes, bool(origin.part))};
  if (origin.ignored) said.push_back(*origin.ignored);
  function.removeArgAttr(argument, nn::NnDialect::kClassesAttr);
  if (of.ignored.size() == 1)
    function.setArgAttr(argument, nn::NnDialect::kClassesAttr, Builder(module.getContext()).getDenseI64ArrayAttr(said));
}

/// Where some of an input's elements are indices or labels and others are read as something else, there is nothing to ask of all of them.
void Importer::settleParts() {
  for (auto &[argument, of] : numbers) {
    SmallVector<Value> moved{function.getArgument(argument)};
    bool others = false;
    while (!moved.empty() && !others)
      for (Operation *user : moved.pop_back_val().getUsers()) {
        if (isa<nn::SliceOp>(user))
          others |= !of.parts.contains(user->getResult(0));
        else if (isa<nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp, nn::PadOp, nn::CastOp>(user))
          moved.push_back(user->getResult(0));
        else
          others = true;
      }
    if (others && !of.rows.ofAll) function.removeArgAttr(argument, nn::NnDialect::kLimitAttr);
    if (others && !of.classes.ofAll) function.removeArgAttr(argument, nn::NnDialect::kClassesAttr);
  }
}

Val Importer::checkedIndices(const Val &indices, int64_t rows, Emitter &e) {
  if (!indices || e.failed()) return {};
  Val zero = e.scalar(0, indices.element()), size = e.scalar(double(rows), indices.element());
  if (indices.isConstant()) {
    bool fromEnd = false;
    for (int64_t v : indices.constant->integers()) {
      if (v < -rows || v >= rows) return e.fail("index " + Twine(v) + " is out of the range of " + Twine(rows) + " rows");
      fromEnd |= v < 0;
    }
    if (!fromEnd) return indices;
    return e.select(e.compare(nn::Predicate::lt, indices, zero), e.add(indices, size), indices);
  }
  Origin origin = originOf(indices.value, rows, std::nullopt);
  Val wrapped = e.select(e.compare(nn::Predicate::lt, indices, zero), e.add(indices, size), indices);
  if (!origin.ignored && noteRows(origin, rows)) return wrapped;
  if (origin.ignored) noteClasses(origin, rows);
  // Computed indices are held inside the table, so that no data can make a kernel read beyond it.
  return e.binary<nn::MinOp>(e.binary<nn::MaxOp>(wrapped, zero), e.scalar(double(rows - 1), indices.element()));
}

void Importer::checkLabels(const Val &labels, int64_t classes, std::optional<int64_t> ignored, Emitter &e) {
  if (!labels || e.failed()) return;
  if (!labels.isConstant()) {
    noteClasses(originOf(labels.value, classes, ignored), classes);
    return;
  }
  for (int64_t v : labels.constant->integers())
    if ((v < 0 || v >= classes) && v != ignored) {
      e.fail("label " + Twine(v) + " is not of the " + Twine(classes) + " classes, 0 to " + Twine(classes - 1));
      return;
    }
}

} // namespace zero::onnx
