// One function per kind of step: its form, and its extents against the bytes of its references.
#include "runtime/plan/epilogue.h"
#include "runtime/plan/step_operands.h"
#include "runtime/plan/target.h"
#include "runtime/plan/validate.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace zero::plan {
namespace {

struct StepChecker : StepOperands {
  void launch(const Launch &launch) const {
    if (launch.kernel() >= static_cast<uint32_t>(plan.kernels_size()))
      throw Error(what + " launches kernel " + std::to_string(launch.kernel()) + ", but the plan has " +
                  std::to_string(plan.kernels_size()));
    const Kernel &kernel = plan.kernels(static_cast<int>(launch.kernel()));
    if (bool onHost = step.lane() == UPDATE_HOST; plan.target().kind() == Target::CUDA && isForHost(plan, kernel) != onHost)
      throw Error(what + " runs on lane " + Lane_Name(step.lane()) + " and launches kernel '" + kernel.symbol() + "', which has " +
                  (onHost ? "a grid: it is made for the GPU" : "no grid: it is made for the host's processors"));
    int inputs = kernelReads(step), outputs = kernelWrites(step);
    auto args = static_cast<uint32_t>(inputs + outputs);
    if (args != kernel.args())
      throw Error(what + " gives kernel '" + kernel.symbol() + "' " + std::to_string(args) + " arguments; it takes " +
                  std::to_string(kernel.args()));
    if (launch.extent() != kernel.extent())
      throw Error(what + " launches " + std::to_string(launch.extent()) + " iterations of kernel '" + kernel.symbol() +
                  "', which is made for " + std::to_string(kernel.extent()) + " and would leave its buffers");
    for (int i = 0; i < inputs; ++i) reads(i, "argument " + std::to_string(i), kernel.arg_bytes(i));
    for (int i = 0; i < outputs; ++i) writes(i, "argument " + std::to_string(inputs + i), kernel.arg_bytes(inputs + i));
  }

  // Bytes of `batch` matrices of rows x columns, stored with the given strides.
  uint64_t matrixBytes(uint64_t rows, uint64_t columns, uint64_t ld, uint64_t batch, uint64_t stride, uint64_t element) const {
    if (ld < columns)
      throw Error(what + " has a leading dimension of " + std::to_string(ld) + ", less than the " + std::to_string(columns) +
                  " columns it strides over");
    uint64_t last = add(product({rows - 1, ld}), product({batch - 1, stride}), what);
    return multiply(add(last, columns, what), element, what);
  }

  void matmul(const MatMul &call) const {
    if (!MatMul::Epilogue_IsValid(call.epilogue()))
      throw Error(what + " is a product with the unknown epilogue " + std::to_string(call.epilogue()));
    EpilogueForm epilogue = formOf(call.epilogue());
    if (call.epilogue() != MatMul::NONE && (plan.target().kind() == Target::CPU || call.batch() != 1 || call.accumulate()))
      throw Error(what + " is a product" + epilogue.text + ", which is for one that overwrites its result, in a plan for cuda");
    if (call.tf32() && (plan.target().kind() == Target::CPU || call.dtype() != F32))
      throw Error(what + " multiplies " + DType_Name(call.dtype()) + " in TF32, which is for F32 in a plan for cuda");
    form((call.accumulate() ? 3 : 2) + epilogue.reads() + (call.grouped() != MatMul::UNGROUPED), 1 + epilogue.writesAux);
    if (call.grouped() != MatMul::UNGROUPED) grouped(call);
    if (call.m() == 0 || call.n() == 0 || call.k() == 0 || call.batch() == 0)
      throw Error(what + " is an empty product: m, n, k and batch must all be at least 1");
    number(call.dtype(), "multiplies elements");
    if (call.c_dtype() != F32 && call.c_dtype() != call.dtype())
      throw Error(what + " makes a product of type " + DType_Name(call.c_dtype()) + " from " + DType_Name(call.dtype()) + "; expected F32" +
                  (call.dtype() == F32 ? "" : " or " + DType_Name(call.dtype())));
    if (call.batch() > 1 && call.stride_c() == 0 && call.grouped() != MatMul::GROUPED_C)
      throw Error(what + " writes all products of its batch to the same place (stride_c is 0)");
    for (uint64_t extent : {call.m(), call.n(), call.k(), call.batch()}) multiply(extent, 1, what);
    uint64_t element = bytesOf(call.dtype());
    auto rowsA = call.trans_a() ? call.k() : call.m(), columnsA = call.trans_a() ? call.m() : call.k();
    auto rowsB = call.trans_b() ? call.n() : call.k(), columnsB = call.trans_b() ? call.k() : call.n();
    auto countOf = [&](MatMul::Grouped one) { return call.grouped() == one ? call.groups() : call.batch(); }; // matrices
    reads(0, "A", matrixBytes(rowsA, columnsA, call.lda(), call.batch(), call.stride_a(), element));
    reads(1, "B", matrixBytes(rowsB, columnsB, call.ldb(), countOf(MatMul::GROUPED_B), call.stride_b(), element));
    writes(0, "C", matrixBytes(call.m(), call.n(), call.ldc(), countOf(MatMul::GROUPED_C), call.stride_c(), bytesOf(call.c_dtype())));
    requireApart(step.writes(0), step.reads(0), "C", "A");
    requireApart(step.writes(0), step.reads(1), "C", "B");
    if (epilogue.readsBias) reads(2, "the bias", product({call.n(), bytesOf(call.c_dtype())}));
    if (epilogue.hasAux()) aux(call, epilogue.readsAux);
    if (call.accumulate() && !same(*step.reads().rbegin(), step.writes(0))) throw Error(what + " adds to another place than it reads");
  }

