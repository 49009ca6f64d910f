// The original ONNX file, and its external data, with new bytes where the trained weights lie. Nothing else changes:
// the graph is not read, only copied.
#pragma once
#include "runtime/checkpoint/export.h"
#include "runtime/checkpoint/slices.h"
#include <set>
#include <string>
#include <vector>

namespace zero::runtime {

void exportOnnx(const Rank &rank, const std::string &path); // collective
void checkOnnxExport(const plan::Plan &plan, const std::string &path);
std::vector<ExportedFile> exportedOnnxFiles(const plan::Plan &plan, const std::string &path);

// Names of the external data files a model refers to, relative to its folder. Understands as much of ONNX as that takes.
std::set<std::string> externalFiles(const std::string &model);
// The same files as paths. What cannot be read as a model names none.
std::set<std::string> dataFilesOf(const std::string &model);

} // namespace zero::runtime
