//===- origin.h - what an exporter says of where a node stands and of whom a weight was ------------===//
// Exporters fold, rename and merge weights, and leave traces of it: PyTorch's newer one writes the module of each node and the call it
// came from into metadata_props, the older one makes the module a part of the node's name and puts Identity nodes under lost names.
#pragma once
#include "compiler/onnx/model.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

namespace zero::onnx {

struct Site;
struct Use;

/// A path of modules, "transformer.h.0.attn.bias", and not a name that an exporter has made up ("val_12", "onnx::MatMul_88").
bool isModuleName(StringRef name);
/// "transformer.h.3.mlp": the module that PyTorch's exporters say a node stands in; empty where they say nothing.
std::string moduleOf(const Node &node);
/// "transformer.h.3.mlp/node_addmm_14": a node's module, if known, and its name, or what it computes where it has none.
std::string pathOf(const Node &node);

/// An Identity node that PyTorch's newer exporter has written for detach().
bool isDetach(const Node &node);
/// Whether the call a node came from reads what detach() gave, though the exporter may have dropped the Identity.
bool readsDetached(const Node &node);

/// What stands between commas among the arguments of the call this node came from, if that is of torch.ops.aten.`function`; an argument
/// that is a list is several.
llvm::SmallVector<StringRef> argumentsOf(const Node &node, StringRef function);

/// "linear", "p_head_weight": the tensors among the arguments of the call this node came from, in their order.
llvm::SmallVector<StringRef> argumentNames(const Node &node);
/// Whether calls name the model's own tensor `name` so: "p_head_weight" is "head.weight".
bool isNameOf(StringRef argument, StringRef name);

/// Whether PyTorch's exporters of this version or a later one have written the model.
bool exportedSince(const Model &model, unsigned major, unsigned minor);

/// The row of an embedding that gets no gradient from its lookup, `padding_idx` of the call that this node came from; none for others.
std::optional<int64_t> paddingRow(const Node &node);

/// Whether two uses are of one parameter, as far as the exporter says.
enum class Sameness { Unsaid, Same, Different };

/// What PyTorch called a tensor, as far as the exporter says: torch.export names arguments of calls after it ("p_…", "b_…", "c_…").
enum class Declared { Unsaid, Parameter, Buffer };

/// By the call that `use` is an argument of, under the name the file has for it.
Declared declaredAs(const Use &use);

/// Whether the tensor may be a module's, or the exported model's own, "temperature", and none of the program's numbers: names that are made
/// up end with a number, and where there are calls they name what is the model's.
bool maybeOfModel(const Use &use);

/// "mul": the call whose result the exporter has computed and stored under its name; empty for a tensor of the model's own, and for what
/// calls only move or look up, which trains as what it was made of.
StringRef computedBy(const Use &use);

class Origins {
public:
  explicit Origins(llvm::ArrayRef<Site> sites);
  /// Of uses of one initializer, or of two that hold the same values.
  Sameness compare(const Site &a, const Site &b) const;
  /// The name PyTorch had for the parameter at this use; empty where it cannot be told.
  std::string nameOf(const Site &site) const;

private:
  /// What one use says, read once.
  struct Traces {
    StringRef name;                         // the module's parameter that the file calls it by
    llvm::SmallVector<StringRef, 4> reads;  // arguments of the call it came from
    llvm::SmallVector<StringRef, 2> claims; // those it may be of: the very one where its name is known, else those under no name
    std::string module;
  };
  const Traces &traces(const Site &site) const;
  bool owns(StringRef module) const;
  StringRef unnumbered(StringRef argument) const;
  bool isCalledIn(StringRef module, StringRef parameter) const; // where a node says it stands in this module
  Sameness byCall(const Site &a, const Site &b) const;
  Sameness byName(const Site &a, const Site &b) const;
  Sameness byModule(const Site &a, const Site &b) const;

  mutable llvm::DenseMap<const Site *, std::unique_ptr<Traces>> read;
  std::vector<StringRef> names;    // of modules' parameters, sorted: initializers, and what Identity nodes call them
  llvm::StringSet<> mangled;       // the same as PyTorch's calls name them
  llvm::StringSet<> arguments;     // parameters that calls name
  llvm::StringSet<> renamed;       // initializers that Identity nodes give a module's name
  llvm::StringSet<> usedElsewhere; // parameters that some node reads which is no call of their module, as far as it says
};

} // namespace zero::onnx
