#include "runtime/data/tensor_file.h"
#include "runtime/base/error.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zero::runtime {

const Tensor *TensorFile::find(const std::string &name) const {
  for (const Tensor &tensor : tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

std::string TensorFile::contents() const {
  if (tensors.empty()) return "nothing";
  std::vector<std::string> entries;
  for (const Tensor &tensor : tensors) {
    if (entries.size() == 12) {
      entries.push_back(fmt::format("and {} more", tensors.size() - 12));
      break;
    }
    entries.push_back(tensor.known ? fmt::format("{} {} {}", tensor.name, shapeText(tensor.shape), nameOf(tensor.type)) : tensor.name);
  }
  return fmt::format("{}", fmt::join(entries, ", "));
}

std::string shapeText(std::span<const uint64_t> shape) { return fmt::format("[{}]", fmt::join(shape, " x ")); }

bool byteSize(std::span<const uint64_t> shape, uint64_t size, uint64_t &bytes) {
  // A zero anywhere makes the product zero, but the other factors must still be sane.
  __uint128_t product = size;
  bool empty = false;
  for (uint64_t extent : shape) {
    empty |= extent == 0;
    product *= extent ? extent : 1;
    if (product > static_cast<uint64_t>(INT64_MAX)) return false;
  }
  bytes = empty ? 0 : static_cast<uint64_t>(product);
  return true;
}

TensorFile openTensorFile(const std::string &path, const Wanted &wanted) {
  if (path.ends_with(".safetensors")) return openSafetensors(path, wanted);
  if (path.ends_with(".npz")) return openNpz(path, wanted);
  throw Error(fmt::format("'{}' has no known ending: data files are .safetensors, .npz, .bin (uint16 tokens), .u32.bin or .txt", path));
}

} // namespace zero::runtime
