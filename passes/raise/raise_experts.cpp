//===- raise_experts.cpp - nn-raise-experts --------------------------------------------------------===//
#include "passes/raise/Passes.h"
#include "passes/raise/choices.h"
#include "passes/raise/match.h"
#include "passes/raise/merge_rows.h"
#include "passes/raise/separate_sums.h"

using namespace mlir;
using namespace zero::nn;

namespace zero::raise {
#define GEN_PASS_DEF_RAISEEXPERTSPASS
#include "passes/raise/Passes.h.inc"

namespace {

/// Experts of one sum, each as often as a row has choices.
constexpr size_t kMostExperts = 16384;
/// Kinds of experts in one sum.
constexpr size_t kMostSets = 64;

/// The rows of `value` where a number is this one and none of the excluded ones is; of all rows the slices are left.
struct Term {
  Value value;
  RankedTensorType type;        // of what is left
  SmallVector<SliceOp> slices;  // of the first dimension, the last one first
  Choice all, here;             // among all rows, and among those that are left
  std::vector<Choice> excluded; // among those that are left

  /// Whether they are of two experts in one sum.
  bool isBeside(const Term &other) const {
    auto same = [](const Choice &x, const Choice &y) { return x.isOfSameNumbers(y); };
    auto cut = [](SliceOp x, SliceOp y) { return x->getAttrDictionary() == y->getAttrDictionary(); };
    return type == other.type && value.getType() == other.value.getType() && all.isOfSameNumbers(other.all) &&
           here.isOfSameNumbers(other.here) && llvm::equal(excluded, other.excluded, same) && llvm::equal(slices, other.slices, cut);
  }
};

/// Those of a sum that differ in their number alone.
struct Experts {
  std::vector<Term> terms; // in the order of their numbers
  Value result;            // what they give; null where they are not computed alike
  bool isAdded = false;

  int64_t first() const { return terms[0].here.number; }
  SmallVector<Value> values() const {
    return llvm::map_to_vector(terms, [](const Term &term) { return term.value; });
  }
  bool areSuccessive() const {
    for (auto [i, term] : llvm::enumerate(terms))
      if (term.here.number != first() + int64_t(i)) return false;
    return terms.size() > 1;
  }
};

/// "mask ? x : mask' ? x' : base": the terms, of which the first wins; none where a mask is no choice.
struct Terms {
  std::vector<Term> terms;
  Value base;
  SmallVector<SelectOp> selects;
};

struct RaiseExperts : impl::RaiseExpertsPassBase<RaiseExperts> {
  using RaiseExpertsPassBase::RaiseExpertsPassBase;

  void runOnOperation() override {
    separateSums(getOperation());
    Choices known;
    choices = &known;
    OpBuilder builder(&getContext());
    SmallVector<Operation *> ends;
    for (Operation &op : llvm::reverse(getOperation().front()))
      if (isa<AddOp, SelectOp>(op)) ends.push_back(&op);
    for (Operation *op : ends) {
      if (!visited.insert(op).second) continue;
      builder.setInsertionPoint(op);
      Value whole = isa<AddOp>(op) ? sum(cast<AddOp>(op), builder) : chain(cast<SelectOp>(op), builder);
      if (whole) op->replaceAllUsesWith(ValueRange{whole});
    }
  }

  //===--------------------------------------------------------------------===//
  // Terms
  //===--------------------------------------------------------------------===//

  Terms termsOf(Value v) {
    Terms all;
    std::vector<Choice> earlier;
    auto type = typeOf(v);
    while (auto select = viewed(v).getDefiningOp<SelectOp>()) {
      Value mask = perRow(select.getCondition());
      if (mask) mask = viewed(mask);
      auto here = mask ? choices->of(mask) : std::vector<Choice>();
      if (here.empty() || all.terms.size() > kMostExperts || !leadingOf(type.getShape(), typeOf(mask).getNumElements())) break;
      Term term{viewed(select.getOnTrue()), type, {}, {}, {}, {}};
      auto chosen = choices->of(peel(term, mask));
      if (chosen.size() != here.size()) return {};
      for (auto [i, choice] : llvm::enumerate(here)) {
        term.all = chosen[i], term.here = choice, term.excluded.clear();
        for (const Choice &other : earlier) { // another number is not this one
          if (other.isOfSameNumbers(choice) && other.number != choice.number) continue;
          if (other.number != choice.number) return {};
          term.excluded.push_back(other);
        }
        all.terms.push_back(term);
        earlier.push_back(choice);
      }
      all.selects.push_back(select);
      v = select.getOnFalse();
    }
    all.base = v;
    return all;
  }

