//===- importer.cpp - names, scopes and order of an ONNX graph -----------------------------------===//
#include "compiler/onnx/importer.h"
#include "compiler/onnx/masked_rows.h"
#include "compiler/onnx/origin.h"
#include "compiler/onnx/text.h"
#include "compiler/onnx/wire.h"

using namespace mlir;

namespace zero::onnx {

constexpr int kMaxNesting = 32;

Importer::Entry *Importer::Scope::find(StringRef name) {
  for (Scope *s = this; s; s = s->parent)
    if (auto it = s->names.find(name); it != s->names.end()) return &it->second;
  return nullptr;
}

Importer::Importer(const Model &model, Weights &weights, const ImportOptions &options, ModuleOp module, bool quiet, InitializerUse use)
    : model(model), weights(weights), options(options), module(module), quiet(quiet), use(std::move(use)) {
  registerArithmetic(registry);
  registerElementwise(registry);
  registerTrigonometry(registry);
  registerIntegers(registry);
  registerMovement(registry);
  registerReductions(registry);
  registerNorms(registry);
  registerMatmul(registry);
  registerEinsum(registry);
  registerFourier(registry);
  registerConvolution(registry);
  registerColumns(registry);
  registerPooling(registry);
  registerResize(registry);
  registerRandom(registry);
  registerRecurrent(registry);
  registerGridSample(registry);
  registerAttention(registry);
  registerShape(registry);
  registerGathers(registry);
  registerScatters(registry);
  registerSelections(registry);
  registerLosses(registry);
  registerControl(registry);
  registerQuantization(registry);
}

Val Importer::constant(const TensorProto &t, Emitter &e) {
  Val &known = constants[&t];
  if (known) return known;
  if (!elementType(t.type, module.getContext()))
    return e.fail("tensor '" + t.name + "' has element type " + name(t.type) + ", which is not read");
  if (!t.hasData)
    return e.fail("tensor '" + t.name + "' is used as a constant but has no data in the file (only parameters may be left out)");
  if (t.elements * 4 > options.maxConstantBytes)
    return e.fail("constant '" + t.name + "' of " + Twine(t.bytes()) + " bytes is larger than the " + Twine(options.maxConstantBytes) +
                  " allowed");
  StringRef raw = weights.bytes(t);
  if (options.reading) options.reading->bytes = weights.mapped();
  known = toHost(raw, t.type, t.dims, module.getContext());
  if (!isFloat(t.type)) known.integer = t.type;
  return known;
}

std::shared_ptr<const nn::Tensor> Importer::known(const Val &v, Emitter &e) {
  if (v.isConstant()) return v.constant;
  if (!v.value || !v.value.getDefiningOp()) return nullptr;
  auto it = candidates.find(v.value.getDefiningOp());
  if (it == candidates.end() || !it->second->hasData) return nullptr;
  forcedConstants.insert(it->second);
  return constant(*it->second, e).constant;
}

Value Importer::seed() {
  if (!seedArgument) {
    auto type = RankedTensorType::get({2}, IntegerType::get(module.getContext(), 64));
    unsigned index = function.getNumArguments();
    Builder b(module.getContext());
    function.insertArgument(index, type,
                            b.getDictionaryAttr({b.getNamedAttr(nn::NnDialect::kNameAttr, b.getStringAttr("seed")),
                                                 b.getNamedAttr(nn::NnDialect::kRoleAttr, b.getStringAttr("seed"))}),
                            function.getLoc());
    seedArgument = function.getArgument(index);
  }
  return seedArgument;
}

std::optional<int64_t> Importer::opsetOf(StringRef domain, const Scope &scope) const {
  for (const OpsetImport &o : *scope.opsets)
    if (o.domain == domain) return o.version;
  return std::nullopt;
}

Val Importer::fetch(Entry &entry, const Node *user, size_t input) {
  if (!entry.initializer) return entry.val;
  const TensorProto &t = *entry.initializer;
  if (!isFloat(t.type)) return constant(t, *emitter);
  Use u{&t, uses[&t]++, user ? user->op : StringRef(), {}, user, input, entry.alias, entry.moved};
  u.statistic = u.op == "BatchNormalization" && input >= 3;
  if (!entry.alias.empty())
    u.user = printable(entry.alias);
  else if (user)
    u.user = present->prefix + printable(user->name.empty() ? (user->outputs.empty() ? StringRef() : user->outputs[0]) : user->name);
  Val v = use(u, *emitter);
  if (v && v.value)
    if (auto get = v.value.getDefiningOp<nn::GetOp>()) candidates[get] = &t;
  return v;
}

/// Names that `node` reads, those of its subgraphs included.
static void readNames(const Node &node, llvm::StringSet<> &names, int depth = 0) {
  for (StringRef i : node.inputs) names.insert(i);
  for (const Attribute &a : node.attributes)
    if (a.graph && depth < kMaxNesting) {
      for (const Node &n : a.graph->nodes) readNames(n, names, depth + 1);
      for (const ValueInfo &o : a.graph->outputs) names.insert(o.name);
    }
}

bool Importer::nodes(const std::vector<Node> &list, const llvm::StringSet<> &wanted, Scope &scope) {
  // Nodes nobody needs are not looked at, so an unsupported one among them does no harm.
  llvm::StringSet<> needed(wanted);
  std::vector<bool> live(list.size());
  for (size_t i = list.size(); i-- > 0;) {
    live[i] = llvm::any_of(list[i].outputs, [&](StringRef o) { return !o.empty() && needed.contains(o); });
    if (live[i]) readNames(list[i], needed);
  }
  Scope *outer = std::exchange(present, &scope);
  bool ok = true;
  for (size_t i = 0; ok && i < list.size(); ++i)
    if (live[i]) ok = node(list[i], scope);
  present = outer;
  return ok;
}

/// Functions that call functions, and loops, can grow without bound from a few bytes.
bool Importer::visit() {
  if (++visited <= mostOperations) return true;
  emitter->fail("the graph has more than the " + Twine(mostOperations) +
                " nodes that its size allows once its functions are inlined and its loops unrolled");
  return false;
}

/// Names of a graph are unique. PyTorch's newer exporter calls results after operations, "t" or "relu", and does not look whether a
/// parameter or an input is called so.
bool Importer::definesNew(const Node &n, const Scope &scope) {
  for (StringRef name : n.outputs) {
    if (name.empty()) continue;
    auto before = scope.names.find(name);
    if (before == scope.names.end()) continue;
    const Entry &entry = before->second;
    const char *whose = entry.initializer                                 ? "a weight"
                        : isa_and_nonnull<BlockArgument>(entry.val.value) ? "an input"
                                                                          : "another node's result";
    emitter->fail(
        "its result is named '" + printable(name.str()) + "', as is " + whose +
        ", and which of the two a node reads cannot be told; give that another name in PyTorch, or export the model inside another "
        "module");
    return false;
  }
  return true;
}

/// What a function of the model, or the operator's handler, makes of a node; a report where there is neither.
Vals Importer::resultsOf(NodeContext &c, Scope &scope) {
  const Node &n = c.node;
  auto function =
      llvm::find_if(model.functions, [&](const Function &f) { return f.domain == n.domain && f.name == n.op && f.overload == n.overload; });
  if (function != model.functions.end()) return inlineFunction(*function, c, scope);
  if (!n.domain.empty())
    return c.fail("operators of domain '" + n.domain + "' are not read; export the model with standard ONNX operators only");
  auto op = registry.find(n.op);
  if (op == registry.end()) return c.fail("operator " + n.op + " of opset " + Twine(c.opset) + " (default domain) is not supported");
  if (op->second.since > c.opset && !quiet)
    emitter->warn("the operator came with opset " + Twine(op->second.since) + " but the model declares opset " + Twine(c.opset) +
                  "; it is read as opset " + Twine(op->second.since));
  c.opset = std::max(c.opset, op->second.since);
  auto sequence = op->second.sequences ? c.inputs.end() : llvm::find_if(c.inputs, [](const Val &v) { return bool(v.sequence); });
  if (sequence != c.inputs.end())
    return c.fail("input " + Twine(sequence - c.inputs.begin()) + " is a sequence of tensors; a tensor is needed here");
  bool masked = llvm::any_of(c.inputs, [](const Val &v) { return bool(v.masked); });
  return masked ? handleMaskedRows(c, op->second.handler) : op->second.handler(c);
}

bool Importer::node(const Node &n, Scope &scope) {
  // "transformer.h.3.mlp/node_addmm_14": where PyTorch says the node stands, and its name in the file.
  std::string label = scope.prefix + printable((n.module.empty() ? "" : n.module.str() + "/") +
                                               (n.name.empty() ? (n.outputs.empty() ? StringRef() : n.outputs[0]) : n.name).str());
  std::string kind = printable((n.domain.empty() ? "" : n.domain.str() + "::") + n.op.str());
  auto named = StringAttr::get(module.getContext(), label);
  emitter->at(NameLoc::get(named), "node '" + label + "' (" + kind + ")");
  if (options.reading) options.reading->node = named.data();
  if (!visit() || !definesNew(n, scope)) return false;
  bool hasWeights = n.op == "Gemm" || n.op == "MatMul" || n.op == "Conv" || n.op == "ConvTranspose";
  if (hasWeights && !argumentsOf(n, "_native_batch_norm_legit_functional.default").empty()) {
    emitter->fail(
        "the exporter has folded into it a BatchNormalization that the model, in train(), makes by the batch's own statistics, which "
        "the file no longer has; export with model.eval(), dynamo=True and optimize=False, as models/export.py does");
    return false;
  }
  auto opset = opsetOf(n.domain, scope);

  NodeContext c{*this, *emitter, n, opset.value_or(0), {}};
  for (StringRef name : n.inputs) {
    if (name.empty()) {
      c.inputs.push_back({});
      continue;
    }
    Entry *entry = scope.find(name);
    if (!entry) {
      emitter->fail(
          "it reads '" + name + "', which no node before it, input or initializer defines" +
          (isModuleName(name) ? "; if that is a parameter, the model was exported with export_params=False: leave that out" : ""));
      return false;
    }
    if (n.domain.empty() && n.op == "Identity" && entry->initializer && !n.outputs.empty() && !isDetach(n)) {
      const Node *moved = entry->moved || n.call.empty() ? entry->moved : &n;
      scope.names[n.outputs[0]] = Entry{{}, entry->initializer, n.outputs[0], {}, moved};
      return true;
    }
    if (!entry->missing.empty()) {
      emitter->fail("it reads '" + name + "', which " + entry->missing + " does not compute in the form that is supported");
      return false;
    }
    c.inputs.push_back(fetch(*entry, &n, c.inputs.size()));
    if (emitter->failed()) return false;
  }
  Vals results = resultsOf(c, scope);
  if (emitter->failed()) return false;
  for (Val &r : results)
    for (const Val &x : c.inputs) // what an operator makes of integers is of their type, unless it says so
      if (r && x && !r.sequence && !x.sequence && r.integer == Type::Undefined && r.element() == x.element()) r.integer = x.integer;
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (n.outputs[i].empty()) continue;
    if (results.empty()) {
      emitter->fail("it gives no result");
      return false;
    }
    // An output the family does not compute is an error only where something reads it.
    Entry &entry = scope.names[n.outputs[i]] = Entry();
    if (i < results.size() && results[i])
      entry.val = results[i];
    else
      entry.missing = "node '" + label + "' (" + kind + ")";
  }
  return true;
}

