#include "runtime/device/cuda/ordered_sum.h"
#include "runtime/device/cuda/kernels.h"
#include <array>
#include <string>

namespace zero::runtime::cuda {
namespace {

constexpr unsigned kThreads = 256; // of a block: each adds the numbers of one element

const std::string kHead = ".version 7.0\n.target sm_80\n.address_size 64\n";

// For elements of so many bytes, which `load` widens from %from to %x. Adding to -0 changes no number.
std::string kernel(const std::string &name, const std::string &bytes, const std::string &load) {
  std::string text = ".visible .entry " + name + R"((.param .u64 parts, .param .u64 mine, .param .u64 dst, .param .u64 count,
  .param .u32 world, .param .u32 own)
{
  .reg .pred %is;
  .reg .b32 %thread, %block, %threads, %rank, %world, %own, %bits;
  .reg .f32 %x, %sum;
  .reg .b64 %i, %count, %at, %next, %mine, %from, %dst, %stride;
  mov.u32 %thread, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  cvt.u64.u32 %i, %thread;
  mad.wide.u32 %i, %block, %threads, %i;
  ld.param.u64 %count, [count];
  setp.ge.u64 %is, %i, %count;
  @%is bra END;
  ld.param.u32 %world, [world];
  ld.param.u32 %own, [own];
  ld.param.u64 %mine, [mine];
  ld.param.u64 %next, [parts];
  ld.param.u64 %dst, [dst];
  mul.lo.u64 %stride, %count, BYTES;
  mul.lo.u64 %at, %i, BYTES;
  add.u64 %mine, %mine, %at;
  add.u64 %next, %next, %at;
  mov.u32 %rank, 0;
  mov.f32 %sum, 0f80000000;
LOOP:
  setp.eq.u32 %is, %rank, %own;
  selp.b64 %from, %mine, %next, %is;
  LOAD
  add.rn.f32 %sum, %sum, %x;
  add.u64 %next, %next, %stride;
  add.u32 %rank, %rank, 1;
  setp.lt.u32 %is, %rank, %world;
  @%is bra LOOP;
  mul.lo.u64 %at, %i, 4;
  add.u64 %dst, %dst, %at;
  st.global.f32 [%dst], %sum;
END:
  ret;
}
)";
  for (const auto &[word, meaning] : {std::pair<std::string, std::string>("BYTES", bytes), {"LOAD", load}})
    for (size_t at; (at = text.find(word)) != std::string::npos;) text.replace(at, word.size(), meaning);
  return text;
}

} // namespace

std::string orderedSumPtx() {
  return kHead + kernel("zero_sum_f32", "4", "ld.global.f32 %x, [%from];") +
         kernel("zero_sum_bf16", "2", "ld.global.u16 %bits, [%from];\n  shl.b32 %bits, %bits, 16;\n  mov.b32 %x, %bits;");
}

OrderedSum::OrderedSum() : module(compilePtx(orderedSumPtx(), "the kernels that sum over ranks")) {
  const Driver &driver = Driver::get();
  for (auto [function, symbol] : {std::pair(&ofF32, "zero_sum_f32"), {&ofBf16, "zero_sum_bf16"}})
    driver.require(driver.moduleGetFunction(function, module.get(), symbol), "cannot load the kernels that sum over ranks");
}

void OrderedSum::run(const SumCall &call, StreamHandle stream) const {
  const Driver &driver = Driver::get();
  SumCall given = call;
  std::array<void *, 6> params{&given.parts, &given.mine, &given.dst, &given.count, &given.world, &given.own};
  auto blocks = static_cast<unsigned>((call.count + kThreads - 1) / kThreads);
  driver.require(
      driver.launchKernel(call.dtype == plan::F32 ? ofF32 : ofBf16, blocks, 1, 1, kThreads, 1, 1, 0, stream, params.data(), nullptr),
      "cannot sum over ranks");
}

} // namespace zero::runtime::cuda