  /// Takes slices of rows off a term and its mask, which is returned without.
  Value peel(Term &term, Value mask) {
    while (true) {
      auto slice = term.value.getDefiningOp<SliceOp>(), ofMask = mask.getDefiningOp<SliceOp>();
      if (!slice || !ofMask || shapeOf(mask).size() != 1 || shapeOf(term.value).empty()) break;
      auto first = [](SliceOp op) { return std::array{op.getStarts()[0], op.getSizes()[0], op.getSteps()[0]}; };
      auto from = typeOf(slice.getInput()).getShape();
      bool rows = first(slice) == first(ofMask) && from[0] == typeOf(ofMask.getInput()).getDimSize(0) &&
                  from.drop_front() == shapeOf(term.value).drop_front();
      if (!rows) break;
      term.slices.push_back(slice);
      term.value = viewed(slice.getInput()), mask = viewed(ofMask.getInput());
    }
    return mask;
  }

  //===--------------------------------------------------------------------===//
  // Sets of experts
  //===--------------------------------------------------------------------===//

  /// All that is added up to `end`.
  Value sum(AddOp end, OpBuilder &b) {
    SmallVector<Value> leaves, left{end.getRhs(), end.getLhs()};
    while (!left.empty()) {
      Value v = left.pop_back_val();
      if (auto more = v.getDefiningOp<AddOp>(); more && v.hasOneUse()) {
        visited.insert(more);
        left.append({more.getRhs(), more.getLhs()});
      } else {
        leaves.push_back(v);
      }
    }
    return assembled(leaves, b);
  }

  /// Choices between experts, onto what was there.
  Value chain(SelectOp end, OpBuilder &b) {
    Terms all = termsOf(end);
    visited.insert(all.selects.begin(), all.selects.end());
    if (all.terms.size() < 2) return {};
    bool alone = splatOf(all.base) == 0.0;
    std::vector<Experts> sets;
    for (const Term &term : all.terms) add(term, sets);
    const Term &first = sets[0].terms[0];
    if (!alone && (sets.size() > 1 || !first.slices.empty() || !first.excluded.empty())) return {};
    compute(sets, alone ? Value() : all.base, b);
    Value whole;
    for (const Experts &set : sets) {
      if (!set.result) return {};
      whole = whole ? b.create<AddOp>(end.getLoc(), whole, set.result) : set.result;
    }
    return whole;
  }

  /// The sum of these, with what experts give to it computed at once; null if there are none.
  Value assembled(ArrayRef<Value> leaves, OpBuilder &b) {
    std::vector<Experts> sets;
    SmallVector<SmallVector<size_t>> setsOf; // of each leaf
    for (Value leaf : leaves) {
      SmallVector<size_t> &its = setsOf.emplace_back();
      if (Terms all = termsOf(leaf); leaf.hasOneUse() && !all.terms.empty() && splatOf(all.base) == 0.0)
        for (const Term &term : all.terms) its.push_back(add(term, sets));
      if (sets.size() > kMostSets) return {};
    }
    compute(sets, {}, b);
    Value whole;
    auto onto = [&](Value v) { whole = whole ? b.create<AddOp>(v.getLoc(), whole, v) : v; };
    bool any = false;
    for (auto [leaf, its] : llvm::zip(leaves, setsOf)) {
      auto isFound = [&](size_t set) { return bool(sets[set].result); };
      if (its.empty() || llvm::none_of(its, isFound)) {
        onto(leaf);
        continue;
      }
      if (!llvm::all_of(its, isFound)) return {};
      any = true;
      for (size_t set : its)
        if (!std::exchange(sets[set].isAdded, true)) onto(sets[set].result);
      for (SelectOp select : termsOf(leaf).selects) visited.insert(select);
    }
    return any ? whole : Value();
  }

