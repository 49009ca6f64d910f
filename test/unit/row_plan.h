// One rank trains a table of 125 rows in two tiles, the border between which is within a row. Its gradient comes at the beginning, but for
// what a few lookups add to it. With `apart` the looked-up rows are set apart and updated at the end; without, lookups are added before the
// updates. Both give the same bits.
#pragma once
#include "test/unit/run_fixtures.h"
#include "test/unit/update_plan.h"
#include <array>

namespace zero::test {

struct RowPlan : UpdatePlan {
  static constexpr uint64_t kColumns = 24, kTable = 125 * kColumns, kLookups = 7;     // elements; rows that are looked up
  static constexpr std::array<uint64_t, 2> kHolds{2000, 1000}, kElements{2048, 1024}; // of each tile, without and with padding

  plan::Ref hyper, indices, lookups;
  std::array<plan::Ref, 2> logits, masters, momenta; // what the gradient is made of, and the state

  RowPlan(bool apart, plan::Tier tier) : UpdatePlan(1), tier(tier) {
    plan.mutable_optimizer()->set_kind(plan::SGD);
    for (int arena : {0, 1}) plan.mutable_arenas(arena)->set_alignment(4096);
    home = tier == plan::DEVICE ? 0 : addArena(tier, 4096);
    hyper = hyperInput(), indices = filled(bytes("indices", kLookups * 8), plan::Input::SHARED, plan::I64);
    lookups = filled(floats("lookups", kLookups * kColumns), plan::Input::SHARED, plan::F32);
    addTable();
    std::array<plan::Ref, 2> gradients;
    for (uint32_t t : {0u, 1u}) {
      gradients[t] = of(t, floats("gradient " + number(t), kElements[t], false), plan::GRADIENT);
      step("logits " + number(t), {logits[t]}, {gradients[t]}).mutable_copy();
    }
    plan::Ref rows = floats("rows", 3 * kLookups * kColumns, false);
    uint64_t each = kLookups * kColumns * 4;
    std::array<plan::Ref, 3> tensors{part(rows, 0, each), part(rows, each, each), part(rows, 2 * each, each)};
    if (apart)
      fill("no rows yet", rows, 0);
    else
      launches("scatter", {gradients[0], gradients[1], indices, lookups}, {gradients[0], gradients[1]});
    for (uint32_t t : {0u, 1u}) update(t, gradients[t], apart ? &rows : nullptr);
    if (apart) {
      launches("add", {tensors[2], indices, lookups}, {tensors[2]});
      updateRows(tensors);
      for (uint32_t t : {0u, 1u}) write("rows of master " + number(t), tensors[0], masters[t], t);
      for (uint32_t t : {0u, 1u}) write("rows of momentum " + number(t), tensors[1], momenta[t], t);
    }
    liveThroughout();
    boundKernels();
  }

  // With its kernels.
  plan::PlanFile made() {
    std::string sgd = "(void *const *a, long begin, long end) { float *p = a[0], *g = a[1], *m = a[2], *h = a[3];"
                      "  for (long e = begin; e < end; ++e) { m[e] = h[7] * m[e] + g[e] + h[4] * p[e]; p[e] -= h[0] * m[e]; } }\n";
    std::string source =
        "static int first(const long *index, int i) { int f = 0; while (index[f] != index[i]) ++f; return f; }\n"
        "void add(void *const *a, long begin, long end) { float *g = a[0]; const long *index = a[1]; const float *l = a[2];"
        "  for (int i = 0; i < 7; ++i) for (int c = 0; c < 24; ++c) g[first(index, i) * 24 + c] += l[i * 24 + c]; }\n"
        "void scatter(void *const *a, long begin, long end) {"
        "  float *g[2] = {a[0], a[1]}; const long *index = a[2]; const float *l = a[3];"
        "  for (int i = 0; i < 7; ++i) for (int c = 0; c < 24; ++c) { long e = index[i] * 24 + c;"
        "    g[e >= 2000][e >= 2000 ? e - 2000 : e] += l[i * 24 + c]; } }\n";
    for (const plan::Kernel &kernel : plan.kernels())
      if (kernel.symbol().starts_with("sgd")) source += "void " + kernel.symbol() + sgd;
    object = compileKernels(source + boundsInC(plan));
    return {plan, {reinterpret_cast<const std::byte *>(object.data()), object.size()}, {}, "", nullptr};
  }

private:
  static std::string number(uint32_t t) { return std::to_string(t); }
  plan::Lane goes() const { return tier == plan::HOST ? plan::TO_HOST : tier == plan::DISK ? plan::DISK_WRITE : plan::COMPUTE; }
  plan::Lane comes() const { return tier == plan::HOST ? plan::TO_DEVICE : plan::DISK_READ; }

