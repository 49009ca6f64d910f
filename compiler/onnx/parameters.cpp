//===- parameters.cpp - freezing, splitting merged initializers, tying ---------------------------===//
#include "compiler/onnx/parameters.h"
#include "compiler/onnx/content.h"
#include "compiler/onnx/wire.h"
#include <regex>

using namespace mlir;

namespace zero::onnx {
namespace {

/// Regular expressions that are searched for in names, and whether each was found in one.
struct Patterns {
  struct Pattern {
    std::string text;
    std::regex regex;
    bool found = false;
  };
  std::vector<Pattern> list;

  bool match(StringRef name) {
    bool any = false;
    for (Pattern &p : list)
      if (std::regex_search(name.begin(), name.end(), p.regex)) any = p.found = true;
    return any;
  }
  /// A misspelt expression would train or freeze what it was to change.
  LogicalResult allFound(StringRef flag, StringRef what, Location loc) const {
    for (const Pattern &p : list)
      if (!p.found) return emitError(loc) << flag << " '" << p.text << "' is found in the name of no " << what;
    return success();
  }
};

LogicalResult compile(ArrayRef<std::string> texts, StringRef flag, Patterns &out, Location loc) {
  for (const std::string &t : texts) {
    try {
      out.list.push_back({t, std::regex(t, std::regex::ECMAScript | std::regex::optimize)});
    } catch (const std::regex_error &e) {
      return emitError(loc) << flag << " '" << t << "' is no regular expression: " << e.what();
    }
  }
  return success();
}

std::vector<int64_t> shapeOf(const TensorProto &t) { return t.dims; }

} // namespace

Parameter *Decisions::add(std::string name, const Site &site) {
  while (!names.insert(name).second) name += "'";
  auto p = std::make_unique<Parameter>();
  p->name = std::move(name);
  p->tensor = site.use.tensor;
  p->role = site.role;
  p->firstUser = site.use.user;
  p->plusOne = site.plusOne;
  list.push_back(std::move(p));
  return list.back().get();
}

/// Exporters merge initializers of equal value: the zero biases of a fresh model become one. Each place that uses a
/// tensor of one repeated number gets a parameter of its own, the first under the tensor's name.
void Decisions::split(ArrayRef<const Site *> uses, ImportReport &report) {
  for (auto [i, s] : llvm::enumerate(uses)) {
    std::string name = s->use.tensor->name.str();
    readings[{s->use.tensor, s->use.occurrence}] = {add(i ? name + "@" + s->use.user : name, *s), false};
  }
  report.warnings.push_back("'" + uses[0]->use.tensor->name.str() + "' holds one number throughout and is used at " +
                            std::to_string(uses.size()) + " places: an exporter merged equal tensors, so they are trained as " +
                            std::to_string(uses.size()) + " parameters");
}

LogicalResult Decisions::make(const Model &model, ArrayRef<Site> sites, Weights &weights, const ImportOptions &options, Location loc,
                              ImportReport &report) {
  Patterns freeze, train;
  if (failed(compile(options.freeze, "--freeze", freeze, loc)) || failed(compile(options.train, "--train", train, loc))) return failure();

  std::vector<const TensorProto *> order;
  llvm::DenseMap<const TensorProto *, std::vector<const Site *>> uses;
  for (const Site &s : sites) {
    auto &list = uses[s.use.tensor];
    if (list.empty()) order.push_back(s.use.tensor);
    list.push_back(&s);
  }
  // A model that applies the same matrices more than once shares its layers: then a shared vector is shared too.
  unsigned shared = 0, matrices = 0;
  for (const TensorProto *t : order) {
    auto n = llvm::count_if(uses[t], [](const Site *s) { return s->role == "matmul"; });
    matrices += n > 0;
    shared += n > 1;
  }
  bool sharesLayers = 2 * shared > matrices;

  for (const TensorProto *t : order) {
    std::vector<const Site *> asParameter;
    std::string why;
    for (const Site *s : uses[t]) {
      if (!s->role.empty())
        asParameter.push_back(s);
      else if (!s->why.empty())
        why = s->why;
    }
    bool asked = train.match(t->name);
    if (asParameter.empty() && !asked) {
      if (t->elements > 1) report.constants.push_back({t->name.str(), shapeOf(*t), why.empty() ? "no parameter's use" : why});
      continue;
    }
    bool frozen = freeze.match(t->name) && !asked;
    Content content(*t, weights);
    if (asParameter.size() > 1 && content.isConstant() && !sharesLayers) {
      if (!frozen) {
        split(asParameter, report);
        continue;
      }
      report.warnings.push_back("'" + t->name.str() + "' holds one number throughout and is used at " + std::to_string(asParameter.size()) +
                                " places: an exporter merged equal tensors, and --freeze freezes them at all of these places");
    }
    Site first = asParameter.empty() ? *uses[t].front() : *asParameter.front();
    // An embedding that is also the output projection is an embedding.
    for (const Site *s : asParameter)
      if (s->role == "embedding") first.role = s->role;
    if (first.role.empty()) first.role = "--train";
    Parameter *p = add(t->name.str(), first);
    p->trainable = !frozen;
    p->asked = asked;
    for (const Site *s : uses[t])
      if (!s->use.statistic) readings[{t, s->use.occurrence}] = {p, false};
  }
  if (failed(freeze.allFound("--freeze", "parameter", loc)) || failed(train.allFound("--train", "initializer", loc))) return failure();
  if (options.tie) tie(weights, loc, report);
  for (auto &p : list) {
    if (p->trainable)
      report.parameters.push_back({p->name, shapeOf(*p->tensor), name(p->tensor->type).str(), p->role});
    else
      report.constants.push_back({p->name, shapeOf(*p->tensor), "--freeze"});
  }
  return success();
}

void Decisions::tie(Weights &weights, Location loc, ImportReport &report) {
  // Only tensors of the same number of elements can be equal; embeddings come first so that they keep the name.
  std::map<uint64_t, std::vector<Parameter *>> bySize;
  for (auto &p : list)
    if (p->tensor->elements > 1 && p->tensor->hasData) bySize[p->tensor->elements].push_back(p.get());
  llvm::DenseMap<Parameter *, Reading> merged;
  for (auto &[size, group] : bySize) {
    std::stable_sort(group.begin(), group.end(),
                     [](Parameter *a, Parameter *b) { return (a->role == "embedding") > (b->role == "embedding"); });
    for (size_t i = 0; i < group.size(); ++i) {
      if (merged.count(group[i])) continue;
      Content a(*group[i]->tensor, weights);
      for (size_t j = i + 1; j < group.size(); ++j) {
        if (merged.count(group[j]) || group[j]->tensor == group[i]->tensor) continue;
        Content b(*group[j]->tensor, weights);
        bool same = a.equals(b, false), turned = !same && a.equals(b, true);
        if ((!same && !turned) || a.isConstant()) continue;
        merged[group[j]] = {group[i], turned};
        group[i]->aliases.push_back({group[j]->tensor, turned});
        // One parameter under several names: --train of any name wins, then --freeze of any.
        bool frozen = !group[i]->trainable || !group[j]->trainable;
        group[i]->asked |= group[j]->asked;
        group[i]->trainable = group[i]->asked || !frozen;
        report.ties.push_back({group[i]->name, group[j]->name, turned});
        emitRemark(loc) << "tied " << group[i]->name << " and " << group[j]->name << (turned ? " (transposed)" : "");
      }
    }
  }
  for (auto &[use, reading] : readings)
    if (auto it = merged.find(reading.parameter); it != merged.end()) reading = it->second;
  llvm::erase_if(list, [&](auto &p) { return merged.count(p.get()); });
}

Reading Decisions::at(const Use &use) const {
  auto it = readings.find({use.tensor, use.occurrence});
  return it == readings.end() ? Reading() : it->second;
}

//===----------------------------------------------------------------------===//
// nn.parameter
//===----------------------------------------------------------------------===//

static mlir::Type storedType(Type type, MLIRContext *context) {
  switch (type) {
  case Type::Float16:
    return FloatType::getF16(context);
  case Type::BFloat16:
    return FloatType::getBF16(context);
  case Type::Double:
    return FloatType::getF64(context);
  default:
    return FloatType::getF32(context);
  }
}

LogicalResult emitParameters(ModuleOp module, const Decisions &decisions, Weights &weights, const ImportOptions &options) {
  MLIRContext *context = module.getContext();
  OpBuilder b(context);
  b.setInsertionPointToStart(module.getBody());
  for (auto &p : decisions.parameters()) {
    const TensorProto &t = *p->tensor;
    Location loc = NameLoc::get(b.getStringAttr(p->firstUser));
    auto place = [&](const TensorProto &of) -> FailureOr<Place> {
      if (of.type == Type::Double)
        return emitError(loc) << "parameter '" << of.name
                              << "' is stored as f64, which is not trained; export the model in f32 (model.float())";
      if (!of.hasData)
        return emitError(loc) << "parameter '" << of.name << "' has no data in the file; pass --init random to train from random values";
      auto at = weights.place(of);
      if (!at)
        return emitError(loc) << "parameter '" << of.name << "' stores its " << name(of.type)
                              << " values as numbers in the protobuf; save the model with raw_data or external data";
      return *at;
    };
    auto type = RankedTensorType::get(t.dims, b.getF32Type());
    auto op = b.create<nn::ParameterOp>(loc, b.getStringAttr(p->name), TypeAttr::get(type), b.getBoolAttr(p->trainable), StringAttr(),
                                        IntegerAttr(), IntegerAttr(), TypeAttr(), StringAttr(), FloatAttr(), ArrayAttr());
    if (options.init == Init::Random) {
      bool ones = p->role == "scale" && !p->plusOne, zeros = p->role == "bias" || (p->role == "scale" && p->plusOne);
      op.setInit(ones ? "ones" : zeros ? "zeros" : "normal");
      if (!ones && !zeros) op.setInitStdAttr(b.getF32FloatAttr(0.02f));
    } else {
      auto at = place(t);
      if (failed(at)) return failure();
      op.setFile(at->file);
      op.setOffset(at->offset);
      op.setBytes(at->bytes);
      op.setStored(storedType(t.type, context));
    }
    SmallVector<mlir::Attribute> aliases;
    for (const Parameter::Alias &a : p->aliases) {
      NamedAttrList fields;
      fields.set("name", b.getStringAttr(a.tensor->name));
      fields.set("transposed", b.getBoolAttr(a.transposed));
      auto at = place(*a.tensor);
      if (failed(at)) return failure();
      fields.set("file", b.getStringAttr(at->file));
      fields.set("offset", b.getI64IntegerAttr(int64_t(at->offset)));
      fields.set("bytes", b.getI64IntegerAttr(int64_t(at->bytes)));
      fields.set("stored", TypeAttr::get(storedType(a.tensor->type, context)));
      aliases.push_back(fields.getDictionary(context));
    }
    if (!aliases.empty()) op.setAliasesAttr(b.getArrayAttr(aliases));
  }
  return success();
}

} // namespace zero::onnx
