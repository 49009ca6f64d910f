//===- origin.cpp - modules, calls and lost names ----------------------------------------------------===//
#include "compiler/onnx/origin.h"
#include "compiler/onnx/roles.h"
#include "compiler/onnx/text.h"
#include "llvm/ADT/StringExtras.h"

namespace zero::onnx {

bool isModuleName(StringRef name) { return name.contains('.') && !name.contains('/') && !name.contains("::"); }

/// PyTorch's older exporter names nodes "/a/a.1/h.0/MatMul_3": a part repeats the one before where that is a called container.
static std::string moduleInName(StringRef name) {
  if (!name.consume_front("/")) return {};
  std::string module;
  StringRef before;
  for (size_t end = name.find('/'); end != StringRef::npos; end = name.find('/')) {
    StringRef part = name.take_front(end);
    if (!before.empty() && part.starts_with((before + ".").str())) module.resize(module.size() - before.size());
    if (!module.empty() && module.back() != '.') module += '.';
    module += part;
    before = part;
    name = name.drop_front(end + 1);
  }
  return module;
}

std::string moduleOf(const Node &node) { return node.module.empty() ? moduleInName(node.name) : node.module.str(); }

std::string pathOf(const Node &node) {
  StringRef name = !node.name.empty() ? node.name : node.outputs.empty() ? StringRef() : node.outputs[0];
  std::string module = moduleOf(node);
  if (name.starts_with("/")) name = name.rsplit('/').second;
  return printable(module.empty() ? name.str() : module + "/" + name.str());
}

bool isDetach(const Node &node) { return node.op == "Identity" && node.call.contains("=torch.ops.aten.detach"); }

llvm::SmallVector<StringRef> argumentsOf(const Node &node, StringRef function) {
  llvm::SmallVector<StringRef> arguments;
  StringRef call = node.call, name = "=torch.ops.aten.", rest = "](args = (";
  size_t at = call.find(name);
  if (at == StringRef::npos || !call.drop_front(at + name.size()).starts_with(function)) return arguments;
  call = call.drop_front(at + name.size() + function.size());
  if (!call.consume_front(rest)) return arguments;
  call.take_until([](char c) { return c == ')'; }).split(arguments, ',');
  for (StringRef &argument : arguments) argument = argument.trim();
  return arguments;
}

bool exportedSince(const Model &model, unsigned major, unsigned minor) {
  auto [first, rest] = model.producerVersion.split('.');
  unsigned itsMajor = 0, itsMinor = 0;
  if (model.producer != "pytorch" || first.getAsInteger(10, itsMajor)) return false;
  if (rest.take_while(llvm::isDigit).getAsInteger(10, itsMinor)) return false;
  return std::pair(itsMajor, itsMinor) >= std::pair(major, minor);
}

std::optional<int64_t> paddingRow(const Node &node) {
  auto arguments = argumentsOf(node, "embedding.default");
  int64_t row = -1; // which is none
  if (arguments.size() < 3 || arguments[2].getAsInteger(10, row) || row < 0) return std::nullopt;
  return row;
}

/// "h.0.ln_1.weight" is "p_h_0_ln_1_weight" where it is an argument, a buffer "b_…", and a tensor that the program itself holds "c_…".
static std::string argumentName(StringRef name, StringRef kind = "p_") {
  std::string text = kind.str();
  for (char c : name) text += llvm::isAlnum(c) ? llvm::toLower(c) : '_';
  return text;
}

/// "%p_head_weight" and its like among the arguments of the call a node came from:
/// "%linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x, %p_head_weight), kwargs = {})".
static llvm::SmallVector<StringRef> namesIn(const Node *node) {
  llvm::SmallVector<StringRef> found;
  if (!node) return found;
  StringRef call = node->call.substr(node->call.find(" = "));
  for (size_t at = call.find('%'); at != StringRef::npos; at = call.find('%')) {
    call = call.drop_front(at + 1);
    found.push_back(call.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; }));
  }
  return found;
}

llvm::SmallVector<StringRef> argumentNames(const Node &node) { return namesIn(&node); }

bool isNameOf(StringRef argument, StringRef name) {
  return llvm::any_of(llvm::ArrayRef<StringRef>{"p_", "b_", "c_"}, [&](StringRef kind) { return argument == argumentName(name, kind); });
}

bool readsDetached(const Node &node) {
  return llvm::any_of(namesIn(&node), [](StringRef argument) { return argument.starts_with("detach"); });
}

/// What the file calls the tensor: an Identity node may give it a name of a module's.
static StringRef nameIn(const Use &use) { return use.alias.empty() ? use.tensor->name : use.alias; }

/// Whether it is the name that PyTorch had for the tensor: a module's, or beside nodes "/Mul" of the older exporter, which writes "::" or
/// "/" into names that it makes up, the exported model's own, "temperature".
static bool isPyTorchs(StringRef name, const Node *node) {
  return isModuleName(name) || (node && node->name.starts_with("/") && !name.empty() && !name.contains('/') && !name.contains("::"));
}