  void addTable() {
    plan::Parameter *table = plan.add_parameters();
    table->set_name("table"), table->add_shape(kTable), table->mutable_init()->set_rule(plan::Init::ZEROS);
    uint64_t begin = 0;
    for (uint32_t t : {0u, 1u}) {
      plan::Bucket *bucket = plan.add_buckets();
      bucket->set_name("tile " + number(t)), bucket->set_trainable(true), bucket->set_padding_elements(kElements[t] - kHolds[t]);
      bucket->set_elements(kElements[t]), bucket->set_shard_elements(kElements[t]);
      masters[t] = bytesIn(home, "master " + number(t), kElements[t] * 4);
      momenta[t] = bytesIn(home, "momentum " + number(t), kElements[t] * 4);
      logits[t] = filled(floats("logits " + number(t), kElements[t]), plan::Input::SHARED, plan::F32);
      addTensor(*bucket, plan::StateTensor::MASTER, masters[t], plan::WHOLE);
      addTensor(*bucket, plan::StateTensor::MOMENTUM, momenta[t], plan::WHOLE);
      addPiece(*table, t, 0, {begin}, {kHolds[t]});
      begin += kHolds[t];
    }
  }

  plan::Ref of(uint32_t tile, plan::Ref ref, plan::BufferKind kind) {
    holds(ref, kind, plan::WHOLE, plan::F32);
    plan.mutable_buffers(static_cast<int>(ref.buffer()))->set_bucket(tile);
    return ref;
  }
  uint64_t ticks(plan::Lane lane) {
    return static_cast<uint64_t>(std::ranges::count_if(program().steps(), [&](const plan::Step &step) { return step.lane() == lane; }));
  }

  plan::Launch launchOf(const std::string &symbol, uint64_t extent) {
    plan::Launch launch;
    launch.set_kernel(static_cast<uint32_t>(plan.kernels_size())), launch.set_extent(extent);
    plan.add_kernels()->set_symbol(symbol);
    return launch;
  }
  void launches(const std::string &symbol, const std::vector<plan::Ref> &reads, const std::vector<plan::Ref> &writes) {
    *step(symbol, reads, writes).mutable_launch() = launchOf(symbol, 1);
  }

  // What rests elsewhere comes before and returns after.
  void update(uint32_t t, const plan::Ref &gradient, const plan::Ref *rows) {
    plan::Ref p = masters[t], m = momenta[t];
    if (tier != plan::DEVICE)
      for (plan::Ref *ref : {&p, &m}) {
        plan::Ref there = of(t, floats(ref == &p ? "p" : "m", kElements[t], false), plan::FETCHED);
        step("fetch", {*ref}, {there}, comes()).mutable_copy();
        *ref = there;
      }
    plan::Step &made = step("update " + number(t), {p, gradient, m, hyper}, {p, m});
    plan::Update *update = made.mutable_update();
    update->set_bucket(t), update->set_dtype(plan::F32), update->set_part(plan::WHOLE), update->set_row(1);
    *update->mutable_launch() = launchOf("sgd_" + number(t), kElements[t]);
    if (tier != plan::DEVICE) waitFor(made, comes(), ticks(comes()));
    if (rows) {
      for (const plan::Ref &ref : {indices, *rows}) *made.add_reads() = ref;
      for (const plan::Ref &ref : {*rows, gradient}) *made.add_writes() = ref;
      setTable(*update->mutable_apart(), t);
    }
    uint64_t updated = ticks(plan::COMPUTE);
    if (tier != plan::DEVICE)
      for (auto [from, to] : {std::pair(p, masters[t]), std::pair(m, momenta[t])}) {
        plan::Step &back = step("return", {from}, {to}, goes());
        back.mutable_copy(), waitFor(back, plan::COMPUTE, updated);
      }
  }

  void setTable(plan::TableRows &table, uint32_t t) {
    table.set_index_type(plan::I64), table.set_row_bytes(kColumns * 4), table.set_begin(t * kHolds[0] * 4);
  }

  void updateRows(const std::array<plan::Ref, 3> &tensors) {
    plan::Step &made = step("update rows", {tensors[0], tensors[2], tensors[1], hyper, indices}, {tensors[0], tensors[1]});
    plan::UpdateRows *update = made.mutable_update_rows();
    update->set_index_type(plan::I64), update->set_row_elements(kColumns);
    *update->mutable_launch() = launchOf("sgd_rows", kLookups * kColumns);
    for (uint32_t t : {0u, 1u}) {
      plan::UpdateRows::Tile *tile = update->add_tiles();
      tile->set_bucket(t), tile->set_begin(t * kHolds[0]);
    }
  }

  void write(const std::string &name, const plan::Ref &rows, const plan::Ref &tensor, uint32_t t) {
    plan::Ref window = part(tensor, 0, kHolds[t] * 4);
    plan::Step &made = step(name, {rows, indices, window}, {window}, goes());
    setTable(*made.mutable_write_rows(), t);
    if (tier != plan::DEVICE) waitFor(made, plan::COMPUTE, ticks(plan::COMPUTE));
  }

  plan::Tier tier;
  int home = 0; // arena
  std::string object;
};

} // namespace zero::test
