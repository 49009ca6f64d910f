// One function per kind of step: its extents against the bytes of its Refs.
#include "runtime/plan/checks.h"
#include "runtime/plan/error.h"
#include "runtime/plan/state.h"
#include "runtime/plan/validate.h"

namespace zero::plan {
namespace {

struct StepChecker {
  const Plan &plan;
  int program;
  std::string what;

  void operand(const Ref &ref, const std::string &name) const { checkRef(plan, ref, name + " of " + what, program); }
  void operand(const Ref &ref, const std::string &name, uint64_t bytes) const {
    operand(ref, name);
    requireReach(ref.bytes(), bytes, name + " of " + what);
  }
  uint64_t product(std::initializer_list<uint64_t> factors) const {
    uint64_t result = 1;
    for (uint64_t factor : factors) result = multiply(result, factor, what);
    return result;
  }

  void launch(const Launch &launch) const {
    if (launch.kernel() >= static_cast<uint32_t>(plan.kernels_size()))
      throw Error(what + " launches kernel " + std::to_string(launch.kernel()) + ", but the plan has " +
                  std::to_string(plan.kernels_size()));
    const Kernel &kernel = plan.kernels(static_cast<int>(launch.kernel()));
    if (static_cast<uint32_t>(launch.args_size()) != kernel.args())
      throw Error(what + " gives kernel '" + kernel.symbol() + "' " + std::to_string(launch.args_size()) + " arguments; it takes " +
                  std::to_string(kernel.args()));
    if (launch.outputs_from() > kernel.args())
      throw Error(what + " marks outputs from argument " + std::to_string(launch.outputs_from()) + " of " + std::to_string(kernel.args()));
    if (launch.extent() != kernel.extent())
      throw Error(what + " launches " + std::to_string(launch.extent()) + " iterations of kernel '" + kernel.symbol() +
                  "', which is made for " + std::to_string(kernel.extent()) + " and would leave its buffers");
    for (int i = 0; i < launch.args_size(); ++i) operand(launch.args(i), "argument " + std::to_string(i), kernel.arg_bytes(i));
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
    if (call.m() == 0 || call.n() == 0 || call.k() == 0 || call.batch() == 0)
      throw Error(what + " is an empty product: m, n, k and batch must all be at least 1");
    if (call.dtype() != F32 && call.dtype() != BF16 && call.dtype() != F16)
      throw Error(what + " multiplies elements of type " + DType_Name(call.dtype()) + "; expected F32, BF16 or F16");
    if (call.batch() > 1 && call.stride_c() == 0) throw Error(what + " writes all products of its batch to the same place (stride_c is 0)");
    for (uint64_t extent : {call.m(), call.n(), call.k(), call.batch()}) multiply(extent, 1, what);
    uint64_t element = bytesOf(call.dtype());
    auto rowsA = call.trans_a() ? call.k() : call.m(), columnsA = call.trans_a() ? call.m() : call.k();
    auto rowsB = call.trans_b() ? call.n() : call.k(), columnsB = call.trans_b() ? call.k() : call.n();
    operand(call.a(), "A", matrixBytes(rowsA, columnsA, call.lda(), call.batch(), call.stride_a(), element));
    operand(call.b(), "B", matrixBytes(rowsB, columnsB, call.ldb(), call.batch(), call.stride_b(), element));
    operand(call.c(), "C", matrixBytes(call.m(), call.n(), call.ldc(), call.batch(), call.stride_c(), 4));
  }

  void attention(const Attention &call) const {
    for (uint64_t extent : {call.batch(), call.heads(), call.kv_heads(), call.q_len(), call.kv_len(), call.dim()})
      if (extent == 0) throw Error(what + " has an empty dimension");
    if (call.heads() % call.kv_heads() != 0)
      throw Error(what + " has " + std::to_string(call.heads()) + " query heads, not a multiple of its " + std::to_string(call.kv_heads()) +
                  " key/value heads");
    uint64_t queries = product({call.batch(), call.heads(), call.q_len(), 4});
    uint64_t keys = product({call.batch(), call.kv_heads(), call.kv_len(), call.dim(), 4});
    operand(call.q(), "Q", multiply(queries, call.dim(), what));
    operand(call.k(), "K", keys);
    operand(call.v(), "V", keys);
    operand(call.out(), "the output", multiply(queries, call.dim(), what));
    operand(call.lse(), "the log-sum-exp", queries);
    if (call.mask_shape_size() == 0) return;
    if (call.mask_shape_size() != 4)
      throw Error(what + " has a mask of " + std::to_string(call.mask_shape_size()) + " dimensions; expected 4 or none");
    const uint64_t full[4] = {call.batch(), call.heads(), call.q_len(), call.kv_len()};
    uint64_t bytes = 4;
    for (int i = 0; i < 4; ++i) {
      if (call.mask_shape(i) != 1 && call.mask_shape(i) != full[i])
        throw Error(what + " has a mask whose dimension " + std::to_string(i) + " is " + std::to_string(call.mask_shape(i)) +
                    "; expected 1 or " + std::to_string(full[i]));
      bytes = multiply(bytes, call.mask_shape(i), what);
    }
    operand(call.mask(), "the mask", bytes);
  }