Vals Importer::inlineFunction(const Function &f, NodeContext &call, Scope &scope) {
  if (scope.depth >= kMaxNesting) return call.fail("functions call each other more than " + Twine(kMaxNesting) + " deep");
  Scope body;
  body.depth = scope.depth + 1;
  body.opsets = f.opsets.empty() ? scope.opsets : &f.opsets;
  body.prefix = scope.prefix + printable(call.node.name.empty() ? call.node.op : call.node.name) + "/";
  for (const Attribute &a : f.defaults) body.attributes[a.name] = &a;
  for (const Attribute &a : call.node.attributes)
    if (const Attribute *real = call.attribute(a.name)) body.attributes[a.name] = real;
  for (size_t i = 0; i < f.inputs.size(); ++i) // what the call leaves out is absent inside, too
    body.names[f.inputs[i]] = call.has(i) ? Entry{call.inputs[i], nullptr, {}, {}} : Entry();
  llvm::StringSet<> wanted;
  for (StringRef o : f.outputs) wanted.insert(o);
  if (!nodes(f.nodes, wanted, body)) return {};
  Vals results;
  for (StringRef o : f.outputs) {
    Entry *e = body.find(o);
    results.push_back(e && e->missing.empty() ? fetch(*e, &call.node, results.size()) : Val());
  }
  return results;
}

