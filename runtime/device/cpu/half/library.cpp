#include "runtime/base/error.h"
#include "runtime/device/cpu/half/products.h"
#include "runtime/device/cpu/memory.h"
#include <algorithm>
#include <dnnl.hpp>
#include <map>
#include <omp.h>
#include <tuple>
#include <vector>

namespace zero::runtime {
namespace {

// What the library makes a product for.
using Key = std::tuple<int64_t, int64_t, int64_t, bool, bool, int64_t, int64_t, int64_t, bool, plan::DType>;
Key keyOf(const MatMulShape &s) { return {s.m, s.n, s.k, s.transA, s.transB, s.lda, s.ldb, s.ldc, s.accumulate, s.cDtype}; }

class LibraryProducts : public HalfProducts::Backend {
public:
  LibraryProducts(std::span<const MatMulShape> shapes, int threads) {
    omp_set_num_threads(1); // products are made for as many threads as run one
    for (int t = 0; t < threads; ++t) streams.emplace_back(engine);
    for (const MatMulShape &shape : shapes)
      if (!products.contains(keyOf(shape))) bytes = std::max(bytes, add(shape));
    if (bytes == 0) return;
    for (int t = 0; t < threads; ++t) rooms.emplace_back("packed operands of products", bytes);
    for (auto &[key, product] : products)
      for (size_t t = 0; t < product.threads.size(); ++t)
        if (dnnl::memory &memory = product.threads[t].room; memory.get(true)) memory.set_data_handle(rooms[t].data());
  }

  size_t room() const override { return bytes; }

  void run(const MatMulShape &shape, const void *a, const void *b, void *c, int thread) override {
    [[maybe_unused]] thread_local bool alone = (omp_set_num_threads(1), true);
    auto found = products.find(keyOf(shape));
    if (found == products.end()) throw unannounced(shape);
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
      throw Error("the product library refused a bf16 product of " + shape.text() + " (status " + std::to_string(status) + ")");
  }

private:
  struct Operands {
    dnnl::memory a, b, c, room;
  };
  struct Product {
    dnnl::primitive primitive;
    std::vector<Operands> threads;
  };

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
      throw Error("the product library cannot make a bf16 product of " + s.text() + ": " + error.what());
    }
  }

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::vector<dnnl::stream> streams;
  std::map<Key, Product> products;
  std::vector<MappedArena> rooms;
  size_t bytes = 0; // of each
};

} // namespace

bool libraryMultipliesBf16() {
  // Values of the enumeration are sets of bits: later processors have those of earlier ones.
  auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa()), needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (isa & needed) == needed;
}

std::unique_ptr<HalfProducts::Backend> libraryProducts(std::span<const MatMulShape> shapes, int threads) {
  return std::make_unique<LibraryProducts>(shapes, threads);
}

} // namespace zero::runtime
