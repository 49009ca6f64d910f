//===- forward.cpp - the function @forward: arguments, body, results -----------------------------===//
#include "compiler/onnx/importer.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace zero::onnx {

/// The name --bind knows a symbolic dimension by.
static std::string symbolOf(const ValueInfo &v, size_t i) {
  return v.dims[i].parameter.empty() ? v.name.str() + "." + std::to_string(i) : v.dims[i].parameter.str();
}

/// "batch=N,seq=N": all that --bind must still say, so that nobody has to find out one by one.
std::string Importer::unbound(const llvm::StringSet<> &initializers) const {
  std::vector<std::string> missing;
  for (const ValueInfo &v : model.graph.inputs)
    for (size_t i = 0; i < v.dims.size() && !initializers.contains(v.name); ++i)
      if (std::string size = symbolOf(v, i) + "=N";
          v.dims[i].size < 0 && !options.bind.count(symbolOf(v, i)) && !llvm::is_contained(missing, size))
        missing.push_back(size);
  return llvm::join(missing, ",");
}

/// The type of an input, with what --bind says of its dimensions, and their names: empty for those of fixed size. Null after a report.
RankedTensorType Importer::typeOf(const ValueInfo &v, Location loc, const llvm::StringSet<> &initializers,
                                  SmallVector<std::string> &symbols) {
  std::string what = "input '" + v.name.str() + "'";
  auto element = v.tensor ? elementType(v.type, module.getContext()) : mlir::Type();
  if (!element) {
    emitError(loc) << what << " is no tensor of a type that is read (" << name(v.type) << ")";
    return {};
  }
  if (!v.ranked) {
    emitError(loc) << what << " has no shape; export the model with shapes";
    return {};
  }
  Ints shape;
  for (auto [i, d] : llvm::enumerate(v.dims)) {
    std::string symbol = symbolOf(v, i);
    int64_t size = d.size;
    bool isFixed = size >= 0 && d.parameter.empty();
    auto bound = isFixed ? options.bind.end() : options.bind.find(symbol);
    if (bound != options.bind.end()) {
      size = bound->second;
    } else if (size < 0) {
      emitError(loc) << what << " has the dynamic dimension '" << symbol << "' (dimension " << i << "); give it a size with --bind "
                     << unbound(initializers);
      return {};
    }
    if (size <= 0) {
      emitError(loc) << what << ": dimension " << i << " ('" << symbol << "') has size " << size << ", which is not positive";
      return {};
    }
    shape.push_back(size);
    symbols.push_back(isFixed ? "" : symbol);
  }
  if (!elementsOf(shape) || *elementsOf(shape) > int64_t(1) << 48) {
    emitError(loc) << what << " is too large";
    return {};
  }
  return RankedTensorType::get(shape, element);
}

/// Whether each --bind names one of these dimensions.
bool Importer::bindsOnly(const llvm::StringSet<> &dimensions, Location loc) {
  for (auto &[name, size] : options.bind)
    if (!dimensions.contains(name)) {
      std::string list;
      for (const ValueInfo &v : model.graph.inputs)
        for (const Dim &d : v.dims) {
          std::string quoted = ("'" + Twine(d.parameter) + "'").str();
          if (d.parameter.empty() || StringRef(list).contains(quoted)) continue;
          if (!list.empty()) list += ", ";
          list += quoted;
        }
      emitError(loc) << "--bind " << name << "=" << size << " names no dimension of the model's inputs"
                     << (list.empty() ? ", which are all fixed" : "; there are " + list);
      return false;
    }
  return true;
}

bool Importer::arguments(func::FuncOp f) {
  llvm::StringSet<> initializers, dimensions;
  for (const TensorProto &t : model.graph.initializers) initializers.insert(t.name);
  Builder b(module.getContext());
  for (const ValueInfo &v : model.graph.inputs) {
    if (initializers.contains(v.name)) // before IR 4 initializers were inputs with a default
      continue;
    Location loc = NameLoc::get(b.getStringAttr(v.name));
    SmallVector<std::string> symbols;
    RankedTensorType type = typeOf(v, loc, initializers, symbols);
    if (!type) return false;
    for (size_t i = 0; i < v.dims.size(); ++i) dimensions.insert(symbolOf(v, i));
    unsigned index = f.getNumArguments();
    f.insertArgument(index, type, b.getDictionaryAttr(b.getNamedAttr(nn::NnDialect::kNameAttr, b.getStringAttr(v.name))), loc);
    if (llvm::any_of(symbols, [](StringRef s) { return !s.empty(); }))
      f.setArgAttr(index, nn::NnDialect::kSymbolsAttr, b.getStrArrayAttr(SmallVector<StringRef>(symbols.begin(), symbols.end())));
  }
  return bindsOnly(dimensions, f.getLoc());
}