  void grouped(const MatMul &call) const {
    if (!MatMul::Grouped_IsValid(call.grouped())) throw Error(what + " is grouped in the unknown way " + std::to_string(call.grouped()));
    if (plan.target().kind() == Target::CUDA || call.epilogue() != MatMul::NONE ||
        (call.accumulate() && call.grouped() == MatMul::GROUPED_C))
      throw Error(what + " is a product of groups, which has no epilogue and adds to nothing, in a plan for cpu");
    if (call.groups() == 0 || call.groups() > std::numeric_limits<int32_t>::max())
      throw Error(what + " has " + std::to_string(call.groups()) + " groups");
    if (call.all_groups() < call.groups())
      throw Error(what + " has " + std::to_string(call.groups()) + " groups of " + std::to_string(call.all_groups()));
    if (call.grouped() == MatMul::GROUPED_C && call.c_dtype() != F32)
      throw Error(what + " sums the products of groups in " + DType_Name(call.c_dtype()) + "; expected F32");
    if (call.groups() > 1 && (call.grouped() == MatMul::GROUPED_B ? call.stride_b() : call.stride_c()) == 0)
      throw Error(what + " has the matrices of all groups in the same place");
    reads(2, "the groups", product({call.batch(), 8}));
  }

  void aux(const MatMul &call, bool isRead) const {
    const Ref &ref = isRead ? step.reads(2) : step.writes(1);
    operand(ref, "aux", matrixBytes(call.m(), call.n(), call.ldc(), 1, 0, bytesOf(call.c_dtype())));
    bool aligned = call.ldc() % 8 == 0 && ref.offset() % 16 == 0; // buffers begin at more
    for (uint64_t stride : ref.strides()) aligned = aligned && stride % 16 == 0;
    if (!aligned) throw Error(what + " has aux that does not begin at a multiple of 16 bytes, or its rows at multiples of 8 elements");
    auto isBeside = [&](const Ref &other) { return &other != &ref && other.buffer() == ref.buffer(); };
    if ((!isRead && std::ranges::any_of(step.reads(), isBeside)) || std::ranges::any_of(step.writes(), isBeside))
      throw Error(what + " has aux in the buffer of another operand; expected one of its own");
  }

