#include "runtime/device/cpu/half_products.h"
#include "runtime/device/cpu/half.h"
#include "runtime/device/cpu/matmul.h"
#include "runtime/plan/error.h"
#include <algorithm>
#include <cstdlib>
#include <dnnl.hpp>
#include <map>
#include <omp.h>
#include <tuple>
#include <vector>

namespace zero::runtime {
namespace {

std::string textOf(const MatMulShape &s) { return std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k); }

// What the library makes a product for.
using Key = std::tuple<int64_t, int64_t, int64_t, bool, bool, int64_t, int64_t, int64_t, bool, plan::DType>;
Key keyOf(const MatMulShape &s) { return {s.m, s.n, s.k, s.transA, s.transB, s.lda, s.ldb, s.ldc, s.accumulate, s.cDtype}; }

} // namespace

bool HalfProducts::multipliesBf16() {
  // Values of the enumeration are sets of bits: later processors have those of earlier ones.
  auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (isa & needed) == needed;
}

// A primitive of the library for each shape. What it allocates is allocated here: for each thread the operands' handles, and room to pack
// them in that all products of the thread share.
struct HalfProducts::Native {
  struct Operands {
    dnnl::memory a, b, c, room;
  };
  struct Product {
    dnnl::primitive primitive;
    std::vector<Operands> threads;
  };
  struct Free {
    void operator()(void *memory) const { std::free(memory); }
  };

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::vector<dnnl::stream> streams;
  std::map<Key, Product> products;
  std::vector<std::unique_ptr<void, Free>> rooms;
  size_t room = 0; // bytes of each

  void prepare(std::span<const MatMulShape> shapes, int threads) {
    omp_set_num_threads(1); // products are made for as many threads as run one
    for (int t = 0; t < threads; ++t) streams.emplace_back(engine);
    for (const MatMulShape &shape : shapes)
      if (!products.contains(keyOf(shape))) room = std::max(room, add(shape));
    if (room == 0) return;
    for (int t = 0; t < threads; ++t) {
      rooms.emplace_back(std::aligned_alloc(4096, (room + 4095) / 4096 * 4096));
      if (!rooms.back()) throw Error("there is no memory for the " + std::to_string(room) + " bytes in which products pack their operands");
    }
    for (auto &[key, product] : products)
      for (size_t t = 0; t < product.threads.size(); ++t)
        if (dnnl::memory &memory = product.threads[t].room; memory.get(true)) memory.set_data_handle(rooms[t].get());
  }

  // The room it needs.
  size_t add(const MatMulShape &s) {
    using Type = dnnl::memory::data_type;
    using Strides = dnnl::memory::dims;
    dnnl::memory::desc a({s.m, s.k}, Type::bf16, s.transA ? Strides{1, s.lda} : Strides{s.lda, 1});
    dnnl::memory::desc b({s.k, s.n}, Type::bf16, s.transB ? Strides{1, s.ldb} : Strides{s.ldb, 1});
    dnnl::memory::desc c({s.m, s.n}, s.cDtype == plan::F32 ? Type::f32 : Type::bf16, Strides{s.ldc, 1});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (s.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum();
      attributes.set_post_ops(sum);
    }
    try {
      dnnl::matmul::primitive_desc description({a, b, c}, attributes, engine);
      dnnl::memory::desc room = description.scratchpad_desc();
      Product product{dnnl::matmul(description), {}};
      for (size_t t = 0; t < streams.size(); ++t) {
        product.threads.push_back({{a, engine, nullptr}, {b, engine, nullptr}, {c, engine, nullptr}, {}});
        if (room.get_size() > 0) product.threads.back().room = dnnl::memory(room, engine, nullptr);
      }
      products.emplace(keyOf(s), std::move(product));
      return room.get_size();
    } catch (const dnnl::error &error) {
      throw Error("the product library cannot make a bf16 product of " + textOf(s) + ": " + error.what());
    }
  }

  void run(const MatMulShape &shape, const void *a, const void *b, void *c, int thread) {
    [[maybe_unused]] thread_local bool alone = (omp_set_num_threads(1), true);
    auto found = products.find(keyOf(shape));
    if (found == products.end())
      throw Error("a bf16 product of " + textOf(shape) + " was not announced to the device before the first step");
    Operands &operands = found->second.threads[static_cast<size_t>(thread)];
    const dnnl::stream &stream = streams[static_cast<size_t>(thread)];
    operands.a.set_data_handle(const_cast<void *>(a), stream);
    operands.b.set_data_handle(const_cast<void *>(b), stream);
    operands.c.set_data_handle(c, stream);
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, operands.a.get()},
                                    {DNNL_ARG_WEIGHTS, operands.b.get()},
                                    {DNNL_ARG_DST, operands.c.get()},
                                    {DNNL_ARG_SCRATCHPAD, operands.room.get(true)}};
    dnnl_status_t status = dnnl_primitive_execute(found->second.primitive.get(), stream.get(), operands.room.get(true) ? 4 : 3, args);
    if (status != dnnl_success)
      throw Error("the product library refused a bf16 product of " + textOf(shape) + " (status " + std::to_string(status) + ")");
  }
};

