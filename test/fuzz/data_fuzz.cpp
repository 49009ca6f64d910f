// Whatever bytes a data file or the model of an export has, reading it ends in tensors that can be read whole, or in zero::Error.
//
// The first byte chooses the format: .safetensors, .npz, or the walk over an ONNX file for its external data.
#include "runtime/base/error.h"
#include "runtime/checkpoint/export_onnx.h"
#include "runtime/data/element.h"
#include "runtime/data/tensor_file.h"
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  static const char *endings[] = {".safetensors", ".npz", ".onnx"};
  int format = data[0] % 3;
  const std::string path = "/dev/shm/zero-data-fuzz-" + std::to_string(getpid()) + endings[format];
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char *>(data + 1), static_cast<std::streamsize>(size - 1));
  try {
    if (format == 2) {
      zero::runtime::externalFiles(path);
    } else {
      volatile unsigned sum = 0; // keeps the reads
      zero::runtime::TensorFile file = zero::runtime::openTensorFile(path);
      for (const zero::runtime::Tensor &tensor : file.tensors) {
        uint64_t bytes = 0;
        if (!zero::runtime::byteSize(tensor.shape, sizeOf(tensor.type), bytes) || bytes != tensor.bytes.size())
          abort(); // shape and bytes disagree
        for (std::byte b : tensor.bytes) sum = sum + static_cast<unsigned>(b);
      }
    }
  } catch (const zero::Error &) {
  }
  unlink(path.c_str());
  return 0;
}