Declared declaredAs(const Use &use) {
  StringRef name = use.moved ? use.tensor->name : nameIn(use); // one that was made up, "val_3", no call reads as "p_val_3"
  auto reads = namesIn(use.moved ? use.moved : use.node);
  if (llvm::is_contained(reads, argumentName(name))) return Declared::Parameter;
  bool fixed = llvm::is_contained(reads, argumentName(name, "b_")) || llvm::is_contained(reads, argumentName(name, "c_"));
  // "val_3", computed within a call of no parameter, is of the buffer that the call reads.
  auto isOf = [&](StringRef kind) { return llvm::any_of(reads, [&](StringRef read) { return read.starts_with(kind); }); };
  bool madeUp = !isModuleName(name) && name.starts_with("val_") && !llvm::is_contained(reads, name);
  return fixed || (madeUp && isOf("b_") && !isOf("p_")) ? Declared::Buffer : Declared::Unsaid;
}

bool maybeOfModel(const Use &use) {
  StringRef name = use.tensor->name;
  if (isModuleName(name)) return true;
  if (use.tensor->inNode || name.contains('/') || name.contains("::") || name.empty() || llvm::isDigit(name.back())) return false;
  return !use.node || use.node->call.empty() || declaredAs(use) != Declared::Unsaid;
}

StringRef computedBy(const Use &use) {
  static const llvm::StringSet<> moving{"alias",   "as_strided", "cat",     "chunk",   "clone",  "contiguous", "detach",    "embedding",
                                        "expand",  "flatten",    "flip",    "full",    "gather", "getitem",    "index",     "index_select",
                                        "movedim", "narrow",     "ones",    "permute", "repeat", "reshape",    "roll",      "select",
                                        "slice",   "split",      "squeeze", "stack",   "t",      "to",         "transpose", "type_as",
                                        "unbind",  "unsqueeze",  "view",    "zeros"};
  StringRef name = nameIn(use);
  if (isModuleName(name) || !llvm::is_contained(namesIn(use.node), name)) return {};
  StringRef call = name.rtrim("0123456789");
  call.consume_back("_");
  StringRef made = call;
  made.consume_front("new_");
  made.consume_front("_unsafe_");
  made.consume_back("_copy");
  made.consume_back("_like");
  return moving.contains(made) ? StringRef() : call;
}

Origins::Origins(llvm::ArrayRef<Site> sites) {
  for (const Site &s : sites) {
    for (StringRef name : {s.use.tensor->name, s.use.alias}) {
      if (!isModuleName(name)) continue;
      names.push_back(name);
      mangled.insert(argumentName(name));
    }
    if (isPyTorchs(s.use.alias, s.use.node)) renamed.insert(s.use.tensor->name);
  }
  llvm::sort(names);
  for (const Site &s : sites)
    for (StringRef argument : namesIn(s.use.node))
      if (argument.starts_with("p_")) arguments.insert(argument);
  for (const Site &s : sites)
    if (StringRef name = nameIn(s.use); isPyTorchs(name, s.use.node) && !(s.use.node && isCalledIn(moduleOf(*s.use.node), name)))
      usedElsewhere.insert(name);
}

bool Origins::owns(StringRef module) const {
  std::string prefix = (module + ".").str();
  auto it = llvm::lower_bound(names, StringRef(prefix));
  return it != names.end() && it->starts_with(prefix);
}

const Origins::Traces &Origins::traces(const Site &site) const {
  auto &known = read[&site];
  if (known) return *known;
  known = std::make_unique<Traces>();
  StringRef name = nameIn(site.use);
  if (isPyTorchs(name, site.use.node)) known->name = name;
  if (site.use.node) known->module = moduleOf(*site.use.node);
  known->reads = namesIn(site.use.node);
  std::string own = known->name.empty() ? "" : argumentName(known->name);
  llvm::SmallVector<StringRef, 2> all, lost;
  for (StringRef argument : known->reads) {
    if (!argument.starts_with("p_")) continue;
    all.push_back(argument);
    if (!mangled.contains(argument)) lost.push_back(argument);
  }
  if (auto it = llvm::find(all, own); it != all.end())
    known->claims = {*it};
  else
    known->claims = lost.empty() ? all : lost;
  return *known;
}

/// PyTorch 2.5 numbers an argument that comes again: "p_embed_weight_1" is "p_embed_weight", unless a module has a parameter of that name.
StringRef Origins::unnumbered(StringRef argument) const {
  StringRef first = argument.rtrim("0123456789");
  bool again = first.size() < argument.size() && first.consume_back("_") && arguments.contains(first) && !mangled.contains(argument);
  return again ? first : argument;
}

