//===- import.cpp - the two walks that make a module ---------------------------------------------===//
#include "compiler/onnx/import.h"
#include "compiler/onnx/by_mask.h"
#include "compiler/onnx/content.h"
#include "compiler/onnx/parameters.h"
#include "compiler/onnx/same_names.h"
#include "compiler/onnx/text.h"
#include "compiler/onnx/wire.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace zero::onnx {
namespace {

constexpr int64_t kOldestOpset = 11, kNewestOpset = 25;

LogicalResult checkOpset(const Model &model, Location loc, ImportReport &report) {
  for (const OpsetImport &o : model.opsets)
    if (o.domain.empty()) report.opset = o.version;
  if (report.opset == 0) return emitError(loc) << "the model does not say which opset of the default domain it uses";
  if (report.opset < kOldestOpset || report.opset > kNewestOpset)
    return emitError(loc) << "the model uses opset " << report.opset << "; opsets " << kOldestOpset << " to " << kNewestOpset
                          << " are read, export it with one of these";
  return success();
}

/// Names that end up in data files, checkpoints and exports must be text; those of nodes are only shown.
LogicalResult checkNames(const Model &model, Location loc) {
  auto check = [&](StringRef what, StringRef name) -> LogicalResult {
    if (isUtf8(name)) return success();
    return emitError(loc) << what << " '" << printable(name)
                          << "' has a name that is no UTF-8, which neither ONNX nor a plan can hold; rename it";
  };
  for (const ValueInfo &v : model.graph.inputs)
    if (failed(check("the input", v.name))) return failure();
  for (const ValueInfo &v : model.graph.outputs)
    if (failed(check("the output", v.name))) return failure();
  for (const TensorProto &t : model.graph.initializers)
    if (failed(check("the initializer", t.name)) || failed(check("the data file", t.location))) return failure();
  return success();
}

/// PyTorch's exporters write numbers of the program as Constant nodes, and the model's tensors as initializers; others move those there.
bool holdsWeightsInNodes(const Model &model) {
  auto isWeights = [](const TensorProto &t) { return !t.inNode && isFloat(t.type) && t.elements > 1; };
  return model.producer != "pytorch" || llvm::none_of(model.graph.initializers, isWeights);
}

/// Worth asking whether it is a parameter. A single number is a constant of the formula unless it stands where a layer of one column
/// has its bias, is a vector that scales, is moved there under a module's name, or goes through a function that would have been folded, or
/// the exporter says so.
/// `nodesHoldWeights`: Constant nodes may be parameters, too.
bool isCandidate(const Use &use, bool nodesHoldWeights, Weights &weights, const Importer &importer) {
  if (use.statistic || (use.tensor->inNode && !nodesHoldWeights)) return false;
  if (use.tensor->elements != 1) return use.tensor->elements > 1;
  if (declaredAs(use) == Declared::Parameter) return true;
  bool vector = use.tensor->dims.size() == 1;
  if (vector && llvm::is_contained({"Add", "Gemm", "Conv", "Mul", "Div"}, use.op)) return true;
  if (vector && llvm::is_contained({"PRelu", "Reshape", "Unsqueeze", "Expand"}, use.op) && Content(*use.tensor, weights).isOfModule())
    return true;
  return use.tensor->dims.size() <= 1 && importer.isCurve(use.op);
}

/// Takes the exporter's word, where it gives it, for what is a parameter and what a buffer. Not for tables of sines and frequencies: models
/// keep these as parameters that require no gradient, of which a file says nothing.
void heedDeclarations(MutableArrayRef<Site> sites) {
  llvm::DenseSet<const TensorProto *> known, fixed;
  for (const Site &s : sites) {
    if (!s.role.empty()) known.insert(s.use.tensor);
    if (s.use.statistic || s.why == kSinusoid || s.why == kFrequencies) fixed.insert(s.use.tensor);
  }
  for (Site &s : sites) {
    Declared declared = declaredAs(s.use);
    bool some = s.use.tensor->elements > 0; // a parameter of no rows, as a model keeps that could have some, is a constant
    if (declared == Declared::Parameter && some && !known.contains(s.use.tensor) && !fixed.contains(s.use.tensor)) {
      s.role = "parameter";
    } else if (declared == Declared::Buffer && !s.role.empty()) {
      s.role.clear();
      s.why = "a buffer of the model";
    }
  }
}

/// PyTorch's older exporter makes inputs of parameters where it is told to leave them out.
LogicalResult checkHasWeights(const Model &model, const ImportReport &report, Location loc) {
  std::vector<StringRef> names;
  for (const ValueInfo &v : model.graph.inputs)
    if (isFloat(v.type) && isModuleName(v.name)) names.push_back(v.name);
  if (names.empty() || model.producer != "pytorch" || !holdsWeightsInNodes(model) || !report.parameters.empty()) return success();
  return emitError(loc) << "the file has no parameters, and " << names.size() << " of its inputs are named as such ('" << names[0]
                        << "'): it was exported with export_params=False; leave that out, so that the parameters are in the file";
}

FailureOr<OwningOpRef<ModuleOp>> import(const Model &model, Weights &weights, const ImportOptions &options, MLIRContext &context,
                                        Location loc, ImportReport &report) {
  report.producer = (model.producer + " " + model.producerVersion).str();
  report.irVersion = model.irVersion;
  if (failed(checkOpset(model, loc, report)) || failed(checkNames(model, loc))) return failure();

  // First walk: every candidate is a symbol, so that its uses can be seen.
  bool nodesHoldWeights = holdsWeightsInNodes(model);
  std::vector<Site> sites;
  llvm::DenseSet<const TensorProto *> forced;
  {
    OwningOpRef<ModuleOp> draft = ModuleOp::create(loc);
    std::unique_ptr<Importer> walk;
    walk = std::make_unique<Importer>(model, weights, options, *draft, /*quiet=*/true, [&](const Use &use, Emitter &e) -> Val {
      sites.emplace_back().use = use;
      if (use.statistic) sites.back().why = "a running statistic";
      if (!isCandidate(use, nodesHoldWeights, weights, *walk)) return walk->constant(*use.tensor, e);
      auto type = RankedTensorType::get(use.tensor->dims, e.f32());
      auto get = e.builder.create<nn::GetOp>(e.loc(), type, use.tensor->name);
      sites.back().get = get;
      return Value(get);
    });
    if (failed(walk->run())) return failure();
    findRoles(draft->lookupSymbol<func::FuncOp>("forward"), sites, weights);
    forced = walk->forcedConstants;
  }
  heedDeclarations(sites);
  Quantized quantized = findQuantized(model.graph, weights);
  for (Site &s : sites)
    if (quantized.scales.contains(s.use.tensor->name)) {
      s.role.clear();
      s.why = "a scale of quantized weights";
    }
  llvm::erase_if(sites, [&](const Site &s) { return forced.contains(s.use.tensor); });
  Decisions decisions(sites, weights, options, loc, report);
  if (failed(decisions.make()) || failed(checkHasWeights(model, report, loc))) return failure();

  // Second walk: parameters are read from their symbols, everything else is known and folds.
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  std::unique_ptr<Importer> walk;
  walk = std::make_unique<Importer>(model, weights, options, *module, /*quiet=*/false, [&](const Use &use, Emitter &e) -> Val {
    Reading reading = decisions.at(use);
    if (!reading.parameter) return walk->constant(*use.tensor, e);
    auto type = RankedTensorType::get(reading.parameter->tensor->dims, e.f32());
    Val v = Value(e.builder.create<nn::GetOp>(e.loc(), type, reading.parameter->name));
    return reading.transposed ? e.transpose(v, {1, 0}) : v;
  });
  if (failed(walk->run()) || failed(emitParameters(*module, decisions, weights, options))) return failure();
  if (failed(verify(*module))) return failure();
  walk->notes.tell(quantized, report);
  return module;
}

} // namespace

FailureOr<OwningOpRef<ModuleOp>> importModel(StringRef path, const ImportOptions &options, MLIRContext &context, ImportReport *report) {
  context.getOrLoadDialect<nn::NnDialect>();
  context.getOrLoadDialect<func::FuncDialect>();
  Location loc = NameLoc::get(StringAttr::get(&context, path));
  ImportReport unread;
  try {
    Weights weights(path.str());
    if (options.reading) options.reading->bytes = weights.mapped();
    Model model = parseModel(weights.model());
    partNames(model);
    findMasks(model);
    if (options.reading) options.reading->nodes = model.countNodes();
    return import(model, weights, options, context, loc, report ? *report : unread);
  } catch (const FormatError &e) {
    emitError(loc) << path << " " << e.what();
    return failure();
  }
}

} // namespace zero::onnx
