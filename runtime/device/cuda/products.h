// Matrix products of a program, each prepared once: layouts for cuBLASLt and the algorithm, which is that of a measured table, or else what
// cuBLASLt's heuristic ranks first. f32 is multiplied in f32, or in TF32 where the plan says so; bf16 and f16 are summed in f32.
//
// An algorithm always gives the same bits: k is not split, or its parts are written apart in f32 and added by a step of their own, in their
// order. What adds to the result as parts become ready (in place), or rounds parts (in the result's type), is never taken.
#pragma once
#include "runtime/device/cuda/handles.h"
#include "runtime/device/cuda/product_table.h"
#include "runtime/device/program.h"
#include <deque>
#include <vector>

namespace zero::runtime::cuda {

// What each lane that multiplies has beside the plan's arenas: as much as NVIDIA advises for GPUs of compute capability 9.
inline constexpr uint64_t kWorkspaceBytes = uint64_t(32) << 20;

using ProductCall = MatMulOf<Pointer>;
using OwnedProduct = Owned<ProductHandle>;
using OwnedLayout = Owned<LayoutHandle>;

class Products {
public:
  // `measured`: by keys, for this GPU and library; null: none. It outlives this. `source`: where it is from, for sentences.
  explicit Products(const MeasuredDevice *measured = nullptr, std::string source = "");
  ~Products();
  Products(const Products &) = delete;
  Products &operator=(const Products &) = delete;

  // The number of a product, to be run with. Throws a sentence if the library has no algorithm for it.
  size_t prepare(const ProductCall &call);
  // Puts it into a stream. Calls of one lane share its workspace. Throws a sentence if it is refused.
  void run(size_t product, int lane, StreamHandle stream);
  void addLane(int lane); // that has products: before the first run
  uint64_t workspaceBytes() const;
  size_t count() const { return prepared.size(); }
  size_t unmeasured() const { return withoutEntry; } // that the table does not have

  // For who measures: what the heuristic offers, the best first and `most` at most, split k included; and what is to be run.
  std::vector<Algorithm> candidates(size_t product, int most) const;
  void use(size_t product, const Algorithm &algorithm) { prepared[product].algorithm = algorithm; }

private:
  // cuBLASLt stores matrices by columns, the plan by rows: what the one calls a matrix is the other's transpose. So C = op(A) · op(B) is
  // given as its transpose, op(B)ᵀ · op(A)ᵀ: operands and their sizes change places, and none is moved.
  struct Prepared {
    ProductCall call;
    OwnedProduct product;
    OwnedLayout first, second, result; // B, A and C
    Algorithm algorithm{};
  };

  static Prepared describe(const ProductCall &call);
  std::vector<Heuristic> ask(const Prepared &of, int most) const;
  Algorithm checked(const Prepared &of, const Algorithm &measured) const;

  const MeasuredDevice *measured;
  std::string source;
  BlasHandle handle{};
  std::deque<Prepared> prepared;
  size_t withoutEntry = 0;
  DeviceMemory workspaces[kLanes];
};

} // namespace zero::runtime::cuda
