//===- import.h - an ONNX file becomes a module of the nn dialect --------------------------------===//
// The result holds one nn.parameter per trainable tensor (weights stay where they are in the file) and
// func.func @forward with static shapes. Arguments carry nn.name, arguments that index a table also
// nn.limit (values must lie in [-limit, limit)) or nn.classes, those with symbolic dimensions nn.symbols, results carry nn.name. Where the
// model drops out in training, one more argument "seed" : tensor<2xi64> with nn.role = "seed" is added at the end.
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace zero::onnx {

/// Where parameters take their first value from.
enum class Init { Weights, Random };

/// How far reading is, for a watcher in another thread.
struct ImportProgress {
  std::atomic<const char *> node = nullptr; // the node being read; lives as long as the context
  std::atomic<uint64_t> nodes = 0;          // of the file, those of functions and subgraphs included
  std::atomic<uint64_t> bytes = 0;          // of the file and of the external data that was looked at
};

struct ImportOptions {
  std::map<std::string, int64_t> bind;    // symbolic dimension -> size
  bool tie = true;                        // initializers that hold the same values are one parameter where there is a reason (ties.h)
  std::vector<std::string> tied;          // regular expressions: those they name are one parameter where they hold the same values
  std::vector<std::string> untied;        // regular expressions: each use of an initializer they name is a parameter of its own
  std::vector<std::string> freeze, train; // regular expressions over initializer names; found anywhere in the name; train wins
  Init init = Init::Weights;
  uint64_t maxConstantBytes = uint64_t(2) << 30; // largest constant folding may produce
  ImportProgress *reading = nullptr;             // written to if given
};

/// What was found, for the table zeroc prints.
struct ImportReport {
  struct Parameter {
    std::string name;
    std::vector<int64_t> shape;
    std::string stored; // element type in the file: "f32", "bf16", …
    std::string role;   // "matmul", "embedding", "bias", "scale", "position", …, or "--train"
    std::string where;  // name in PyTorch, or the node that uses it, where an exporter replaced the name; else empty
  };
  struct Constant {
    std::string name;
    std::vector<int64_t> shape;
    std::string why; // "no parameter's use", "--freeze", "copies of one row", …
  };
  struct Tie {
    std::string name, alias;
    bool transposed;
  };
  std::vector<Parameter> parameters;
  std::vector<Constant> constants; // float initializers of more than one element that are not trained
  std::vector<Tie> ties;
  std::vector<std::string> warnings, notes;
  std::string producer;
  int64_t irVersion = 0, opset = 0;
};

/// Errors are diagnostics of `context`, one sentence each. `report` may be null.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> importModel(llvm::StringRef path, const ImportOptions &options,
                                                               mlir::MLIRContext &context, ImportReport *report = nullptr);

} // namespace zero::onnx
