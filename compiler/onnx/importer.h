//===- importer.h - the walk over an ONNX graph --------------------------------------------------===//
// Nodes are taken in file order (the format demands topological order) and handed to the family that knows
// the operator (ops/*.cpp). What an initializer becomes is decided by the caller, use by use: the first walk
// makes every candidate a parameter to see how it is used (roles.h), the second makes the real module.
#pragma once
#include "compiler/onnx/emit.h"
#include "compiler/onnx/import.h"
#include "compiler/onnx/import_notes.h"
#include "compiler/onnx/origin.h"
#include "compiler/onnx/weights.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <set>

namespace zero::onnx {

/// One use of a float initializer by one node.
struct Use {
  const TensorProto *tensor;
  unsigned occurrence;         // counts the uses of this initializer in walk order, the same in every walk
  StringRef op;                // operator that uses it
  std::string user;            // name of the node, or the name an Identity node gave the initializer
  const Node *node = nullptr;  // that uses it; none where it is a result of the graph
  size_t input = 0;            // which of the node's inputs it is
  StringRef alias;             // the name an Identity node gave the initializer; empty where none did
  const Node *moved = nullptr; // the Identity node, first of several, that is a call by which PyTorch read the initializer before
  bool statistic = false;      // a running mean or variance: never a parameter, though it may be stored as one with a bias that equals it
};

class Importer;

/// One node while it is being imported.
struct NodeContext {
  Importer &importer;
  Emitter &e;
  const Node &node;
  int64_t opset;
  Vals inputs; // null where the node leaves an optional input out

  bool has(size_t i) const { return i < inputs.size() && bool(inputs[i]); }
  /// Input `i`, or null: an absent optional input, a missing one after a report.
  Val optional(size_t i) const { return has(i) ? inputs[i] : Val(); }
  Val in(size_t i);
  /// Input `i` if its value is known while importing, else a report and null.
  std::shared_ptr<const nn::Tensor> known(size_t i);
  std::optional<Ints> knownInts(size_t i);

  /// The attribute, looked up in the calling function where it is a reference; null if absent.
  const Attribute *attribute(StringRef name) const;
  int64_t integer(StringRef name, int64_t otherwise) const;
  double real(StringRef name, double otherwise) const;
  std::string string(StringRef name, StringRef otherwise) const;
  std::optional<Ints> ints(StringRef name) const;
  /// Reports an attribute that is none of these: a newer opset's, which must not be ignored.
  bool only(llvm::ArrayRef<StringRef> names);
  /// Attribute before the given opset, input `i` from it on; nothing if absent. Check e.failed() after.
  std::optional<Ints> axesSince(int64_t opset, StringRef name, size_t i);
  /// A dimension of a tensor of `rank`, counted from the end where negative; -1 after a report.
  int64_t dimension(int64_t axis, int64_t rank);
  /// The attribute "perm": which dimension of the input each of the result is; all of them backwards without it.
  Ints permutation(int64_t rank);
  Vals fail(const llvm::Twine &message) {
    e.fail(message);
    return {};
  }
};

using Handler = Vals (*)(NodeContext &);
struct Operator {
  Handler handler = nullptr;
  int64_t since = 1;      // opset that introduced it
  bool sequences = false; // whether it reads sequences of tensors; for others the importer refuses them
  bool curve = false;     // a function of one number that an exporter folds for a constant: a number it stands before is a parameter's
};
using Registry = llvm::StringMap<Operator>;

class Importer {
public:
  using InitializerUse = std::function<Val(const Use &, Emitter &)>;

  Importer(const Model &model, Weights &weights, const ImportOptions &options, mlir::ModuleOp module, bool quiet, InitializerUse use);
  /// Builds @forward. Fails after a diagnostic.
  mlir::LogicalResult run();

  /// The value of an initializer or of a tensor attribute.
  Val constant(const TensorProto &t, Emitter &e);
  /// The known value that an input stands for, also where it is a candidate parameter that is really a constant.
  std::shared_ptr<const nn::Tensor> known(const Val &v, Emitter &e);
  /// Initializers that had to be known although they were handed out as values.
  llvm::DenseSet<const TensorProto *> forcedConstants;

