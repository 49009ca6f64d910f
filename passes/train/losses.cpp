//===- losses.cpp - from the text of a loss to an output of the model ------------------------------===//
#include "passes/train/losses.h"
#include "compiler/nn/build.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace zero::train {
namespace {

using Kind = Loss::Kind;

class Finder {
public:
  explicit Finder(func::FuncOp forward) : forward(forward), results(forward.getBody().front().getTerminator()->getOperands()) {}

  LogicalResult find(StringRef text, Loss &loss) {
    auto [head, output] = text.split(':');
    loss.output = output.str();
    if (size_t star = head.find('*'); star != StringRef::npos) {
      if (head.take_front(star).trim().getAsDouble(loss.weight) || !std::isfinite(loss.weight) || loss.weight == 0)
        return forward.emitError() << "loss '" << text << "': '" << head.take_front(star) << "' is no weight; it is a number other than 0";
      head = head.drop_front(star + 1).ltrim();
    }
    if (head == "cross_entropy")
      loss.kind = Kind::CrossEntropy;
    else if (head == "mse")
      loss.kind = Kind::Mse;
    else if (head == "output" && !output.empty())
      loss.kind = Kind::Output;
    else
      return forward.emitError() << "loss '" << text << "' is not known; it is cross_entropy[:OUTPUT], mse[:OUTPUT] or output:OUTPUT, "
                                 << "with a weight as 0.5*mse:OUTPUT";
    return output.empty() ? findFitting(loss) : findNamed(loss);
  }

private:
  StringRef nameOf(unsigned result) {
    auto name = forward.getResultAttrOfType<StringAttr>(result, nn::NnDialect::kNameAttr);
    return name ? name.getValue() : "";
  }

  static bool fits(const Loss &loss, Value v) {
    if (!nn::isFloat(v)) return false;
    auto type = nn::typeOf(v);
    return loss.kind == Kind::Output ? type.getNumElements() == 1 : type.getRank() >= (loss.kind == Kind::CrossEntropy ? 2 : 1);
  }

  static StringRef wanted(const Loss &loss) {
    return loss.kind == Kind::Output ? "one float"
           : loss.kind == Kind::Mse  ? "floats of rank 1 or more"
                                     : "floats of rank 2 or more, classes last";
  }

  LogicalResult findNamed(Loss &loss) {
    for (auto [i, v] : llvm::enumerate(results))
      if (nameOf(i) == loss.output) {
        if (!fits(loss, v))
          return list(forward.emitError() << "output '" << loss.output << "' cannot be the loss"
                                          << (loss.hasLabels() ? " of " + loss.name() : Twine()) << ": it is " << v.getType() << ", not "
                                          << wanted(loss));
        loss.value = v;
        return success();
      }
    return list(forward.emitError() << "no output is called '" << loss.output << "'");
  }

  LogicalResult findFitting(Loss &loss) {
    SmallVector<unsigned> fitting;
    for (auto [i, v] : llvm::enumerate(results)) {
      if (!fits(loss, v)) continue;
      if (nameOf(i) == "logits") {
        fitting = {unsigned(i)};
        break;
      }
      fitting.push_back(i);
    }
    if (fitting.size() != 1)
      return list(forward.emitError() << "loss '" << loss.name() << "' needs an output called 'logits' or exactly one of " << wanted(loss))
             << "; --loss " << loss.name() << ":OUTPUT takes one by its name, --loss output:OUTPUT one that is the loss";
    loss.value = results[fitting.front()];
    loss.output = nameOf(fitting.front()).str();
    return success();
  }

  InFlightDiagnostic list(InFlightDiagnostic error) {
    error << "; the outputs are";
    for (auto [i, v] : llvm::enumerate(results)) error << (i ? ", '" : " '") << nameOf(i) << "' " << v.getType();
    return error;
  }

  func::FuncOp forward;
  ValueRange results;
};

} // namespace

FailureOr<SmallVector<Loss>> findLosses(ArrayRef<std::string> texts, func::FuncOp forward) {
  Finder finder(forward);
  SmallVector<Loss> losses(texts.size());
  for (auto [text, loss] : llvm::zip(texts, losses))
    if (failed(finder.find(text, loss))) return failure();
  bool several = llvm::count_if(losses, [](const Loss &loss) { return loss.hasLabels(); }) > 1;
  llvm::StringSet<> taken;
  for (Loss &loss : losses) {
    if (!taken.insert(loss.output).second)
      return forward.emitError() << "output '" << loss.output << "' is in two losses; a loss of the sum has an output of its own",
             failure();
    if (loss.hasLabels()) loss.labels = several ? "labels." + loss.output : "labels";
  }
  return losses;
}

} // namespace zero::train
