//===- tile.cpp - nn-tile --------------------------------------------------------------------------------===//
#include "passes/train/tile.h"
#include "passes/train/Passes.h"

using namespace mlir;

namespace zero::train {
#define GEN_PASS_DEF_TILEPASS
#include "passes/train/Passes.h.inc"

namespace {

struct Tile : impl::TilePassBase<Tile> {
  using TilePassBase::TilePassBase;
  llvm::DenseMap<StringAttr, SmallVector<nn::GetOp>> reads;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (parts < 1) {
      module.emitError() << "a parameter is cut into one part or more, not " << int64_t(parts);
      return signalPassFailure();
    }
    if (parts == 1) return;
    reads.clear();
    for (auto function : module.getOps<func::FuncOp>())
      function.walk([&](nn::GetOp get) { reads[get.getParameterAttr().getAttr()].push_back(get); });
    int64_t largest = 0;
    SmallVector<nn::ParameterOp> parameters;
    for (auto p : module.getOps<nn::ParameterOp>())
      if (reads.contains(p.getSymNameAttr())) {
        parameters.push_back(p);
        largest = std::max(largest, elementsOf(p));
      }
    int64_t limit = int64_t(llvm::divideCeil(largest, int64_t(parts)));
    SymbolTable symbols(module);
    for (nn::ParameterOp p : parameters)
      if (elementsOf(p) > limit) cut(p, limit, symbols);
    SmallVector<nn::GroupedMatMulOp> experts;
    module.walk([&](nn::GroupedMatMulOp grouped) { experts.push_back(grouped); });
    for (nn::GroupedMatMulOp grouped : experts) tileExperts(grouped);
  }

  static int64_t elementsOf(nn::ParameterOp p) { return cast<ShapedType>(p.getType()).getNumElements(); }

  void note(Operation *op, const Twine &sentence) { getContext().getDiagEngine().emit(op->getLoc(), DiagnosticSeverity::Note) << sentence; }

  /// Tiles are rows, each one range of a file and of a checkpoint; but of weights whose results are classes, these, where that makes them
  /// columns. None, after a note, where somebody reads the parameter otherwise.
  std::optional<int64_t> dimensionOf(nn::ParameterOp p) {
    bool classesAreColumns = true;
    for (nn::GetOp get : reads[p.getSymNameAttr()])
      for (OpOperand &use : get->getUses()) {
        if (!canBeTiled(use)) {
          note(use.getOwner(),
               "parameter '" + p.getSymName() +
                   "' is not cut into tiles: this node reads it neither as a table nor as a product's weights, nor as those of experts");
          return std::nullopt;
        }
        auto product = dyn_cast<nn::MatMulOp>(use.getOwner());
        auto logits = product ? logitsOf(product) : std::nullopt;
        classesAreColumns &= logits && logits->whole.empty() && !product.getTransposeRhs();
      }
    return classesAreColumns;
  }

  void cut(nn::ParameterOp p, int64_t limit, SymbolTable &symbols) {
    TiledParameter tiled;
    auto dim = dimensionOf(p);
    if (!dim) return;
    tiled.dim = *dim;
    auto type = cast<RankedTensorType>(p.getType());
    // Rows by what a vector has; a matrix of a group is large.
    tiled.ends = tileEnds(type.getDimSize(*dim), type.getNumElements() / type.getDimSize(*dim), limit, type.getRank() == 3 ? 1 : 16);
    if (tiled.size() == 1) return;
    for (size_t k = 0; k < tiled.size(); ++k) tiled.tiles.push_back(makeTile(p, tiled, k, symbols));
    tiles += tiled.size();
    for (nn::GetOp get : reads[p.getSymNameAttr()]) {
      for (OpOperand &use : llvm::make_early_inc_range(get->getUses())) tileUse(use.getOwner(), p, tiled);
      get.erase();
    }
    symbols.erase(p);
  }

  /// A parameter of its own, which knows what it is a part of.
  nn::ParameterOp makeTile(nn::ParameterOp p, const TiledParameter &tiled, size_t k, SymbolTable &symbols) {
    OpBuilder b(&getContext());
    auto type = cast<RankedTensorType>(p.getType());
    SmallVector<int64_t> begin(type.getRank(), 0), size(type.getShape());
    begin[tiled.dim] = tiled.begin(k);
    size[tiled.dim] = tiled.extent(k);
    auto tile = cast<nn::ParameterOp>(p->clone());
    tile.setSymName((p.getSymName() + "#" + Twine(k)).str());
    tile.setTypeAttr(TypeAttr::get(RankedTensorType::get(size, type.getElementType())));
    tile.setTileOf(p.getSymName());
    tile.setWhole(type.getShape());
    tile.setBegin(begin);
    symbols.insert(tile, p->getIterator());
    return tile;
  }

  /// Says how many bytes they take, and how many the gradient of the weights that make them.
  void noteLogits(nn::MatMulOp product) {
    if (product->getParentOfType<func::FuncOp>().getName() != "train") return;
    uint64_t bytes = nn::bytesOf(nn::typeOf(product.getResult())), gradient = nn::bytesOf(nn::typeOf(product.getRhs()));
    getOperation()->setAttr(kKeptLogits, Builder(&getContext()).getI64ArrayAttr({int64_t(bytes), int64_t(gradient)}));
  }

  void tileUse(Operation *user, nn::ParameterOp p, const TiledParameter &tiled) {
    if (auto gather = dyn_cast<nn::GatherOp>(user)) return tileTable(gather, tiled);
    if (auto grouped = dyn_cast<nn::GroupedMatMulOp>(user)) return tileGroups(grouped, tiled);
    if (auto expert = dyn_cast<nn::ReshapeOp>(user)) return tileExpert(expert, tiled);
    auto product = cast<nn::MatMulOp>(user);
    auto logits = logitsOf(product);
    bool byClass = tiled.dim == (product.getTransposeRhs() ? 0 : 1); // another use may want the other dimension
    if (logits && logits->whole.empty() && byClass) {
      ++losses;
      if (keepLogits) noteLogits(product);
      return tileLoss(product, *logits, tiled, /*again=*/!keepLogits);
    }
    if (logits && product->getParentOfType<func::FuncOp>().getName() == "train")
      note(product, "the logits of '" + p.getSymName() + "', which is in tiles, are made whole: " +
                        (logits->whole.empty() ? "another use of it sums over its tiles" : logits->whole));
    tileProduct(product, tiled);
  }
};

} // namespace

bool keepsLargeLogits(ModuleOp module) {
  auto kept = module->getAttrOfType<ArrayAttr>(kKeptLogits);
  return kept && cast<IntegerAttr>(kept[0]).getInt() > cast<IntegerAttr>(kept[1]).getInt();
}

} // namespace zero::train
