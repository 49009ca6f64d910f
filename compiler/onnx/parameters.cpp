//===- parameters.cpp - freezing, splitting merged initializers, tying ---------------------------===//
#include "compiler/onnx/parameters.h"
#include "compiler/onnx/content.h"
#include "compiler/onnx/text.h"
#include "compiler/onnx/ties.h"
#include "compiler/onnx/wire.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace zero::onnx {

Decisions::Decisions(ArrayRef<Site> sites, Weights &weights, const ImportOptions &options, Location loc, ImportReport &report)
    : sites(sites), weights(weights), options(options), loc(loc), report(report), origins(sites) {}

/// The name PyTorch had for a parameter, which all uses that know it agree on.
static std::string originOf(ArrayRef<const Site *> uses, const Origins &origins) {
  for (const Site *s : uses)
    if (std::string name = origins.nameOf(*s); !name.empty()) return name;
  return {};
}

/// The name of an initializer, and where an exporter has replaced it also PyTorch's.
static std::vector<std::string> ownNames(StringRef name, ArrayRef<const Site *> uses, const Origins &origins) {
  std::vector<std::string> names{name.str()};
  if (isModuleName(name)) return names;
  if (std::string origin = originOf(uses, origins); !origin.empty()) names.push_back(origin);
  return names;
}

/// What the flags' expressions are searched for in: these, and where an exporter has replaced the name also the nodes that use it.
static std::vector<std::string> namesOf(StringRef name, ArrayRef<const Site *> uses, const Origins &origins) {
  std::vector<std::string> names = ownNames(name, uses, origins);
  if (isModuleName(name)) return names;
  for (const Site *s : uses)
    if (s->use.node) names.push_back(pathOf(*s->use.node));
  return names;
}

/// A piece of a merged initializer is known by what it was called before, if that can be told.
static std::vector<std::string> namesOfPiece(StringRef name, ArrayRef<const Site *> uses, const Origins &origins) {
  if (std::string origin = originOf(uses, origins); !origin.empty()) return {origin};
  std::vector<std::string> names{name.str()};
  for (const Site *s : uses)
    if (s->use.node) names.push_back(pathOf(*s->use.node));
  return names;
}

/// For people: PyTorch's name, or the first node and how many others.
static std::string whereOf(ArrayRef<const Site *> uses, const std::string &origin) {
  if (!origin.empty()) return origin;
  std::vector<std::string> nodes;
  for (const Site *s : uses)
    if (s->use.node)
      if (std::string path = pathOf(*s->use.node); !llvm::is_contained(nodes, path)) nodes.push_back(path);
  if (nodes.size() < 2) return nodes.empty() ? "" : nodes[0];
  return nodes[0] + " and " + std::to_string(nodes.size() - 1) + " more";
}

Parameter *Decisions::add(std::string name, const Uses &uses) {
  while (!names.insert(name).second) name += "'";
  auto p = std::make_unique<Parameter>();
  const Site *first = uses.front();
  p->name = std::move(name);
  p->tensor = first->use.tensor;
  p->role = first->role;
  // An embedding that is also the output projection is an embedding.
  for (const Site *s : uses)
    if (s->role == "embedding") p->role = s->role;
  if (p->role.empty()) p->role = "--train";
  p->firstUser = first->use.user;
  p->plusOne = first->plusOne;
  p->uses = uses;
  list.push_back(std::move(p));
  return list.back().get();
}

static Decisions::Filling fillingOf(const TensorProto &t, const Content &content) { return {t.elements, t.type, content.at(0)}; }

/// The uses of one initializer, by the parameters they are of: exporters merge tensors of equal value. Where they do not say it, a tensor
/// of one repeated number is one for each use, as the zero biases of a fresh model are, and any other is one.
std::vector<Decisions::Uses> Decisions::split(const Uses &uses) {
  const TensorProto &t = *uses[0]->use.tensor;
  std::vector<Uses> pieces;
  if (!untied.empty() && untied.match(namesOf(t.name, uses, origins))) {
    for (const Site *s : uses) pieces.push_back({s});
    if (pieces.size() > 1) parted.insert(&t);
    return pieces;
  }
  Content content(t, weights);
  bool filled = content.isConstant() && !sharesLayers && !keptApart.count(fillingOf(t, content));
  for (const Site *s : uses) {
    auto fits = [&](const Uses &piece) {
      bool same = false;
      for (const Site *other : ArrayRef(piece).take_front(8)) {                    // those that come after say no more
        if (s->summed && other->summed && s->summed != other->summed) return true; // an embedding and an output projection
        Sameness said = origins.compare(*s, *other);
        if (said == Sameness::Different) return false;
        same |= said == Sameness::Same;
      }
      return same || !filled;
    };
    auto piece = llvm::find_if(pieces, fits);
    if (piece == pieces.end())
      pieces.push_back({s});
    else
      piece->push_back(s);
  }
  return pieces;
}