  // Q, K, V, the mask and the bias, and how many bytes one like Q, one like K, the log-sum-exp and the bias take.
  struct AttentionBytes {
    uint64_t queries, keys, lse, bias;
  };
  AttentionBytes attentionInputs(const Attention &call) const {
    for (uint64_t extent : {call.batch(), call.heads(), call.kv_heads(), call.q_len(), call.kv_len(), call.dim()})
      if (extent == 0) throw Error(what + " has an empty dimension");
    if (call.heads() % call.kv_heads() != 0)
      throw Error(what + " has " + std::to_string(call.heads()) + " query heads, not a multiple of its " + std::to_string(call.kv_heads()) +
                  " key/value heads");
    number(call.dtype(), "attends to elements");
    if (!std::isfinite(call.softcap()) || call.softcap() < 0)
      throw Error(what + " caps its scores at " + std::to_string(call.softcap()) + "; expected a number above 0, or 0 for none");
    if (call.has_band()) band(call);
    if (call.beyond() && call.mask_shape_size() == 0)
      throw Error(what + " has rows that weigh what is hidden from them (beyond), but no mask that hides keys; expected both or neither");
    uint64_t rows = product({call.batch(), call.heads(), call.q_len()}), element = bytesOf(call.dtype());
    AttentionBytes bytes{product({rows, call.dim(), element}), product({call.batch(), call.kv_heads(), call.kv_len(), call.dim(), element}),
                         product({rows, 4}), product({call.heads(), call.q_len(), call.kv_len(), 4})};
    reads(0, "Q", bytes.queries);
    reads(1, "K", bytes.keys);
    reads(2, "V", bytes.keys);
    if (call.bias_parts() > 0) reads(3 + masks(call), "the bias", bytes.bias);
    if (call.mask_shape_size() == 0) return bytes;
    const uint64_t full[4] = {call.batch(), call.heads(), call.q_len(), call.kv_len()};
    uint64_t mask = 4;
    for (int i = 0; i < 4; ++i) {
      if (call.mask_shape(i) != 1 && call.mask_shape(i) != full[i])
        throw Error(what + " has a mask whose dimension " + std::to_string(i) + " is " + std::to_string(call.mask_shape(i)) +
                    "; expected 1 or " + std::to_string(full[i]));
      mask = multiply(mask, call.mask_shape(i), what);
    }
    reads(3, "the mask", mask);
    return bytes;
  }
  void band(const Attention &call) const {
    auto queries = static_cast<int64_t>(call.q_len()), keys = static_cast<int64_t>(call.kv_len());
    int64_t first = call.band().first(), last = call.band().last();
    if (first > last || last <= -queries || first >= keys)
      throw Error(what + " has queries that see keys from " + std::to_string(first) + " to " + std::to_string(last) +
                  " after their own position, of " + std::to_string(queries) + " and " + std::to_string(keys) +
                  " positions; expected some of them");
  }
  // 1 if there is one.
  int masks(const Attention &call) const {
    if (call.mask_shape_size() != 0 && call.mask_shape_size() != 4)
      throw Error(what + " has a mask of " + std::to_string(call.mask_shape_size()) + " dimensions; expected 4 or none");
    return call.mask_shape_size() ? 1 : 0;
  }

  static int biases(const Attention &call) { return call.bias_parts() ? 1 : 0; }

  void attention(const Attention &call) const {
    form(3 + masks(call) + biases(call), 2);
    AttentionBytes bytes = attentionInputs(call);
    writes(0, "the output", bytes.queries);
    writes(1, "the log-sum-exp", bytes.lse);
    resultsApart();
  }

  // Parts of results are made while operands are still read.
  void resultsApart() const {
    for (const Ref &result : step.writes()) {
      for (const Ref &operand : step.reads()) requireApart(result, operand, "a result", "what it reads");
      for (const Ref &other : step.writes())
        if (&other != &result) requireApart(result, other, "a result", "another");
    }
  }

  void attentionGrad(const Attention &call) const {
    int inputs = 3 + masks(call) + biases(call);
    form(inputs + 3, 3 + biases(call));
    if (call.bias_parts() > 0 && call.batch() % call.bias_parts() != 0)
      throw Error(what + " sums the gradient of a bias in " + std::to_string(call.bias_parts()) + " parts of " +
                  std::to_string(call.batch()) + " samples; expected as many samples in each");
    AttentionBytes bytes = attentionInputs(call);
    reads(inputs, "the output", bytes.queries);
    reads(inputs + 1, "the log-sum-exp", bytes.lse);
    reads(inputs + 2, "the output's gradient", bytes.queries);
    writes(0, "dQ", bytes.queries);
    writes(1, "dK", bytes.keys);
    writes(2, "dV", bytes.keys);
    if (call.bias_parts() > 0) writes(3, "the bias's gradient", product({call.bias_parts(), bytes.bias}));
    resultsApart();
  }

  void copy() const {
    form(1, 1);
    reads(0, "the source", step.writes(0).bytes());
    writes(0, "the destination", step.reads(0).bytes());
  }

  void fill() const {
    form(0, 1);
    uint64_t bytes = step.writes(0).bytes();
    writes(0, "the destination", bytes);
    if (bytes % 2 != 0) throw Error(what + " fills " + std::to_string(bytes) + " bytes, not a multiple of 2");
  }

