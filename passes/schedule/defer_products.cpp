//===- defer_products.cpp - plan-defer-products -------------------------------------------------------===//
#include "passes/schedule/Passes.h"
#include "passes/schedule/deferral.h"
#include "passes/schedule/order.h"
#include "llvm/ADT/SetVector.h"

#define DEBUG_TYPE "plan-defer-products"

using namespace mlir;
using namespace zero::planir;

namespace zero::schedule {
#define GEN_PASS_DEF_DEFERPRODUCTSPASS
#include "passes/schedule/Passes.h.inc"

namespace {

struct DeferProducts : impl::DeferProductsPassBase<DeferProducts> {
  using DeferProductsPassBase::DeferProductsPassBase;

  /// Positions: of a product, and of the step that needs its result.
  struct Move {
    int64_t at, needed;
  };

  /// Products whose result waits, and what they are made of.
  struct Waiting {
    std::vector<Move> moves;
    std::vector<WaitingProduct> products;
    std::vector<int64_t> operands;
  };

  void runOnOperation() override {
    const Order &order = getAnalysis<Order>();
    SmallVector<int64_t> computing{0}; // steps of lane compute before each position
    for (size_t position = 0; position < order.size(); ++position)
      computing.push_back(computing.back() + (order[position].getLane() == Lane::compute));
    Waiting waiting = find(order, computing);
    std::vector<bool> worth = worthDeferring(waiting.products, waiting.operands);
    std::vector<Move> chosen;
    for (size_t i = 0; i < worth.size(); ++i)
      if (worth[i]) chosen.push_back(waiting.moves[i]);
    if (chosen.empty()) return markAllAnalysesPreserved();
    for (const Move &move : chosen) order[move.at]->moveBefore(order[move.needed]);
    if (!grow && mostLive(Order(getOperation())) > mostLive(order)) { // what is deferred last lies there beside the results
      for (const Move &move : llvm::reverse(chosen)) order[move.at]->moveBefore(order[move.at + 1]);
      return;
    }
    for (const Move &move : chosen) tell(order, move, computing);
  }

  Waiting find(const Order &order, ArrayRef<int64_t> computing) const {
    Waiting waiting;
    llvm::DenseMap<Value, uint32_t> indices; // of operands
    for (int64_t at = 0; at < int64_t(order.size()); ++at) {
      auto product = dyn_cast<MatMulStep>(*order[at]);
      if (!product || product.getAccumulate() || order[at].getLane() != Lane::compute || !isOfActivations(order, at)) continue;
      int64_t needed = order.firstConflictAfter(at, accessesOf(order[at]));
      if (needed == int64_t(order.size()) || computing[needed] - computing[at + 1] < distance) continue;
      auto buffers = order[at].getBuffers();
      waiting.moves.push_back({at, needed});
      waiting.products.push_back({bytesOf(resultOf(order[at])), {}});
      for (Value operand : llvm::SmallSetVector<Value, 4>(buffers.begin(), buffers.begin() + product.getInputs())) {
        if (order.lastTouch(operand) >= needed) continue; // it is there anyway
        auto [index, fresh] = indices.try_emplace(operand, uint32_t(waiting.operands.size()));
        if (fresh) waiting.operands.push_back(bytesOf(operand));
        waiting.products.back().operands.push_back(index->second);
      }
    }
    return waiting;
  }

  static Value resultOf(StepOp product) { return product.getBuffers()[product.getInputs()]; }
  static int64_t mostLive(const Order &order) { return *llvm::max_element(liveBytes(order)); }
  static int64_t bytesOf(Value buffer) { return int64_t(buffer.getDefiningOp<BufferOp>().getBytes()); }

  /// It reads and writes what the program makes, and nothing has touched its result's bytes before: parameters, which come for a while,
  /// would have to stay, and a buffer that others have begun to fill is there already.
  static bool isOfActivations(const Order &order, int64_t at) {
    auto buffers = order[at].getBuffers();
    bool own = llvm::all_of(buffers, [](Value buffer) {
      auto op = buffer.getDefiningOp<BufferOp>();
      return op && (op.getKind() == BufferKind::activation || op.getKind() == BufferKind::gradient);
    });
    return own && order.touches(resultOf(order[at])).front().position == at;
  }

  void tell(const Order &order, Move move, ArrayRef<int64_t> computing) {
    ++deferred;
    decide(getOperation(), nameOf(order[move.at]->getLoc()),
           "made " + counted(uint64_t(computing[move.needed] - computing[move.at + 1]), "step") + " of lane compute later",
           "what it is made of takes less than its result, which would wait for " + Twine(nameOf(order[move.needed]->getLoc())) + " in " +
               Twine(bytesOf(resultOf(order[move.at]))) + " bytes");
  }
};

} // namespace
} // namespace zero::schedule