/// Whether nothing tells that these uses are of one parameter but that they share an initializer, as layers do that an exporter has merged
/// and that have lost their names since.
bool Decisions::maybeMerged(const Uses &uses) const {
  auto alike = [&](const Site *s) { return s->summed == uses[0]->summed; }; // else an embedding and an output projection
  return llvm::all_of(uses, alike) &&
         llvm::any_of(llvm::drop_begin(uses), [&](const Site *s) { return origins.compare(*uses[0], *s) == Sameness::Unsaid; });
}

void Decisions::become(const TensorProto &t, const Site *first, std::vector<Uses> pieces) {
  std::string name = t.name.str();
  bool filled = Content(t, weights).isConstant();
  // The name is that of the one which no Identity node calls otherwise, wherever the others stand.
  auto isNamed = [](const Uses &piece) { return llvm::any_of(piece, [](const Site *s) { return s->use.alias.empty(); }); };
  if (auto owner = llvm::find_if(pieces, isNamed); owner != pieces.end()) std::rotate(pieces.begin(), owner, owner + 1);
  if (!tied.empty()) { // pieces that the user calls one
    Uses together;
    unsigned joined = 0;
    llvm::erase_if(pieces, [&](const Uses &piece) {
      if (!tied.match(namesOfPiece(name, piece, origins))) return false;
      llvm::append_range(together, piece);
      ++joined;
      return true;
    });
    tiedAny |= joined > 1;
    if (!together.empty()) pieces.insert(pieces.begin(), std::move(together));
  }
  for (auto [i, piece] : llvm::enumerate(pieces)) {
    std::string origin = originOf(piece, origins);
    const Use &use = piece[0]->use;
    std::string place = !origin.empty() ? origin : use.node && !moduleOf(*use.node).empty() ? pathOf(*use.node) : use.user;
    Parameter *p = add(i ? name + "@" + place : name, piece);
    p->knownBy = pieces.size() > 1 ? namesOfPiece(name, piece, origins) : namesOf(name, piece, origins);
    p->place = i && !filled ? piece.front() : first; // layers of their own move as such, small vectors with the first
    p->where = i || !isModuleName(name) ? whereOf(piece, origin) : "";
    p->asked = train.match(p->knownBy);
    p->trainable = !freeze.match(p->knownBy) || p->asked;
    p->untied = parted.contains(&t);
    for (const Site *s : piece) readings[{&t, s->use.occurrence}] = {p, false};
  }
  if (pieces.size() > 1 && filled && !parted.contains(&t)) // other pieces are told of with all that starts equal
    report.warnings.push_back("'" + name + "' holds one number throughout and is used at " + std::to_string(pieces.size()) +
                              " places: an exporter merged equal tensors, so they are trained as " + std::to_string(pieces.size()) +
                              " parameters (--tie REGEX makes them one)");
}

void Decisions::decide(const TensorProto &t, const Uses &uses) {
  Uses asParameter;
  std::string why;
  for (const Site *s : uses) {
    if (!s->role.empty())
      asParameter.push_back(s);
    else if (!s->why.empty())
      why = s->why;
  }
  if (asParameter.empty()) {
    // Not by its nodes: an expression that means the parameters of a module would train its scales and masks.
    if (!train.match(ownNames(t.name, uses, origins))) {
      bool number = t.elements == 1 && isFloat(t.type) && llvm::any_of(uses, [](const Site *s) { return maybeOfModel(s->use); });
      // A setting or a parameter: nothing tells.
      if (why.empty()) why = number ? "one number, trained if --train names it" : "no parameter's use";
      if (t.elements > 1 || number) report.constants.push_back({t.name.str(), t.dims, why});
      return;
    }
    asParameter = uses;
  }
  auto pieces = split(asParameter);
  bool whole = pieces.size() == 1;
  if (whole && maybeMerged(asParameter)) merged.push_back(t.name.str());
  size_t before = list.size();
  become(t, uses.front(), std::move(pieces));
  // What is one parameter is read wherever the initializer is; of several each where something says that it is.
  for (const Site *s : uses) {
    auto isOf = [&](const std::unique_ptr<Parameter> &p) {
      return whole ||
             llvm::any_of(ArrayRef(p->uses).take_front(8), [&](const Site *o) { return origins.compare(*s, *o) == Sameness::Same; });
    };
    if (s->use.statistic || readings.count({&t, s->use.occurrence})) continue;
    if (auto p = std::find_if(list.begin() + before, list.end(), isOf); p != list.end())
      readings[{&t, s->use.occurrence}] = {p->get(), false};
  }
}

