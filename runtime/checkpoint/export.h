// What leaves a run under the model's own names: gradients of a step, trained weights. Every rank writes its own parts
// of one file by offset, so nothing is ever gathered.
#pragma once
#include "runtime/checkpoint/shared_file.h"
#include "runtime/checkpoint/slices.h"
#include "runtime/data/safetensors.h"
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace zero::runtime {

// Full gradients of one step. add() may be called from any lane's thread; finish() is collective.
class GradientFile {
public:
  // Collective. Gradients are multiplied by `factor`.
  GradientFile(const Rank &rank, const std::string &path, float factor = 1);
  // Reads the gradient of a step that updates a bucket or rows, which must not be consumed yet, and final but for rows that are updated
  // after it.
  void add(const plan::Step &step);
  void finish();

private:
  void addRows(const plan::Step &step);
  void write(int parameter, uint64_t element, std::span<const float> values) const;

  const Rank rank;
  PieceMap map;
  std::vector<uint64_t> offsets; // of each parameter in the file; trainable ones only
  std::unique_ptr<SharedFile> file;
  std::string path;
  float factor;
  std::mutex guard;
  std::vector<uint64_t> seen; // elements of each bucket's gradient that were added
};

// Which parameters to export: adapters beside a large model are wanted alone.
enum class Exported { All, Trained };

// Collective. Refuses, with a sentence, what the ending .safetensors or .onnx cannot hold.
void exportWeights(const Rank &rank, const std::string &path, Exported which = Exported::All);

// The same checks without writing, so that a run does not fail after its last step.
void checkExport(const plan::Plan &plan, const std::string &path, Exported which = Exported::All);

struct ExportedFile {
  std::string path;
  uint64_t bytes = 0; // that it will have
};

// The files that exportWeights() will write: `path`, and beside an .onnx file its data files.
std::vector<ExportedFile> exportedFiles(const plan::Plan &plan, const std::string &path, Exported which = Exported::All);

} // namespace zero::runtime