  size_t add(const Term &term, std::vector<Experts> &sets) {
    for (auto [i, set] : llvm::enumerate(sets))
      if (set.terms[0].isBeside(term)) return set.terms.push_back(term), i;
    sets.push_back({{term}, {}, false});
    return sets.size() - 1;
  }

  /// What each set gives, onto `base` or zeros. Where the same is computed for several numbers of a row, it is computed at once.
  void compute(std::vector<Experts> &sets, Value base, OpBuilder &b) {
    for (Experts &set : sets) llvm::stable_sort(set.terms, [](const Term &x, const Term &y) { return x.here.number < y.here.number; });
    std::vector<bool> done(sets.size(), false);
    for (size_t i = 0; i < sets.size(); ++i) {
      if (done[i] || !sets[i].areSuccessive()) continue;
      auto values = sets[i].values();
      std::vector<Choice> numbers;
      std::vector<std::pair<size_t, size_t>> parts; // set, and which of the numbers is its
      for (size_t j = i; j < sets.size(); ++j) {
        if (sets[j].first() != sets[i].first() || sets[j].values() != values || !sets[j].areSuccessive()) continue;
        const Choice &its = sets[j].terms[0].all;
        auto known = llvm::find_if(numbers, [&](const Choice &other) { return other.isOfSameNumbers(its); });
        parts.push_back({j, size_t(known - numbers.begin())});
        if (known == numbers.end()) numbers.push_back(its);
        done[j] = true;
      }
      auto each = llvm::map_to_vector(numbers, [&](const Choice &choice) { return Choices::numbersOf(choice, b); });
      MergeRows rows(each, sets[i].first(), int64_t(values.size()), {height, blocks}, b);
      Value all = rows.merge(values);
      if (!all) continue;
      ++found;
      all = where(rows.held(), all, base, b);
      for (auto [set, number] : parts) sets[set].result = part(all, number, sets[set].terms[0], b);
    }
  }

  /// Of what was computed for all numbers of a row, that of one, and of these rows those that a term has.
  Value part(Value all, int64_t number, const Term &term, OpBuilder &b) {
    Build here{b, all.getLoc()};
    auto type = typeOf(term.value);
    SmallVector<int64_t> starts(typeOf(all).getRank(), 0), sizes(shapeOf(all)), steps(typeOf(all).getRank(), 1);
    sizes[0] = type.getNumElements() / (typeOf(all).getNumElements() / sizes[0]);
    starts[0] = number * sizes[0];
    Value v = here.slice(all, starts, sizes, steps);
    for (SliceOp slice : llvm::reverse(term.slices))
      v = here.slice(here.reshape(v, shapeOf(slice.getInput())), slice.getStarts(), slice.getSizes(), slice.getSteps());
    v = here.reshape(v, term.type.getShape());
    for (const Choice &other : term.excluded) {
      Value x = Choices::numbersOf(term.here, b), y = Choices::numbersOf(other, b);
      v = where(here.compare(Predicate::ne, x, here.reshape(y, shapeOf(x))), v, {}, b);
    }
    return v;
  }

  /// Rows of `v` where the condition holds for them, those of `base` or zeros elsewhere.
  static Value where(Value condition, Value v, Value base, OpBuilder &b) {
    Build here{b, v.getLoc()};
    auto shape = shapeOf(v);
    int64_t lead = *leadingOf(shape, typeOf(condition).getNumElements());
    Value each = here.broadcast(here.reshape(condition, shape.take_front(lead)), shape, llvm::to_vector(llvm::seq<int64_t>(0, lead)));
    return here.select(each, v, base ? here.reshape(base, shape) : here.like(v, 0));
  }

  Choices *choices = nullptr;
  DenseSet<Operation *> visited;
};

} // namespace
} // namespace zero::raise
