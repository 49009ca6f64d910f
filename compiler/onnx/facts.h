//===- facts.h - what is known of each value while roles are told --------------------------------===//
// Private to roles.cpp (how facts pass through operations), role_evidence.cpp (what uses of known values with the data say) and
// sequence.cpp.
#pragma once
#include "compiler/onnx/content.h"
#include "compiler/onnx/roles.h"

namespace zero::onnx {

/// Why some constants are none of the model's.
inline constexpr llvm::StringLiteral kFilled = "filled with one number", kBegins = "zeros that a sum or a recurrence begins with";

enum class Kind { Known, Plain, Feature, Hidden, Scores };

struct Fact {
  Kind kind = Kind::Known;
  llvm::SmallVector<unsigned, 2> sources; // sites a known value is made of; of a lookup by data: the table's
  llvm::SmallBitVector varying;           // known values: dimensions along which it varies
  bool table = false;                     // rows looked up in a table
  bool computed = false;                  // that is computed from what the sources hold, such as cosines from frequencies
  bool product = false;                   // result of a product with a parameter, moved at most
  bool plusOne = false;
  bool picked = false; // one number taken out of several
  bool curved = false; // after a function that an exporter would have folded into a constant
};

/// `bits` of the dimensions of `from`, as the dimensions `to` of the same elements have them: where any of those they are made of did.
llvm::SmallBitVector reshaped(const llvm::SmallBitVector &bits, llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

class Analysis {
public:
  Analysis(mlir::func::FuncOp f, llvm::MutableArrayRef<Site> sites, Weights &weights);
  void run();

private:
  // Facts of results, by kind of operation.
  void backward(mlir::Operation &op);
  void forward(mlir::Operation &op);
  Fact known(mlir::Operation &op);
  Fact product(mlir::Operation &op, mlir::Value lhs, mlir::Value rhs);
  Fact lookup(nn::GatherOp op);
  Fact norm(mlir::Operation &op);
  Fact attention(mlir::Operation &op);
  Fact move(mlir::Operation &op);
  Kind most(mlir::Operation &op);

  // Uses of known values with the data.
  Fact concatenation(nn::ConcatOp op);
  Fact elementwise(mlir::Operation &op);
  void added(Fact &o, mlir::Operation &op, Kind data, bool choice);
  void multiplied(Fact &o, mlir::Operation &op, Kind data);
  /// Rows of a table end their way here: used as an embedding is.
  void spend(const Fact &o);
  void evidence(const Fact &o, StringRef role);
  void refuse(const Fact &o, StringRef why);

  // Which dimensions of the data run along the sequence.
  void followSequence(mlir::BlockArgument input, bool positions);
  void followSequence(mlir::Operation &op);
  llvm::SmallBitVector sequenceOf(mlir::Value v);
  llvm::SmallBitVector bySize(mlir::Value v) const;

  // What the numbers of the initializers that a value comes from tell.
  template <typename Test> bool content(const Fact &o, Test test) {
    return llvm::any_of(o.sources, [&](unsigned s) { return test(Content(*sites[s].use.tensor, weights)); });
  }
  /// Ones or zeros under a name an exporter made up, at an operator that must have a scale and a bias though the model's norm has
  /// none. Refuses them.
  bool filler(const Fact &o, float neutral);
  bool structural(const Fact &o); // zeros and ones: a permutation, a selection, a padding mask
  bool begins(const Fact &o);     // zeros for each sample: the state of a recurrence
  bool ofModules(const Fact &o);  // no source has a name that an exporter has made up
  bool rotary(const Fact &o);     // may be cosines or sines of positions
  bool copied(const Fact &o);     // one copy for each sample, which an exporter has folded
  bool ofBatchNorm(const Fact &o);
  bool single(const Fact &o);
  bool learntNumber(const Fact &o);

  struct Facts {
    llvm::DenseMap<mlir::Value, std::unique_ptr<Fact>> map;
    Fact &operator[](mlir::Value v) {
      auto &f = map[v];
      if (!f) f = std::make_unique<Fact>();
      return *f;
    }
  } facts;
  mlir::func::FuncOp function;
  llvm::MutableArrayRef<Site> sites;
  Weights &weights;
  llvm::DenseMap<mlir::Operation *, unsigned> siteOf;
  llvm::DenseSet<mlir::Value> toSoftmax, toTrig, toResult;
  llvm::DenseSet<int64_t> lengths;                            // sizes of the integer inputs beyond the batch
  llvm::DenseMap<mlir::Value, llvm::SmallBitVector> sequence; // of values that are not known
  int64_t samples = 1;                                        // size of the batch
};

} // namespace zero::onnx