/// Where the file holds two equal vectors of one number under names of modules, nobody has merged those.
void Decisions::findKeptApart(ArrayRef<const TensorProto *> tensors) {
  std::set<Filling> seen;
  for (const TensorProto *t : tensors) {
    if (t->inNode || t->dims.size() != 1 || t->elements < 2 || !isModuleName(t->name)) continue;
    Content content(*t, weights);
    if (!content.known() || !content.isConstant()) continue;
    Filling filling = fillingOf(*t, content);
    if (!seen.insert(filling).second) keptApart.insert(filling);
  }
}

LogicalResult Decisions::make() {
  if (failed(freeze.compile(options.freeze, loc)) || failed(train.compile(options.train, loc)) || failed(tied.compile(options.tied, loc)) ||
      failed(untied.compile(options.untied, loc)))
    return failure();
  std::vector<const TensorProto *> order;
  llvm::DenseMap<const TensorProto *, Uses> uses;
  for (const Site &s : sites) {
    auto &of = uses[s.use.tensor];
    if (of.empty()) order.push_back(s.use.tensor);
    of.push_back(&s);
  }
  unsigned shared = 0, matrices = 0;
  for (const TensorProto *t : order) {
    auto n = llvm::count_if(uses[t], [](const Site *s) { return s->role == "matmul"; });
    matrices += n > 0;
    shared += n > 1;
  }
  sharesLayers = 2 * shared > matrices;
  findKeptApart(order);
  for (const TensorProto *t : order) decide(*t, uses[t]);
  llvm::stable_sort(list, [](auto &a, auto &b) { return a->place < b->place; });
  tie();
  if (failed(freeze.allFound("parameter", loc)) || failed(train.allFound("initializer", loc)) || failed(tied.allFound("parameter", loc)) ||
      failed(untied.allFound("parameter", loc)))
    return failure();
  if (!options.tied.empty() && !tiedAny)
    return emitError(loc) << "--tie '" << options.tied[0] << "' ties nothing: of the parameters it names no two hold the same values";
  if (!untied.empty() && parted.empty())
    return emitError(loc) << "--untie '" << options.untied[0]
                          << "' parts nothing: no parameter that it names is used at more than one place";
  noteApart();
  noteMerged();
  warnOfComputed();
  warnOfLost();
  for (auto &p : list) {
    if (p->trainable)
      report.parameters.push_back({p->name, p->tensor->dims, name(p->tensor->type).str(), p->role, p->where});
    else
      report.constants.push_back({p->name, p->tensor->dims, "--freeze"});
  }
  return success();
}

void Decisions::tie() {
  for (auto &p : list) p->maybeTied = tied.match(p->knownBy);
  llvm::DenseMap<Parameter *, Reading> merged;
  for (const std::vector<Copy> &copies : equalParameters(list, weights)) {
    auto ones = onesAmong(copies, origins, weights, options.tie);
    std::vector<std::string> trained;
    for (const std::vector<Copy> &one : ones) {
      Parameter *kept = one[0].parameter;
      for (const Copy &copy : llvm::drop_begin(one)) {
        bool transposed = copy.transposed != one[0].transposed;
        Parameter *p = copy.parameter;
        merged[p] = {kept, transposed};
        kept->aliases.push_back({p->tensor, transposed});
        // One parameter under several names: --train of any name wins, then --freeze of any.
        bool frozen = !kept->trainable || !p->trainable;
        kept->asked |= p->asked;
        kept->trainable = kept->asked || !frozen;
        tiedAny |= kept->maybeTied && p->maybeTied;
        report.ties.push_back({kept->name, p->name, transposed});
        emitRemark(loc) << "tied " << kept->name << " and " << p->name << (transposed ? " (transposed)" : "");
      }
      if (kept->trainable && !kept->untied) trained.push_back(kept->name);
    }
    if (trained.size() > 1 && options.tie) apart.push_back(trained);
  }
  for (auto &[use, reading] : readings)
    if (auto it = merged.find(reading.parameter); it != merged.end()) reading = it->second;
  llvm::erase_if(list, [&](auto &p) { return merged.count(p.get()); });
}

