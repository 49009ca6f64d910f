//===- onnx_eval.cpp - what the reader makes of a model, and what that computes ------------------===//
// onnx-eval MODEL [--bind a=1,b=2] [--tie off|RE] [--untie RE] [--freeze RE] [--train RE] [--init random] [--print] [--run DIR]
// Prints the report as JSON, or the module with --print. --run reads DIR/<input>.bin, runs @forward with the reference
// interpreter and writes DIR/out<i>.bin. For the tests of the reader.
#include "compiler/nn/eval/eval.h"
#include "compiler/onnx/import.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace {

template <typename List> llvm::json::Array array(const List &list) {
  llvm::json::Array a;
  for (const auto &v : list) a.push_back(v);
  return a;
}

void print(const zero::onnx::ImportReport &r) {
  llvm::json::Array parameters, constants, ties;
  for (auto &p : r.parameters)
    parameters.push_back(llvm::json::Object{{"name", p.name}, {"shape", array(p.shape)}, {"stored", p.stored}, {"role", p.role}, {"where", p.where}});
  for (auto &c : r.constants) constants.push_back(llvm::json::Object{{"name", c.name}, {"shape", array(c.shape)}, {"why", c.why}});
  for (auto &t : r.ties) ties.push_back(llvm::json::Object{{"name", t.name}, {"alias", t.alias}, {"transposed", t.transposed}});
  llvm::json::Object all{{"parameters", std::move(parameters)},
                         {"constants", std::move(constants)},
                         {"ties", std::move(ties)},
                         {"warnings", array(r.warnings)},
                         {"opset", r.opset}};
  llvm::outs() << llvm::json::Value(std::move(all)) << "\n";
}

int run(ModuleOp module, const std::string &folder) {
  auto forward = module.lookupSymbol<func::FuncOp>("forward");
  std::vector<zero::nn::Tensor> inputs;
  for (BlockArgument a : forward.getArguments()) {
    auto name = forward.getArgAttrOfType<StringAttr>(a.getArgNumber(), "nn.name").getValue();
    zero::nn::Tensor t(cast<RankedTensorType>(a.getType()));
    auto file = llvm::MemoryBuffer::getFile(folder + "/" + name.str() + ".bin", false, false);
    if (!file || (*file)->getBufferSize() != t.bytes.size()) {
      llvm::errs() << "input " << name << " is missing or has not " << t.bytes.size() << " bytes\n";
      return 1;
    }
    std::copy((*file)->getBufferStart(), (*file)->getBufferEnd(), t.bytes.begin());
    inputs.push_back(std::move(t));
  }
  auto results = zero::nn::evaluateFunction(forward, inputs, [](zero::nn::ParameterOp p) { return zero::nn::loadParameter(p, ""); });
  if (failed(results)) return 1;
  for (auto [i, t] : llvm::enumerate(*results)) {
    std::error_code error;
    llvm::raw_fd_ostream out(folder + "/out" + std::to_string(i) + ".bin", error);
    out.write(t.bytes.data(), t.bytes.size());
  }
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  std::string model, folder;
  zero::onnx::ImportOptions options;
  bool ir = false;
  for (int i = 1; i < argc; ++i) {
    StringRef a = argv[i];
    auto value = [&]() -> StringRef { return i + 1 < argc ? argv[++i] : ""; };
    if (a == "--bind") {
      SmallVector<StringRef> pairs;
      value().split(pairs, ',');
      for (StringRef p : pairs) {
        auto [name, size] = p.split('=');
        size.getAsInteger(10, options.bind[name.str()]);
      }
    } else if (a == "--tie") {
      StringRef how = value();
      if (how == "off")
        options.tie = false;
      else if (how != "auto")
        options.tied.push_back(how.str());
    } else if (a == "--untie") {
      options.untied.push_back(value().str());
    } else if (a == "--freeze") {
      options.freeze.push_back(value().str());
    } else if (a == "--train") {
      options.train.push_back(value().str());
    } else if (a == "--init") {
      options.init = value() == "random" ? zero::onnx::Init::Random : zero::onnx::Init::Weights;
    } else if (a == "--print") {
      ir = true;
    } else if (a == "--run") {
      folder = value().str();
    } else {
      model = a.str();
    }
  }
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.getDiagEngine().registerHandler([](Diagnostic &d) {
    llvm::errs() << (d.getSeverity() == DiagnosticSeverity::Error     ? "error: "
                     : d.getSeverity() == DiagnosticSeverity::Warning ? "warning: "
                                                                      : "remark: ")
                 << d << "\n";
    return success();
  });
  zero::onnx::ImportReport report;
  auto module = zero::onnx::importModel(model, options, context, &report);
  if (failed(module)) return 1;
  for (const std::string &w : report.warnings) llvm::errs() << "warning: " << w << "\n";
  for (const std::string &n : report.notes) llvm::errs() << "note: " << n << "\n";
  if (ir)
    (*module)->print(llvm::outs(), OpPrintingFlags().elideLargeElementsAttrs(16).elideLargeResourceString(16));
  else
    print(report);
  return folder.empty() ? 0 : run(**module, folder);
}
