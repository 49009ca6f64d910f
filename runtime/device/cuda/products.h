// Matrix products of a program, each prepared once: layouts for cuBLASLt and the algorithm that its heuristic ranks first among those
// that sum in one order (k is not split, nothing is added by atomics). f32 is multiplied in f32, bf16 and f16 are summed in f32.
#pragma once
#include "runtime/device/cuda/blas_lt.h"
#include "runtime/device/cuda/handles.h"
#include "runtime/device/program.h"
#include <deque>

namespace zero::runtime::cuda {

// What each lane that multiplies has beside the plan's arenas: as much as NVIDIA advises for GPUs of compute capability 9.
inline constexpr uint64_t kWorkspaceBytes = uint64_t(32) << 20;

using ProductCall = MatMulOf<Pointer>;
using OwnedProduct = Owned<ProductHandle>;
using OwnedLayout = Owned<LayoutHandle>;

class Products {
public:
  Products();
  ~Products();
  Products(const Products &) = delete;
  Products &operator=(const Products &) = delete;

  // The number of a product, to be run with. Throws a sentence if the library has no algorithm for it.
  size_t prepare(const ProductCall &call);
  // Puts it into a stream. Calls of one lane share its workspace.
  void run(size_t product, int lane, StreamHandle stream);
  void addLane(int lane); // that has products: before the first run
  uint64_t workspaceBytes() const;

private:
  struct Prepared;

  BlasHandle handle{};
  std::deque<Prepared> prepared;
  DeviceMemory workspaces[kLanes];
};

} // namespace zero::runtime::cuda