// Blocks of A and B are widened, multiplied in f32, summed over k in a block of f32, and that is rounded.
struct HalfProducts::Widened {
  static constexpr int64_t kRows = 256, kColumns = 256, kInner = 1024;
  struct Thread {
    std::vector<float> a, b, c;
  };
  std::vector<Thread> threads;

  void prepare(int count) {
    Thread thread{std::vector<float>(kRows * kInner), std::vector<float>(kInner * kColumns), std::vector<float>(kRows * kColumns)};
    threads.assign(static_cast<size_t>(count), thread);
  }

  template <typename Half> void run(const MatMulShape &s, const Half *a, const Half *b, void *c, Thread &room) const {
    for (int64_t row = 0; row < s.m; row += kRows)
      for (int64_t column = 0; column < s.n; column += kColumns) {
        int64_t rows = std::min(kRows, s.m - row), columns = std::min(kColumns, s.n - column);
        bool narrow = s.cDtype != plan::F32;
        float *sum = narrow ? room.c.data() : static_cast<float *>(c) + row * s.ldc + column;
        Half *result = static_cast<Half *>(c) + row * s.ldc + column; // if narrow
        int64_t ld = narrow ? columns : s.ldc;
        if (narrow && s.accumulate) widen(rows, columns, result, s.ldc, sum, ld);
        for (int64_t inner = 0; inner < s.k; inner += kInner) {
          int64_t k = std::min(kInner, s.k - inner);
          int64_t ldA = s.transA ? rows : k, ldB = s.transB ? k : columns;
          widen(s.transA ? k : rows, ldA, a + (s.transA ? inner * s.lda + row : row * s.lda + inner), s.lda, room.a.data(), ldA);
          widen(s.transB ? columns : k, ldB, b + (s.transB ? column * s.ldb + inner : inner * s.ldb + column), s.ldb, room.b.data(), ldB);
          singleMatmul(s.transA, s.transB, rows, columns, k, 1.0f, room.a.data(), ldA, room.b.data(), ldB, s.accumulate || inner > 0, sum,
                       ld);
        }
        if (narrow) round(rows, columns, sum, ld, result, s.ldc);
      }
  }
};

HalfProducts::HalfProducts(bool widened) : widened(widened) {}
HalfProducts::~HalfProducts() = default;

void HalfProducts::prepare(std::span<const MatMulShape> shapes, int threads) {
  if (shapes.empty()) return;
  bool bf16 = shapes.front().dtype == plan::BF16;
  if (bf16 && !widened) {
    native = std::make_unique<Native>();
    return native->prepare(shapes, threads);
  }
  blocks = std::make_unique<Widened>();
  blocks->prepare(threads);
  slow = std::string(bf16 ? "this processor has no instructions for bf16 products (AMX, AVX-512 BF16)"
                          : "the library of products has none of f16 for this processor") +
         ": operands are widened and multiplied in f32, which saves memory but is slower than --precision f32" +
         (bf16 || widened ? "" : ", and much slower than --precision bf16 here");
}

void HalfProducts::run(const MatMulShape &shape, const void *a, const void *b, void *c, int thread) const {
  if (native) return native->run(shape, a, b, c, thread);
  if (!blocks)
    throw Error("a " + plan::DType_Name(shape.dtype) + " product of " + textOf(shape) +
                " was not announced to the device before the first step");
  Widened::Thread &room = blocks->threads[static_cast<size_t>(thread)];
  if (shape.dtype == plan::BF16) return blocks->run(shape, static_cast<const Bf16 *>(a), static_cast<const Bf16 *>(b), c, room);
  blocks->run(shape, static_cast<const F16 *>(a), static_cast<const F16 *>(b), c, room);
}

size_t HalfProducts::room() const {
  if (native) return native->room;
  return !blocks ? 0
                 : sizeof(float) *
                       (Widened::kRows * Widened::kInner + Widened::kInner * Widened::kColumns + Widened::kRows * Widened::kColumns);
}

} // namespace zero::runtime
