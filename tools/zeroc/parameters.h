//===- parameters.h - the table of what is trained ---------------------------------------------------===//
#pragma once
#include "compiler/onnx/import.h"
#include <string>

namespace zero {

/// What is trained, what is tied, what is not trained and why: names do not tell, so the user must see it. Equal layers share a line.
std::string parameterTable(const onnx::ImportReport &report);

} // namespace zero