  void update(const Update &call) const {
    if (call.bucket() >= static_cast<uint32_t>(plan.buckets_size()))
      throw Error(what + " updates bucket " + std::to_string(call.bucket()) + ", but the plan has " + std::to_string(plan.buckets_size()));
    const Bucket &bucket = plan.buckets(static_cast<int>(call.bucket()));
    launch(call.launch());
    if (kernelReads(step) < 2 || kernelWrites(step) < 1)
      throw Error(what + " reads " + std::to_string(kernelReads(step)) + " and writes " + std::to_string(kernelWrites(step)) +
                  " references; an update reads parameters and their gradient, and writes parameters");
    if (call.dtype() != F32) throw Error(what + " takes a gradient of type " + DType_Name(call.dtype()) + "; expected F32");
    if (call.part() != WHOLE && call.part() != SHARD) throw Error(what + " says neither that it updates the whole bucket nor a shard");
    uint64_t part = elementsOf(bucket, call.part()), size = bytesOf(F32), elements = gradientOf(step).bytes() / size;
    requireBytes(gradientOf(step).bytes(), multiply(elements, size, what), "the gradient of " + what);
    if (call.begin_elements() > part || elements > part - call.begin_elements())
      throw Error(what + " updates elements " + std::to_string(call.begin_elements()) + " + " + std::to_string(elements) +
                  " of a part of bucket '" + bucket.name() + "' that has " + std::to_string(part));
    if (const StateTensor *compute = tensorOf(bucket, StateTensor::COMPUTE); compute && compute->dtype() != masterOf(bucket).dtype()) {
      auto after = static_cast<int>(1 + momentsOf(plan.optimizer().kind()).size());
      if (kernelWrites(step) <= after)
        throw Error(what + " writes " + std::to_string(kernelWrites(step)) + " references, and no compute copy of bucket '" +
                    bucket.name() + "' after its states");
      requireBytes(step.writes(after).bytes(), multiply(elements, bytesOf(compute->dtype()), what), "the compute copy of " + what);
    }
    if (const Kernel &kernel = plan.kernels(static_cast<int>(call.launch().kernel())); call.row() != kernel.row())
      throw Error(what + " says that an iteration of kernel '" + kernel.symbol() + "' covers " + std::to_string(call.row()) +
                  " elements; it is made for " + std::to_string(kernel.row()));
    if (uint64_t row = call.row(); row && (row > kMaxBytes || (elements + row - 1) / row != call.launch().extent()))
      throw Error(what + " covers " + std::to_string(elements) + " elements by " + std::to_string(call.launch().extent()) +
                  " iterations of " + std::to_string(row));
    if (call.has_apart()) checkApart(plan, step, program, what);
  }

  void kind() const {
    switch (step.what_case()) {
    case Step::kLaunch:
      return launch(step.launch());
    case Step::kMatmul:
      return matmul(step.matmul());
    case Step::kAttention:
      return attention(step.attention());
    case Step::kAttentionGrad:
      return attentionGrad(step.attention_grad());
    case Step::kCollective:
      return checkCollective(plan, step, program, what);
    case Step::kCopy:
      return copy();
    case Step::kFill:
      return fill();
    case Step::kUpdate:
      return update(step.update());
    case Step::kUpdateRows:
      launch(step.update_rows().launch());
      return checkUpdateRows(plan, step, program, what);
    case Step::kWriteRows:
      return checkWriteRows(plan, step, program, what);
    case Step::WHAT_NOT_SET:
      break;
    }
    throw Error(what + " does nothing this program knows; the plan may be newer than this zerorun");
  }
};

} // namespace

void checkStep(const Plan &plan, int program, int index) {
  const Step &step = plan.programs(program).steps(index);
  std::string what = "step " + std::to_string(index);
  requireText(what, step.name());
  what += " '" + step.name() + "' of program '" + plan.programs(program).name() + "'";
  if (!Lane_IsValid(step.lane())) throw Error(what + " runs on the unknown lane " + std::to_string(step.lane()));
  StepChecker check{{plan, step, program, what}};
  check.kind();
  checkTiers(plan, step, what);
  if (step.has_copy() && !StepChecker::same(step.writes(0), step.reads(0)))
    check.requireApart(step.writes(0), step.reads(0), "its destination", "its source");
}

} // namespace zero::plan