/// "'a', 'b', 'c' and 4 more"
static std::string nameSome(ArrayRef<std::string> names) {
  constexpr size_t kNames = 3;
  std::string text = llvm::join(llvm::map_range(names.take_front(kNames), [](const std::string &n) { return "'" + n + "'"; }), ", ");
  return names.size() > kNames ? text + " and " + std::to_string(names.size() - kNames) + " more" : text;
}

void Decisions::noteApart() {
  if (apart.empty()) return;
  constexpr size_t kSets = 3;
  std::string text = std::to_string(apart.size()) + (apart.size() > 1 ? " sets of" : "") +
                     " parameters start equal and are trained apart, since nothing in the graph says that they are one: ";
  if (apart.size() == 1) text.replace(0, 1, std::to_string(apart[0].size()));
  for (auto [i, set] : llvm::enumerate(ArrayRef(apart).take_front(kSets))) {
    if (i) text += "; ";
    text += nameSome(set);
  }
  if (apart.size() > kSets) text += "; and so on";
  report.notes.push_back(text + " (if some are one in your model, name them with --tie REGEX)");
}

void Decisions::noteMerged() {
  if (merged.empty()) return;
  bool several = merged.size() > 1;
  report.notes.push_back((several ? std::to_string(merged.size()) + " initializers are" : std::string("1 initializer is")) +
                         " used at several places and trained as one parameter" + (several ? " each: " : ": ") + nameSome(merged) +
                         " (if an exporter merged layers that started equal, part them with --untie REGEX)");
}

void Decisions::warnOfComputed() {
  std::vector<std::string> computed;
  for (auto &p : list)
    if (p->trainable && llvm::any_of(p->uses, [](const Site *s) { return !computedBy(s->use).empty(); })) computed.push_back(p->name);
  if (computed.empty()) return;
  report.warnings.push_back(
      "the exporter has computed " + nameSome(computed) +
      " from parameters of the model, which the file no longer has; what it computed is trained in their place, otherwise "
      "than in PyTorch: torch.onnx.export(..., optimize=False) keeps them");
}

/// Parameters that a call reads, of which its nodes have nothing: the newer exporter's optimizer leaves out biases that begin with zeros.
void Decisions::warnOfLost() {
  llvm::StringSet<> known;                                  // of all calls, by a name of the file's
  llvm::StringMap<std::pair<const Node *, unsigned>> calls; // how many weights of other names stand in them
  for (const Site &s : sites) {
    if (!s.use.node || s.use.node->call.empty()) continue;
    auto &[node, others] = calls[s.use.node->call];
    node = s.use.node;
    StringRef name = s.use.alias.empty() ? s.use.tensor->name : s.use.alias;
    auto reads = argumentNames(*node);
    auto own = llvm::find_if(reads, [&](StringRef argument) { return isNameOf(argument, name); });
    if (own != reads.end())
      known.insert(*own);
    else
      others += !llvm::is_contained(reads, name);
  }
  std::vector<std::string> lost;
  for (auto &[text, call] : calls) {
    std::vector<std::string> missing;
    for (StringRef argument : argumentNames(*call.first))
      if (argument.starts_with("p_") && !known.contains(argument)) missing.push_back(printable(argument.drop_front(2)));
    if (missing.size() > call.second) lost.insert(lost.end(), missing.begin(), missing.end());
  }
  if (lost.empty()) return;
  llvm::sort(lost);
  report.warnings.push_back("the exporter has left out " + nameSome(lost) +
                            " of the model's parameters, such as biases that begin with zeros; they are not " +
                            "trained: torch.onnx.export(..., optimize=False) keeps them");
}

Reading Decisions::at(const Use &use) const {
  auto it = readings.find({use.tensor, use.occurrence});
  return it == readings.end() ? Reading() : it->second;
}

} // namespace zero::onnx
