// Loss and gradients of an ONNX model by the reference interpreter, after import, raising and the train phase:
//   evaluate_training MODEL.onnx INPUTS.safetensors OUT.safetensors [--loss L]… [--label-smoothing X] [--tie off] [--bind a=1,b=2]
//   [--plain]
// INPUTS holds every argument of @train by name (also labels and loss_scale); OUT gets "loss" and one tensor per parameter.
// --plain leaves raising out. check_gradients.py compares OUT with PyTorch.
#include "compiler/nn/eval/eval.h"
#include "compiler/onnx/import.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "passes/raise/Passes.h"
#include "passes/train/Passes.h"
#include "runtime/data/safetensors.h"
#include "runtime/data/tensor_file.h"
#include <fstream>
#include <iostream>
#include <sstream>

using namespace mlir;
using namespace zero;

namespace {

Type typeOf(runtime::Element element, MLIRContext *context) {
  Builder b(context);
  switch (element) {
  case runtime::Element::F32:
    return b.getF32Type();
  case runtime::Element::I64:
    return b.getI64Type();
  case runtime::Element::I32:
    return b.getI32Type();
  case runtime::Element::BOOL:
    return b.getI1Type();
  default:
    return {};
  }
}

int fail(const std::string &why) {
  std::cerr << why << "\n";
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 4)
    return fail("usage: evaluate_training MODEL.onnx INPUTS.safetensors OUT.safetensors [--loss L]… [--label-smoothing X] [--tie off] "
                "[--bind a=1,b=2] [--plain]");
  onnx::ImportOptions import;
  train::TrainOptions training;
  std::vector<std::string> losses;
  bool plain = false;
  for (int i = 4; i < argc; ++i) {
    std::string flag = argv[i];
    if (flag == "--plain") {
      plain = true;
    } else if (i + 1 == argc) {
      return fail(flag + " needs a value");
    } else if (flag == "--loss") {
      losses.push_back(argv[++i]);
    } else if (flag == "--label-smoothing") {
      training.labelSmoothing = std::stod(argv[++i]);
    } else if (flag == "--tie") {
      import.tie = std::string(argv[++i]) != "off";
    } else if (flag == "--bind") {
      std::stringstream all(argv[++i]);
      for (std::string one; std::getline(all, one, ',');)
        import.bind[one.substr(0, one.find('='))] = std::stoll(one.substr(one.find('=') + 1));
    } else {
      return fail("unknown flag " + flag);
    }
  }

  if (!losses.empty()) training.losses = losses;
  MLIRContext context;
  context.loadDialect<nn::NnDialect, func::FuncDialect>();
  context.disableMultithreading();
  auto module = onnx::importModel(argv[1], import, context);
  if (failed(module)) return 1;
  PassManager pm(&context);
  if (!plain) raise::buildPipeline(pm);
  train::buildPipeline(pm, training);
  if (failed(pm.run(**module))) return 1;

  auto function = (*module)->lookupSymbol<func::FuncOp>("train");
  auto file = runtime::openTensorFile(argv[2]);
  std::vector<nn::Tensor> inputs;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    std::string name = function.getArgAttrOfType<StringAttr>(i, nn::NnDialect::kNameAttr).str();
    auto type = cast<RankedTensorType>(function.getArgumentTypes()[i]);
    const runtime::Tensor *t = file.find(name);
    if (!t) return fail("no tensor '" + name + "' in " + file.contents());
    Type element = typeOf(t->type, &context);
    if (!element) return fail("element type of '" + name + "'");
    nn::Tensor input(RankedTensorType::get(SmallVector<int64_t>(t->shape.begin(), t->shape.end()), element));
    std::memcpy(input.bytes.data(), t->bytes.data(), t->bytes.size());
    input = input.cast(type.getElementType());
    if (input.type != type) return fail("shape of '" + name + "': " + runtime::shapeText(t->shape));
    inputs.push_back(std::move(input));
  }

  std::map<std::string, nn::Tensor> results;
  auto returned = nn::evaluateFunction(
      function, inputs, [&](nn::ParameterOp p) { return nn::loadParameter(p, ""); },
      [&](nn::ParameterOp p, const nn::Tensor &g) { results[p.getSymName().str()] = g; });
  if (failed(returned)) return 1;
  results["loss"] = (*returned)[0];

  std::vector<runtime::TensorSpec> specs;
  for (auto &[name, t] : results) specs.push_back({name, runtime::Element::F32, {t.shape().begin(), t.shape().end()}});
  auto layout = runtime::layoutSafetensors(specs);
  std::string bytes = layout.header;
  bytes.resize(layout.bytes);
  size_t next = 0;
  for (auto &[name, t] : results) std::memcpy(bytes.data() + layout.offsets[next++], t.bytes.data(), t.bytes.size());
  std::ofstream out(argv[3], std::ios::binary);
  out.write(bytes.data(), std::streamsize(bytes.size()));
  return out ? 0 : fail(std::string("cannot write ") + argv[3]);
}
