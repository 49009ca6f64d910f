//===- parameters.h - from the uses of initializers to nn.parameter ------------------------------===//
#pragma once
#include "compiler/onnx/origin.h"
#include "compiler/onnx/patterns.h"
#include "compiler/onnx/roles.h"
#include <set>

namespace zero::onnx {

/// A parameter the module will have.
struct Parameter {
  std::string name;
  const TensorProto *tensor = nullptr;
  std::string role;
  std::string firstUser;
  std::vector<const Site *> uses;   // that make it a parameter, or all of them where only --train does
  const Site *place = nullptr;      // the use that its place among the parameters is by
  std::vector<std::string> knownBy; // what --train, --freeze and --tie are searched for in
  std::string where;                // name in PyTorch or the node that uses it, where the name does not tell
  bool trainable = true, plusOne = false;
  bool asked = false;     // --train names it
  bool maybeTied = false; // --tie names it
  bool untied = false;    // --untie names it
  struct Alias {
    const TensorProto *tensor;
    bool transposed;
  };
  std::vector<Alias> aliases;
};

/// What one use of an initializer reads; a null parameter means the constant.
struct Reading {
  Parameter *parameter = nullptr;
  bool transposed = false;
};

/// All decisions, made once between the two walks. The sites outlive them.
class Decisions {
public:
  Decisions(llvm::ArrayRef<Site> sites, Weights &weights, const ImportOptions &options, mlir::Location loc, ImportReport &report);
  /// Fails after a diagnostic (an invalid regular expression, or one that is found nowhere).
  mlir::LogicalResult make();
  Reading at(const Use &use) const;
  /// In order of first use.
  llvm::ArrayRef<std::unique_ptr<Parameter>> parameters() const { return list; }
  using Filling = std::tuple<uint64_t, Type, float>; // of a vector of one number: its length, type and number

private:
  using Uses = std::vector<const Site *>;
  void decide(const TensorProto &t, const Uses &uses);
  Parameter *add(std::string name, const Uses &uses);
  std::vector<Uses> split(const Uses &uses);
  void findKeptApart(llvm::ArrayRef<const TensorProto *> tensors);
  void become(const TensorProto &t, const Site *first, std::vector<Uses> pieces);
  void tie();
  bool maybeMerged(const Uses &uses) const;
  void noteApart();
  void noteMerged();
  void warnOfComputed();
  void warnOfLost();

  llvm::ArrayRef<Site> sites;
  Weights &weights;
  const ImportOptions &options;
  mlir::Location loc;
  ImportReport &report;
  Origins origins;
  Patterns freeze{"--freeze"}, train{"--train"}, tied{"--tie"}, untied{"--untie"};
  bool sharesLayers = false;                   // the model applies the same matrices more than once: then a shared vector is shared too
  std::set<Filling> keptApart;                 // of which equal ones are stored apart
  bool tiedAny = false;                        // by --tie
  llvm::DenseSet<const TensorProto *> parted;  // by --untie
  std::vector<std::vector<std::string>> apart; // parameters that start equal and are trained apart
  std::vector<std::string> merged;             // parameters of several uses that may have been several
  std::vector<std::unique_ptr<Parameter>> list;
  std::map<std::pair<const TensorProto *, unsigned>, Reading> readings;
  llvm::StringSet<> names;
};

/// Emits the nn.parameter operations at the start of the module.
mlir::LogicalResult emitParameters(mlir::ModuleOp module, const Decisions &decisions, Weights &weights, const ImportOptions &options);

} // namespace zero::onnx