/// What depends on no parameter is not detached: passes see its formulas as they are.
void Importer::settleDetached(Block &block) {
  llvm::DenseSet<Value> ofParameters;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    bool depends = isa<nn::GetOp>(op) || llvm::any_of(op.getOperands(), [&](Value v) { return ofParameters.contains(v); });
    auto detached = dyn_cast<nn::DetachOp>(op);
    if (depends && !detached) ofParameters.insert(op.result_begin(), op.result_end());
    if (!detached) continue;
    // The padding of an embedding is no detach() of the model.
    auto choice = detached->hasOneUse() ? dyn_cast<nn::SelectOp>(*detached->user_begin()) : nn::SelectOp();
    if (depends && choice && choice.getOnFalse() == detached.getInput()) continue;
    if (depends) {
      auto named = dyn_cast<NameLoc>(op.getLoc());
      notes.count(NoteKind::Detached, named ? named.getName().getValue() : StringRef());
    } else {
      detached.getResult().replaceAllUsesWith(detached.getInput());
      op.erase();
    }
  }
}

/// Values and names of the outputs; none after a report.
SmallVector<std::pair<Value, mlir::Attribute>> Importer::outputs(Scope &top) {
  Builder b(module.getContext());
  SmallVector<std::pair<Value, mlir::Attribute>> results;
  for (const ValueInfo &o : model.graph.outputs) {
    emitter->at(NameLoc::get(b.getStringAttr(o.name)), "output '" + o.name.str() + "'");
    Entry *e = top.find(o.name);
    if (!e || !e->missing.empty()) {
      emitter->fail(e ? e->missing + " does not compute it in the form that is supported" : "no node computes it");
      return {};
    }
    Val v = fetch(*e, nullptr);
    if (!v || v.sequence) {
      emitter->fail("it is no tensor");
      return {};
    }
    if (v.masked) {
      emitter->fail("it has as many rows as a mask of the data chooses, which only the run knows");
      return {};
    }
    results.push_back({emitter->materialise(v), b.getStringAttr(o.name)});
  }
  if (results.empty()) emitError(module.getLoc()) << "the model has no outputs";
  return results;
}

/// A node becomes a handful of operations, a convolution thousands.
static constexpr uint64_t kLeastOperations = 200'000, kOperationsPerNode = 64;

LogicalResult Importer::run() {
  MLIRContext *context = module.getContext();
  OpBuilder b(context);
  b.setInsertionPointToEnd(module.getBody());
  function = b.create<func::FuncOp>(module.getLoc(), "forward", b.getFunctionType({}, {}));
  Block *entry = function.addEntryBlock();
  if (!arguments(function)) return failure();
  b.setInsertionPointToEnd(entry);
  mostOperations = kLeastOperations + kOperationsPerNode * model.countNodes();
  emitter = std::make_unique<Emitter>(b, options.maxConstantBytes, mostOperations);

  Scope top;
  top.opsets = &model.opsets;
  for (const TensorProto &t : model.graph.initializers) top.names[t.name] = Entry{{}, &t, {}, {}};
  for (BlockArgument a : function.getArguments())
    top.names[function.getArgAttrOfType<StringAttr>(a.getArgNumber(), nn::NnDialect::kNameAttr).getValue()] =
        Entry{Val(a), nullptr, {}, {}};
  for (const ValueInfo &v : model.graph.inputs)
    if (Entry *e = top.find(v.name); e && !isFloat(v.type)) e->val.integer = v.type;
  llvm::StringSet<> wanted;
  for (const ValueInfo &o : model.graph.outputs) wanted.insert(o.name);
  if (!nodes(model.graph.nodes, wanted, top)) return failure();

  present = &top;
  SmallVector<Value> results;
  SmallVector<mlir::Attribute> names;
  for (auto [value, name] : outputs(top)) results.push_back(value), names.push_back(name);
  if (results.empty()) return failure();
  b.setInsertionPointToEnd(entry);
  b.create<func::ReturnOp>(module.getLoc(), results);
  function.setFunctionType(b.getFunctionType(entry->getArgumentTypes(), ValueRange(results).getTypes()));
  for (auto [i, name] : llvm::enumerate(names)) function.setResultAttr(i, nn::NnDialect::kNameAttr, name);
  settleDetached(*entry);
  settleParts();
  // What only index arithmetic that folded away has read.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*entry)))
    if (isOpTriviallyDead(&op)) op.erase();
  return success();
}

} // namespace zero::onnx