Vals Importer::subgraph(const Graph &graph, NodeContext &at, ArrayRef<Val> inputs) {
  Scope scope;
  scope.parent = present;
  scope.opsets = present->opsets;
  scope.prefix = present->prefix;
  scope.depth = present->depth + 1;
  for (auto &a : present->attributes) scope.attributes[a.first()] = a.second;
  if (scope.depth >= kMaxNesting) return at.fail("graphs are nested too deep");
  if (!visit()) return {};
  for (const TensorProto &t : graph.initializers) scope.names[t.name] = Entry{{}, &t, {}, {}};
  for (auto [input, value] : llvm::zip(graph.inputs, inputs)) scope.names[input.name] = Entry{value, nullptr, {}, {}};
  llvm::StringSet<> wanted;
  for (const ValueInfo &o : graph.outputs) wanted.insert(o.name);
  Location outer = emitter->loc();
  std::string what = emitter->what();
  if (!nodes(graph.nodes, wanted, scope)) return {};
  emitter->at(outer, what);
  Vals results;
  for (const ValueInfo &o : graph.outputs) {
    Entry *e = scope.find(o.name);
    if (!e || !e->missing.empty()) return at.fail("its subgraph does not define its output '" + o.name + "'");
    results.push_back(fetch(*e, &at.node, results.size()));
  }
  return results;
}

} // namespace zero::onnx
