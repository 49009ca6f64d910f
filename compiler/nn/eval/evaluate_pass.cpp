//===- evaluate_pass.cpp - nn-evaluate: run a function and print its results ----------------------===//
// For tests: two forms of a program are the same where this prints the same.
#include "compiler/nn/eval/evaluate_pass.h"
#include "compiler/nn/eval/eval.h"
#include "compiler/nn/random.h"
#include "mlir/Pass/Pass.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace mlir;

namespace zero::nn {
namespace {

/// Floats uniform in [-1, 1), integers and booleans in [0, limit) and {true}.
Tensor randomInput(RankedTensorType type, uint64_t seed, uint64_t number, int64_t limit) {
  Tensor tensor(type);
  RandomKey key = randomKey(seed, number);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    double u = uniform(key, uint64_t(i));
    tensor.set(i, isa<FloatType>(type.getElementType()) ? 2 * u - 1
                  : type.getElementType().isInteger(1)  ? 1
                                                        : std::floor(u * double(limit)));
  }
  return tensor;
}

/// All values of a small tensor; of a larger one its sum, its norm and its product with random numbers, which
/// notices an exchange of elements.
void print(llvm::raw_ostream &os, StringRef label, const Tensor &tensor, int digits) {
  os << label << ' ' << tensor.type << ':';
  if (tensor.size() <= 32) {
    for (int64_t i = 0; i < tensor.size(); ++i) os << ' ' << llvm::format("%.*g", digits, tensor.at(i));
  } else {
    double sum = 0, squares = 0, mixed = 0;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      double value = tensor.at(i);
      sum += value;
      squares += value * value;
      mixed += value * (2 * uniform(RandomKey{1, 2}, uint64_t(i)) - 1);
    }
    os << " sum " << llvm::format("%.*g", digits, sum) << " norm " << llvm::format("%.*g", digits, std::sqrt(squares)) << " mixed "
       << llvm::format("%.*g", digits, mixed);
  }
  os << '\n';
}

struct EvaluatePass : PassWrapper<EvaluatePass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EvaluatePass)
  EvaluatePass() = default;
  EvaluatePass(const EvaluatePass &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "nn-evaluate"; }
  StringRef getDescription() const override {
    return "Run a function with the reference interpreter on random inputs and print its results and gradients";
  }

  Option<std::string> function{*this, "function", llvm::cl::desc("Function to run"), llvm::cl::init("forward")};
  Option<std::string> folder{*this, "folder", llvm::cl::desc("Where the parameters' files lie"), llvm::cl::init(".")};
  Option<uint64_t> seed{*this, "seed", llvm::cl::desc("Of the inputs and of random parameters"), llvm::cl::init(1)};
  Option<int64_t> limit{*this, "limit", llvm::cl::desc("Integer inputs lie below this"), llvm::cl::init(2)};

  Option<int> digits{*this, "digits", llvm::cl::desc("Significant digits of what is printed"), llvm::cl::init(6)};

  void runOnOperation() override {
    auto callee = getOperation().lookupSymbol<func::FuncOp>(function);
    if (!callee) {
      getOperation().emitError() << "nn-evaluate: no function is called @" << function;
      return signalPassFailure();
    }
    SmallVector<Tensor> inputs;
    for (auto [i, type] : llvm::enumerate(callee.getArgumentTypes()))
      inputs.push_back(randomInput(cast<RankedTensorType>(type), seed, i, limit));
    auto results = evaluateFunction(
        callee, inputs, [&](ParameterOp parameter) { return loadParameter(parameter, folder, seed); },
        [&](ParameterOp parameter, const Tensor &value) {
          print(llvm::outs(), ("gradient @" + parameter.getSymName()).str(), value, digits);
        });
    if (failed(results)) return signalPassFailure();
    for (auto [i, result] : llvm::enumerate(*results)) {
      auto name = callee.getResultAttrOfType<StringAttr>(unsigned(i), NnDialect::kNameAttr);
      print(llvm::outs(), name ? name.getValue() : StringRef("result"), result, digits);
    }
    markAllAnalysesPreserved();
  }
};

} // namespace

void registerEvaluatePass() { PassRegistration<EvaluatePass>(); }

} // namespace zero::nn