  /// The seed argument of @forward, made when first asked for; ids number the random draws.
  mlir::Value seed();
  int64_t nextRandomId() { return randomId++; }
  /// Notes that `indices` select rows of a table of `rows`; returns indices that are not negative.
  Val checkedIndices(const Val &indices, int64_t rows, Emitter &e);
  /// Notes that `labels` are of so many classes, but for those that are `ignored`; a report where one that is known is of none.
  void checkLabels(const Val &labels, int64_t classes, std::optional<int64_t> ignored, Emitter &e);
  /// Runs a branch of an If node, or one iteration of a Loop, in the present scope. `inputs`: of the graph.
  Vals subgraph(const Graph &graph, NodeContext &at, llvm::ArrayRef<Val> inputs = {});
  bool isQuiet() const { return quiet; }
  /// Of PyTorch 2.15 and later clamp() has no gradient on a scalar bound, and half of it on one that is a tensor; before it had all of it.
  bool clampsStrictly() const { return exportedSince(model, 2, 15); }
  bool isCurve(StringRef op) const { return registry.lookup(op).curve; }
  /// What the user is told of after the walk.
  ImportNotes notes;
  /// `result` is the log-softmax of `logits` over the last dimension: a loss over it is a cross entropy.
  void noteLogSoftmax(const Val &result, const Val &logits) {
    if (result && result.value) logSoftmaxOf[result.value] = logits;
  }
  /// `result` is the logarithm of `p`, or by what that is the sigmoid of.
  void noteLogarithm(const Val &result, const Val &p) {
    if (result && result.value) logarithmOf[result.value] = p;
  }
  /// What a value is the logarithm of, if it is one.
  Val argumentOfLogarithm(const Val &v) const { return v.value ? logarithmOf.lookup(v.value) : Val(); }
  /// `integers` are those of `number`, rounded already, which has a gradient.
  void noteQuantized(const Val &integers, const Val &number) {
    if (integers && integers.value) quantized[integers.value] = number;
  }
  Val numberBehind(const Val &integers) const { return integers.value ? quantized.lookup(integers.value) : Val(); }
  /// `result` is of a call that reads what detach() gave.
  void noteDetached(const Val &result) {
    if (result && result.value) detached.insert(result.value);
  }
  bool isOfDetached(mlir::Value v) const { return detached.contains(v); }
  /// A constant that its key says all of, made once however many nodes ask for it.
  Val table(StringRef key, llvm::function_ref<nn::Tensor()> make) {
    Val &known = tables[key];
    if (!known) known = make();
    return known;
  }
  Val logitsBehind(const Val &v) const { return v.value ? logSoftmaxOf.lookup(v.value) : Val(); }

private:
  struct Entry {
    Val val;
    const TensorProto *initializer = nullptr;
    StringRef alias;             // name an Identity node gave the initializer
    std::string missing;         // the node that should have computed it, in a form the reader lacks
    const Node *moved = nullptr; // as Use has it
  };
  struct Scope {
    Scope *parent = nullptr; // enclosing graph of a subgraph; none for a function body
    llvm::StringMap<Entry> names;
    const std::vector<OpsetImport> *opsets = nullptr;
    llvm::StringMap<const Attribute *> attributes; // of the function call being inlined
    std::string prefix;                            // of node names inside a function body
    int depth = 0;
    Entry *find(StringRef name);
  };
  friend struct NodeContext;

  bool arguments(mlir::func::FuncOp function);
  mlir::RankedTensorType typeOf(const ValueInfo &input, mlir::Location loc, const llvm::StringSet<> &initializers,
                                llvm::SmallVector<std::string> &symbols);
  bool bindsOnly(const llvm::StringSet<> &dimensions, mlir::Location loc);
  llvm::SmallVector<std::pair<mlir::Value, mlir::Attribute>> outputs(Scope &top);
  void settleDetached(mlir::Block &block);
  std::string unbound(const llvm::StringSet<> &initializers) const;
  bool nodes(const std::vector<Node> &nodes, const llvm::StringSet<> &wanted, Scope &scope);
  bool definesNew(const Node &node, const Scope &scope);
  bool node(const Node &node, Scope &scope);
  Vals resultsOf(NodeContext &node, Scope &scope);
  bool visit();
  Vals inlineFunction(const Function &function, NodeContext &call, Scope &scope);
  Val fetch(Entry &entry, const Node *user, size_t input = 0);
  std::optional<int64_t> opsetOf(StringRef domain, const Scope &scope) const;

  const Model &model;
  Weights &weights;
  const ImportOptions &options;
  mlir::ModuleOp module;
  bool quiet;
  InitializerUse use;
  Registry registry;
  std::unique_ptr<Emitter> emitter;
  mlir::func::FuncOp function;
  Scope *present = nullptr;
  int64_t randomId = 0;
  uint64_t visited = 0, mostOperations = 0; // nodes, functions inlined, and iterations; and what may be made of them
  mlir::Value seedArgument;
  llvm::DenseMap<const TensorProto *, unsigned> uses;
  llvm::DenseMap<const TensorProto *, Val> constants;
  llvm::DenseMap<mlir::Operation *, const TensorProto *> candidates;
  /// Rows of the smallest table that all elements of an input look something up in, and of the largest one that some of them do; or
  /// classes.
  struct InputLimit {
    std::optional<int64_t> ofAll;
    int64_t ofParts = 0;
    int64_t note(int64_t rows, bool isPart);
  };
  struct InputNumbers {
    InputLimit rows, classes;
    std::set<std::optional<int64_t>> ignored; // of those that are labels: what does not count
    llvm::DenseSet<mlir::Value> parts;        // slices that are indices or labels
  };
  /// The input whose elements a value holds.
  struct Origin {
    mlir::Value input;
    mlir::Value part;               // the slice of the input that they are of, where they are not all of it
    std::optional<int64_t> ignored; // a label that does not count, in whose place there is another
  };
  static Origin originOf(mlir::Value indices, int64_t rows, std::optional<int64_t> ignored);
  bool noteRows(const Origin &origin, int64_t rows);
  void noteClasses(const Origin &origin, int64_t classes);
  bool isInput(mlir::Value v);
  void settleParts();

  llvm::DenseMap<unsigned, InputNumbers> numbers; // by the argument
  llvm::DenseMap<mlir::Value, Val> logSoftmaxOf, logarithmOf, quantized;
  llvm::DenseSet<mlir::Value> detached;
  llvm::StringMap<Val> tables;
};

void registerArithmetic(Registry &);
void registerElementwise(Registry &);
void registerTrigonometry(Registry &);
void registerIntegers(Registry &);
void registerMovement(Registry &);
void registerReductions(Registry &);
void registerNorms(Registry &);
void registerMatmul(Registry &);
void registerEinsum(Registry &);
void registerFourier(Registry &);
void registerConvolution(Registry &);
void registerColumns(Registry &);
void registerPooling(Registry &);
void registerResize(Registry &);
void registerRandom(Registry &);
void registerRecurrent(Registry &);
void registerGridSample(Registry &);
void registerAttention(Registry &);
void registerShape(Registry &);
void registerGathers(Registry &);
void registerScatters(Registry &);
void registerSelections(Registry &);
void registerLosses(Registry &);
void registerControl(Registry &);
void registerQuantization(Registry &);

} // namespace zero::onnx
