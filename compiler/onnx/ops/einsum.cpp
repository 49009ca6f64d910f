//===- einsum.cpp - sums of products by letters ---------------------------------------------------===//
#include "compiler/onnx/importer.h"

namespace zero::onnx {
namespace {
using llvm::StringRef;

/// A tensor and one letter for each of its dimensions.
struct Lettered {
  Val x;
  std::string letters;
  bool has(char l) const { return letters.find(l) != std::string::npos; }
};

/// The letters of one term; "..." stands for `rank` dimensions less those that have letters, the last of `spare`. False where the term does
/// not fit.
bool lettersOf(StringRef term, size_t rank, StringRef spare, std::string &out) {
  std::string text;
  for (char l : term)
    if (l != ' ') text.push_back(l);
  size_t dots = text.find("...");
  if (dots != std::string::npos) {
    size_t named = text.size() - 3;
    if (named > rank || rank - named > spare.size()) return false;
    text.replace(dots, 3, spare.take_back(rank - named).str());
  }
  for (char l : text) {
    if (!isalpha(l)) return false;
    out.push_back(l);
  }
  return out.size() == rank;
}

bool repeats(StringRef letters) {
  return llvm::any_of(letters, [&](char l) { return letters.count(l) > 1; });
}

/// Of dimensions with the same letter, and the same size, the diagonal is meant: every n + 1st of their n · n elements.
void takeDiagonals(NodeContext &c, Lettered &t) {
  while (repeats(t.letters) && !c.e.failed()) {
    size_t second = 0;
    while (t.letters.find(t.letters[second]) == second) ++second;
    size_t first = t.letters.find(t.letters[second]);
    int64_t n = t.x.dim(int64_t(first));
    Ints perm, shape, starts, steps;
    std::string others;
    for (size_t d = 0; d < t.letters.size(); ++d)
      if (d != first && d != second) perm.push_back(int64_t(d)), shape.push_back(t.x.dim(int64_t(d))), others.push_back(t.letters[d]);
    perm.append({int64_t(first), int64_t(second)});
    shape.push_back(n * n);
    starts.assign(shape.size(), 0), steps.assign(shape.size(), 1);
    Ints sizes = shape;
    sizes.back() = n, steps.back() = n + 1;
    t = {c.e.slice(c.e.reshape(c.e.transpose(t.x, perm), shape), starts, sizes, steps), others + t.letters[second]};
  }
}

Val arranged(NodeContext &c, const Lettered &t, StringRef want) {
  Ints perm;
  for (char l : want) perm.push_back(int64_t(t.letters.find(l)));
  return c.e.transpose(t.x, perm);
}

/// Sums over the letters that nobody else needs.
void sumOut(NodeContext &c, Lettered &t, StringRef needed) {
  Ints drop;
  std::string kept;
  for (auto [d, l] : llvm::enumerate(t.letters))
    if (needed.contains(l))
      kept.push_back(l);
    else
      drop.push_back(int64_t(d));
  t.x = c.e.reduce(nn::ReductionKind::sum, t.x, drop);
  t.letters = kept;
}

/// A dimension of 1 under a letter that is more elsewhere is broadcast: the operand is the same without it.
void dropOnes(NodeContext &c, Lettered &t, const llvm::DenseMap<char, int64_t> &sizes) {
  std::string kept;
  Ints shape;
  for (auto [d, l] : llvm::enumerate(t.letters))
    if (int64_t size = t.x.dim(int64_t(d)); size == sizes.lookup(l)) kept.push_back(l), shape.push_back(size);
  if (kept.size() == t.letters.size()) return;
  t.x = c.e.reshape(t.x, shape), t.letters = kept;
}

/// A batched product of [batch, free x, contracted] and [batch, free y, contracted]; letters of both that are `needed` are the batch.
Lettered contract(NodeContext &c, Lettered x, Lettered y, const std::string &needed, const llvm::DenseMap<char, int64_t> &sizes) {
  sumOut(c, x, needed + y.letters);
  sumOut(c, y, needed + x.letters);
  std::string batch, contracted, freeX, freeY;
  for (char l : x.letters) (!y.has(l) ? freeX : StringRef(needed).contains(l) ? batch : contracted).push_back(l);
  for (char l : y.letters)
    if (!x.has(l)) freeY.push_back(l);
  auto sizeOf = [&](StringRef letters) {
    int64_t n = 1;
    for (char l : letters) n *= sizes.lookup(l);
    return n;
  };
  int64_t b = sizeOf(batch), m = sizeOf(freeX), k = sizeOf(contracted), n = sizeOf(freeY);
  Val l = c.e.reshape(arranged(c, x, batch + freeX + contracted), {b, m, k});
  Val r = c.e.reshape(arranged(c, y, batch + freeY + contracted), {b, n, k});
  if (!l || !r) return {};
  Lettered result{{}, batch + freeX + freeY};
  if (k == 1)
    result.x = c.e.mul(l, c.e.reshape(r, {b, 1, n}));
  else if (b == 1)
    result.x = c.e.matmul(c.e.reshape(l, {m, k}), c.e.reshape(r, {n, k}), false, true);
  else
    result.x = c.e.matmul(l, r, false, true);
  Ints shape;
  for (char letter : result.letters) shape.push_back(sizes.lookup(letter));
  result.x = c.e.reshape(result.x, shape);
  return result;
}

/// Operands are multiplied from the left to the right; each letter is summed over as soon as no later one has it.
Vals einsum(NodeContext &c) {
  std::string equation = c.string("equation", "");
  auto [left, right] = StringRef(equation).split("->");
  llvm::SmallVector<StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != c.inputs.size()) return c.fail("equation '" + equation + "' does not fit its number of operands");
  std::string spare, all;
  for (char l = 'A'; l <= 'z' && spare.size() < 8; ++l)
    if (isalpha(l) && !StringRef(equation).contains(l)) spare.push_back(l);
  llvm::DenseMap<char, int64_t> sizes;
  std::vector<Lettered> operands;
  size_t dots = 0; // dimensions that "..." stands for in the result
  for (size_t i = 0; i < terms.size(); ++i) {
    Lettered t{c.in(i), {}};
    if (!t.x) return {};
    if (!lettersOf(terms[i], size_t(t.x.rank()), spare, t.letters))
      return c.fail("equation '" + equation + "' does not fit the shape " + text(t.x.shape()) + " of operand " + llvm::Twine(i));
    for (auto [d, l] : llvm::enumerate(t.letters)) {
      int64_t size = t.x.dim(int64_t(d)), before = sizes.try_emplace(l, size).first->second;
      bool isSame = size == t.x.dim(int64_t(t.letters.find(l))); // of the same letter before in this operand
      if (!isSame || (before != size && before != 1 && size != 1)) return c.fail("equation '" + equation + "' gives one letter two sizes");
      sizes[l] = std::max(before, size);
    }
    if (terms[i].contains("...")) dots = std::max(dots, size_t(t.x.rank()) - (terms[i].size() - terms[i].count(' ') - 3));
    all += t.letters;
    takeDiagonals(c, t);
    operands.push_back(std::move(t));
  }
  for (Lettered &o : operands) dropOnes(c, o, sizes);
  // PyTorch promotes operands of several types, and its exporters write them as they were given.
  if (llvm::any_of(operands, [](const Lettered &o) { return o.x.isFloat(); }))
    for (Lettered &o : operands)
      if (!o.x.isFloat()) o.x = c.e.convert(o.x, c.e.f32());
  std::string out;
  if (equation.find("->") == std::string::npos) { // implicit: "...", then the letters that occur once, in alphabetical order
    std::string once;
    for (auto &[l, n] : sizes)
      if (llvm::count(all, l) == 1 && !StringRef(spare).contains(l)) once.push_back(l);
    llvm::sort(once);
    out = StringRef(spare).take_back(dots).str() + once;
  } else {
    size_t named = llvm::count_if(right, [](char l) { return isalpha(l); });
    if (!lettersOf(right, named + (right.contains("...") ? dots : 0), spare, out) || repeats(out))
      return c.fail("equation '" + equation + "' repeats a letter in its result");
  }
  for (char l : out)
    if (!sizes.count(l)) return c.fail("equation '" + equation + "' invents '" + std::string(1, l) + "'");
  Lettered result = operands[0];
  for (size_t i = 1; i < operands.size() && !c.e.failed(); ++i) {
    std::string needed = out;
    for (size_t j = i + 1; j < operands.size(); ++j) needed += operands[j].letters;
    result = contract(c, result, operands[i], needed, sizes);
  }
  if (c.e.failed()) return {};
  sumOut(c, result, out);
  return {arranged(c, result, out)};
}

} // namespace

void registerEinsum(Registry &r) { r["Einsum"] = {einsum, 12}; }

} // namespace zero::onnx
