//===- pipeline_option.h - options of a phase, as zero-opt takes them -----------------------------------===//
#pragma once
#include "mlir/Pass/PassOptions.h"

namespace zero {

/// An option that sets a member of what the phase is told; what that is without the option is its default.
template <typename T> struct OptionOf : mlir::detail::PassOptions::Option<T> {
  template <typename... Args>
  OptionOf(mlir::detail::PassOptions &parent, T &member, llvm::StringRef name, Args &&...args)
      : mlir::detail::PassOptions::Option<T>(parent, name, llvm::cl::init(member), std::forward<Args>(args)...) {
    this->setCallback([this, &member](const T &value) {
      this->optHasValue = true; // what the callback of mlir::Option does
      member = value;
    });
  }
};

} // namespace zero
