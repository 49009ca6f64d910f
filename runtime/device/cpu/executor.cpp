#include "runtime/device/cpu/executor.h"
#include "runtime/device/cpu/matmul.h"
#include <algorithm>
#include <cstring>

namespace zero::runtime {
namespace {

constexpr int64_t kCopyPiece = 1 << 20; // bytes one thread copies or fills at a time

template <class... Cases> struct Overloaded : Cases... { using Cases::operator()...; };
template <class... Cases> Overloaded(Cases...) -> Overloaded<Cases...>;

} // namespace

void Executor::prepare(const Needs &needs) {
  attentionScratch.prepare(pool.threads(), needs.attention, halfProducts.unit());
  std::vector<MatMulShape> pieces;
  for (const MatMulShape &shape : needs.halfProducts)
    for (const MatMulShape &piece : piecesOf(shape, pool.threads())) pieces.push_back(piece);
  halfProducts.prepare(pieces, pool.threads());
}

void Executor::run(const Call &call, Communicator *communicator) {
  std::visit(Overloaded{
                 [&](const LaunchCall &c) { launch(c); },
                 [&](const MatMulCall &c) { matmul(c); },
                 [&](const AttentionCall &c) { attention(c); },
                 [&](const AttentionGradCall &c) { attentionGrad(c); },
                 [&](const CopyCall &c) { copy(c); },
                 [&](const DiskCall &c) { disk(c); },
                 [&](const FillCall &c) { fill(c); },
                 [&](const AllGatherCall &c) { communicator->allGather(c.src, c.dst, c.bytes); },
                 [&](const ReduceScatterCall &c) {
                   communicator->reduceScatter(c.dtype == plan::BF16 ? WireType::Bf16 : WireType::F32, c.src, static_cast<float *>(c.dst),
                                               c.count, {c.staging, c.slice});
                 },
                 [&](const AllReduceCall &c) {
                   communicator->allReduce(c.data, c.count, {c.staging, c.slice});
                 },
                 [&](const RowsCall &c) { rows(c); },
                 [&](const DiskRowsCall &c) { c.writer->put(c.table, c.indices, c.rows, c.offset); },
             },
             call);
}

void Executor::matmul(const MatMulCall &call) { runtime::matmul(pool, halfProducts, call); }

template <typename Body> void Executor::forPieces(uint64_t bytes, Body &&body) {
  auto total = static_cast<int64_t>(bytes);
  pool.run((total + kCopyPiece - 1) / kCopyPiece, [&](int64_t piece, int) {
    int64_t offset = piece * kCopyPiece;
    body(static_cast<uint64_t>(offset), static_cast<uint64_t>(std::min(kCopyPiece, total - offset)));
  });
}

void Executor::copy(const CopyCall &call) {
  if (call.dst == call.src) return;
  forPieces(call.bytes, [&](uint64_t offset, uint64_t size) {
    std::memcpy(static_cast<char *>(call.dst) + offset, static_cast<const char *>(call.src) + offset, size);
  });
}

void Executor::disk(const DiskCall &call) {
  if (call.writes)
    call.storage->write(call.offset, {call.memory, call.bytes});
  else
    call.storage->read(call.offset, {call.memory, call.bytes});
}

void Executor::rows(const RowsCall &call) {
  auto *rows = static_cast<std::byte *>(call.rows), *window = static_cast<std::byte *>(call.window);
  switch (call.does) {
  case RowsDo::Copy:
    return copyRows(call, call.indices, window, rows);
  case RowsDo::Move:
    return moveRows(call, call.indices, window, rows);
  case RowsDo::Put:
    return putRows(call, call.indices, rows, window);
  }
}

void Executor::fill(const FillCall &call) {
  forPieces(call.bytes, [&](uint64_t offset, uint64_t size) {
    runtime::fill({static_cast<char *>(call.dst) + offset, call.pattern, size});
  });
}

} // namespace zero::runtime