Sameness Origins::byCall(const Site &a, const Site &b) const {
  const Traces &left = traces(a), &right = traces(b);
  if (!left.claims.empty() && !right.claims.empty()) {
    auto isRight = [&](StringRef p) { return llvm::any_of(right.claims, [&](StringRef q) { return unnumbered(p) == unnumbered(q); }); };
    return llvm::any_of(left.claims, isRight) ? Sameness::Same : Sameness::Different;
  }
  // A value computed of parameters alone keeps the name of the first call, "neg", where it was merged with "neg_1".
  StringRef name = a.use.tensor->name;
  if (a.use.tensor != b.use.tensor || isModuleName(name)) return Sameness::Unsaid;
  auto family = [](StringRef n) { return n.rtrim("0123456789").rtrim('_'); };
  auto readAs = [&](const Traces &use) {
    if (llvm::is_contained(use.reads, name)) return name;
    auto kin = llvm::find_if(use.reads, [&](StringRef other) { return family(other) == family(name); });
    return kin == use.reads.end() ? StringRef() : *kin;
  };
  StringRef first = readAs(left), second = readAs(right);
  if (first.empty() || second.empty()) return Sameness::Unsaid;
  return first == second ? Sameness::Same : Sameness::Different;
}

Sameness Origins::byName(const Site &a, const Site &b) const {
  StringRef first = traces(a).name, second = traces(b).name;
  if (first.empty() || second.empty()) return Sameness::Unsaid;
  if (first != second) return Sameness::Different;
  return !usedElsewhere.contains(first) || renamed.contains(a.use.tensor->name) ? Sameness::Same : Sameness::Unsaid;
}

/// The older exporter names the calls of a module after the first "value_1", "value_2", and leaves out modules that are not called
/// themselves: "layer.1.LayerNorm" is "layer.1.output.LayerNorm", where another than its parent calls it.
bool Origins::isCalledIn(StringRef module, StringRef parameter) const {
  StringRef own = parameter.contains('.') ? parameter.rsplit('.').first : StringRef(); // the exported model is no module of another
  if (module == own) return true;
  if (module.empty() || owns(module)) return false;
  StringRef call = module.rtrim("0123456789");
  if (call.size() == module.size() || !call.consume_back("_")) call = module;
  llvm::SmallVector<StringRef> parts, all;
  call.split(parts, '.');
  own.split(all, '.');
  if (parts.back() != all.back()) return false;
  const StringRef *next = parts.begin();
  for (StringRef part : all) next += next != parts.end() && *next == part;
  return next == parts.end();
}

Sameness Origins::byModule(const Site &a, const Site &b) const {
  if (isModuleName(a.use.tensor->name) || isModuleName(b.use.tensor->name)) return Sameness::Unsaid;
  StringRef first = traces(a).module, second = traces(b).module;
  if (first.empty() || second.empty()) return Sameness::Unsaid;
  if (first == second) { // a folded transposition of one weight, as often as its module is called
    bool folded = a.use.tensor != b.use.tensor && a.role == "matmul" && b.role == "matmul" && a.use.op == b.use.op && a.summed == b.summed;
    return folded ? Sameness::Same : Sameness::Unsaid;
  }
  if (a.use.alias.empty() && b.use.alias.empty()) return Sameness::Unsaid;
  // Merged under a name that was made up: of two modules that have parameters of their own it was two.
  llvm::SmallVector<StringRef> left, right;
  first.split(left, '.');
  second.split(right, '.');
  size_t equal = 0, length = 0;
  while (equal < left.size() && equal < right.size() && left[equal] == right[equal]) length += left[equal++].size() + 1;
  if (equal == left.size() || equal == right.size()) return Sameness::Unsaid;
  bool apart = owns(first.take_front(length + left[equal].size())) && owns(second.take_front(length + right[equal].size()));
  return apart ? Sameness::Different : Sameness::Unsaid;
}

Sameness Origins::compare(const Site &a, const Site &b) const {
  if (a.use.node && a.use.node == b.use.node && a.use.input == b.use.input && a.use.tensor == b.use.tensor)
    return Sameness::Same; // another iteration of a loop
  if (Sameness s = byCall(a, b); s != Sameness::Unsaid) return s;
  if (Sameness s = byName(a, b); s != Sameness::Unsaid) return s;
  return byModule(a, b);
}

std::string Origins::nameOf(const Site &site) const {
  if (isModuleName(site.use.alias)) return printable(site.use.alias);
  // Of the module's own parameters in the call the one that is lost, or the one whose name ends as the role's does.
  const Traces &use = traces(site);
  const std::string &module = use.module;
  std::string name;
  std::string prefix = module.empty() ? "p_" : argumentName(module) + "_";
  for (StringRef p : use.claims) {
    if (!p.starts_with(prefix) || (use.claims.size() > 1 && p.ends_with("bias") != (site.role == "bias"))) continue;
    if (!name.empty()) return {};
    name = (module.empty() ? "" : module + ".") + p.drop_front(prefix.size()).str();
  }
  return printable(name);
}

} // namespace zero::onnx
