// Where every tensor of a .safetensors file to be written will lie, so that many ranks can write
// their own parts of one file by offset.
#pragma once
#include "runtime/data/element.h"
#include <map>
#include <string>
#include <vector>

namespace zero::runtime {

struct TensorSpec {
  std::string name;
  Element type = Element::F32;
  std::vector<uint64_t> shape;
};

struct SafetensorsLayout {
  std::string header;            // bytes [0, header.size()) of the file
  std::vector<uint64_t> offsets; // of each tensor, from the start of the file
  uint64_t bytes = 0;            // of the whole file
};

SafetensorsLayout layoutSafetensors(const std::vector<TensorSpec> &, const std::map<std::string, std::string> &metadata = {});

} // namespace zero::runtime
