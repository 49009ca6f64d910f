// A file of named tensors, whichever format it has: views into mapped (or inflated) bytes.
#pragma once
#include "runtime/data/element.h"
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace zero::runtime {

struct Tensor {
  std::string name;
  Element type = Element::F32;
  std::vector<uint64_t> shape;
  std::span<const std::byte> bytes; // exactly product(shape) * sizeOf(type)
  uint64_t offset = 0;              // of the bytes in the file; .safetensors only
  bool known = true;                // or only its name, and where its bytes are
};

struct TensorFile {
  std::string path;
  std::vector<Tensor> tensors;                     // in the order of the file
  std::vector<std::shared_ptr<const void>> owners; // keep the bytes alive

  const Tensor *find(const std::string &name) const;
  std::string contents() const; // "input_ids [40 x 64] I64, labels [40 x 64] I64", for messages
};

using Wanted = std::optional<std::set<std::string>>; // names of tensors; none given: all

// Opens .safetensors or .npz by the name's ending; throws zero::Error with what is wrong with the file. Of tensors that are not wanted
// little more than the names is looked at: they may have types that nobody knows here, and are not inflated.
TensorFile openTensorFile(const std::string &path, const Wanted &wanted = std::nullopt);
TensorFile openSafetensors(const std::string &path, const Wanted &wanted = std::nullopt);
TensorFile openNpz(const std::string &path, const Wanted &wanted = std::nullopt);

std::string shapeText(std::span<const uint64_t> shape); // "[40 x 64]"
// product(shape) * size, or nullopt-like failure: returns false if it does not fit 63 bits.
bool byteSize(std::span<const uint64_t> shape, uint64_t size, uint64_t &bytes);

} // namespace zero::runtime
