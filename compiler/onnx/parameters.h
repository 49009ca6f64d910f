//===- parameters.h - from the uses of initializers to nn.parameter ------------------------------===//
#pragma once
#include "compiler/onnx/roles.h"

namespace zero::onnx {

/// A parameter the module will have.
struct Parameter {
  std::string name;
  const TensorProto *tensor = nullptr;
  std::string role;
  std::string firstUser;
  bool trainable = true, plusOne = false;
  bool asked = false; // --train names it
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

/// All decisions, made once between the two walks.
class Decisions {
public:
  /// Fails after a diagnostic (an invalid regular expression).
  mlir::LogicalResult make(const Model &model, llvm::ArrayRef<Site> sites, Weights &weights, const ImportOptions &options,
                           mlir::Location loc, ImportReport &report);
  Reading at(const Use &use) const;
  /// In order of first use.
  llvm::ArrayRef<std::unique_ptr<Parameter>> parameters() const { return list; }

private:
  Parameter *add(std::string name, const Site &site);
  void split(llvm::ArrayRef<const Site *> uses, ImportReport &report);
  void tie(Weights &weights, mlir::Location loc, ImportReport &report);

  std::vector<std::unique_ptr<Parameter>> list;
  std::map<std::pair<const TensorProto *, unsigned>, Reading> readings;
  llvm::StringSet<> names;
};

/// Emits the nn.parameter operations at the start of the module.
mlir::LogicalResult emitParameters(mlir::ModuleOp module, const Decisions &decisions, Weights &weights, const ImportOptions &options);

} // namespace zero::onnx