  void attentionGrad(const AttentionGrad &call) const {
    const Attention &forward = call.forward();
    attention(forward);
    uint64_t queries = product({forward.batch(), forward.heads(), forward.q_len(), forward.dim(), 4});
    uint64_t keys = product({forward.batch(), forward.kv_heads(), forward.kv_len(), forward.dim(), 4});
    operand(call.dout(), "the output's gradient", queries);
    operand(call.dq(), "dQ", queries);
    operand(call.dk(), "dK", keys);
    operand(call.dv(), "dV", keys);
  }

  void collective(const Collective &call) const {
    uint64_t part = product({call.count(), bytesOf(call.dtype())});
    uint64_t whole = multiply(part, plan.world(), what);
    uint64_t staging = plan.world() > 1 ? whole : 0;
    switch (call.kind()) {
    case Collective::ALL_GATHER:
      operand(call.src(), "the source", part);
      operand(call.dst(), "the destination", whole);
      return;
    case Collective::REDUCE_SCATTER:
      operand(call.src(), "the source", whole);
      operand(call.dst(), "the destination", part);
      break;
    case Collective::ALL_REDUCE:
      if (call.src().SerializeAsString() != call.dst().SerializeAsString())
        throw Error(what + " is an all-reduce with a source that is not its destination");
      operand(call.dst(), "the destination", part);
      break;
    default:
      throw Error(what + " is a collective of the unknown kind " + std::to_string(call.kind()));
    }
    if (call.dtype() != F32) throw Error(what + " sums elements of type " + DType_Name(call.dtype()) + "; expected F32");
    if (staging) operand(call.staging(), "the staging room", staging);
  }

  void copy(const Copy &call) const {
    operand(call.src(), "the source", call.dst().bytes());
    operand(call.dst(), "the destination", call.src().bytes());
  }

  void fill(const Fill &call) const {
    operand(call.dst(), "the destination");
    if (call.dst().bytes() % 4 != 0) throw Error(what + " fills " + std::to_string(call.dst().bytes()) + " bytes, not a multiple of 4");
  }

  void update(const Update &call) const {
    if (call.bucket() >= static_cast<uint32_t>(plan.buckets_size()))
      throw Error(what + " updates bucket " + std::to_string(call.bucket()) + ", but the plan has " + std::to_string(plan.buckets_size()));
    const Bucket &bucket = plan.buckets(static_cast<int>(call.bucket()));
    launch(call.launch());
    checkRef(plan, call.gradient(), "the gradient of " + what, program);
    if (call.part() != WHOLE && call.part() != SHARD) throw Error(what + " says neither that it updates the whole bucket nor a shard");
    uint64_t elements = elementsOf(bucket, call.part());
    requireBytes(call.gradient().bytes(), multiply(elements, 4, what), "the gradient of " + what);
    if (const Kernel &kernel = plan.kernels(static_cast<int>(call.launch().kernel())); call.row() != kernel.row())
      throw Error(what + " says that an iteration of kernel '" + kernel.symbol() + "' covers " + std::to_string(call.row()) +
                  " elements; it is made for " + std::to_string(kernel.row()));
    if (uint64_t row = call.row(); row && (row > kMaxBytes || (elements + row - 1) / row != call.launch().extent()))
      throw Error(what + " covers " + std::to_string(elements) + " elements by " + std::to_string(call.launch().extent()) +
                  " iterations of " + std::to_string(row));
  }
};

} // namespace

void checkStep(const Plan &plan, int program, int index) {
  const Step &step = plan.programs(program).steps(index);
  std::string what = "step " + std::to_string(index);
  if (step.name().size() > 4096) throw Error(what + " has a name of " + std::to_string(step.name().size()) + " bytes");
  what += " '" + step.name() + "' of program '" + plan.programs(program).name() + "'";
  if (!Lane_IsValid(step.lane())) throw Error(what + " runs on the unknown lane " + std::to_string(step.lane()));
  StepChecker check{plan, program, what};
  switch (step.what_case()) {
  case Step::kLaunch:
    return check.launch(step.launch());
  case Step::kMatmul:
    return check.matmul(step.matmul());
  case Step::kAttention:
    return check.attention(step.attention());
  case Step::kAttentionGrad:
    return check.attentionGrad(step.attention_grad());
  case Step::kCollective:
    return check.collective(step.collective());
  case Step::kCopy:
    return check.copy(step.copy());
  case Step::kFill:
    return check.fill(step.fill());
  case Step::kUpdate:
    return check.update(step.update());
  case Step::WHAT_NOT_SET:
    break;
  }
  throw Error(what + " does nothing this program knows; the plan may be newer than this zerorun");
}

} // namespace zero::plan
