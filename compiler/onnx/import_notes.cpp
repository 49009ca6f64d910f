//===- import_notes.cpp - sentences about what would not be seen ---------------------------------------------===//
#include "compiler/onnx/import_notes.h"

namespace zero::onnx {

static std::string counted(uint64_t n, const std::string &what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

void ImportNotes::tell(const Quantized &quantized, ImportReport &report) const {
  if (quantized.tables)
    report.warnings.push_back(counted(quantized.weights, "weight") + " in " + counted(quantized.tables, "table") +
                              " of 8-bit integers (first '" + quantized.first.str() +
                              "') and their scales are not trained; train the model as it was before it was quantized");
  for (const auto &[what, found] : seen) {
    const auto &[times, first] = found;
    std::string text;
    switch (what) {
    case NoteKind::InactiveDropout:
      text = counted(times, "Dropout node") + " (first '" + first +
             "'): nothing is dropped, as the model was exported for inference; export it in training mode where training shall drop";
      break;
    case NoteKind::Dropout:
      text = counted(times, "Dropout node") + " (first '" + first + "'): training drops at the model's own rates, evaluation drops nothing";
      break;
    case NoteKind::HalfCast:
      text = counted(times, "cast") + " to float16 or bfloat16 (first '" + first +
             "'), as autocast leaves them: without effect, everything is computed in f32";
      break;
    case NoteKind::Detached:
      text = counted(times, "value") + " (first at '" + first +
             "'): no gradient, as PyTorch's detach() has it, which its exporters leave as an Identity node or in (x - y) + y";
      break;
    }
    report.notes.push_back(text);
  }
  size_t halves = llvm::count_if(report.parameters, [](const ImportReport::Parameter &p) { return p.stored != name(Type::Float); });
  if (halves)
    report.notes.push_back(std::to_string(halves) + " of " + counted(report.parameters.size(), "parameter") +
                           " stored in 16 bits: trained in f32, and rounded again by --export F.onnx");
}

} // namespace zero::onnx
