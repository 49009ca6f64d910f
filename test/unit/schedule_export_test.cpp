// The road from the zero dialect to a plan that the loader accepts, in one process.
#include "compiler/nn/Nn.h"
#include "compiler/plan/Plan.h"
#include "compiler/plan/export.h"
#include "compiler/zero/Zero.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/place/Passes.h"
#include "passes/schedule/Passes.h"
#include "runtime/plan/validate.h"
#include <array>
#include <cstring>
#include <gtest/gtest.h>

using namespace mlir;
namespace plan = zero::plan;

namespace {

const char *const kModule = R"mlir(
module attributes {zero.world = 2 : i64, zero.stage = 3 : i64, zero.accumulate = 1 : i64, zero.optimizer = "adamw",
    nn.losses = [{kind = "cross_entropy", output = "y", labels = "labels", ignore_index = -7 : i64, weight = 0.5 : f64}]} {
  nn.parameter @w : tensor<8x6xf32> {trainable = true, file = "m.onnx", offset = 100 : i64, bytes = 192 : i64, stored = f32,
    aliases = [{name = "w.T", transposed = true, file = "m.onnx", offset = 400 : i64, bytes = 192 : i64, stored = f32}]}
  nn.parameter @b : tensor<6xf32> {trainable = true, init = "normal", init_std = 0.02 : f32}
  zero.bucket @b0 {elements = 64 : i64, shard = 32 : i64, parameters = [@w, @b], offsets = array<i64: 0, 48>, trainable = true, tensors = [#zero.tensor<master f32 shard on device>, #zero.tensor<first_moment f32 shard on device>, #zero.tensor<second_moment f32 shard on device>]}
  func.func private @loss(tensor<4x6xf32>, tensor<6xf32>, tensor<4xi64>, tensor<1xf32>, tensor<4x6xi1>, tensor<2xf32>) -> (tensor<1xf32>, tensor<4x6xf32>, tensor<6xf32>) attributes {nn.kernel}
  func.func private @adamw(tensor<2x16xf32>, tensor<2x16xf32>, tensor<2x16xf32>, tensor<2x16xf32>, tensor<16xf32>) -> (tensor<2x16xf32>, tensor<2x16xf32>, tensor<2x16xf32>, tensor<2xf32>) attributes {nn.kernel}
  func.func private @sum(tensor<2xf32>) -> tensor<1xf32> attributes {nn.kernel}
  func.func private @unused(tensor<2xf32>) -> tensor<1xf32> attributes {nn.kernel}
  func.func @step(%x: tensor<4x8xf32> {nn.name = "x", nn.role = "data", nn.classes = array<i64: 9, -100>}, %t: tensor<4xi64> {nn.name = "labels", nn.role = "labels", nn.limit = 6 : i64},
                  %scale: tensor<1xf32> {nn.name = "loss_scale", nn.role = "loss_scale"},
                  %hyper: tensor<16xf32> {nn.name = "hyper", nn.role = "hyper"}) -> (tensor<1xf32>, tensor<1xf32>) attributes {zero.role = "step"} {
    %mask = nn.constant dense<true> : tensor<4x6xi1>
    %pair = nn.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %g0 = zero.gather @b0 : tensor<64xf32>
    %w = zero.view %g0 at 0 : tensor<64xf32> -> tensor<8x6xf32>
    %b = zero.view %g0 at 48 : tensor<64xf32> -> tensor<6xf32>
    %y = nn.matmul %x, %w : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32> loc("/head/MatMul")
    %l, %dy, %db = nn.launch @loss(%y, %b, %t, %scale, %mask, %pair) : (tensor<4x6xf32>, tensor<6xf32>, tensor<4xi64>, tensor<1xf32>, tensor<4x6xi1>, tensor<2xf32>) -> (tensor<1xf32>, tensor<4x6xf32>, tensor<6xf32>)
    zero.release %g0 : tensor<64xf32>
    %dw = nn.matmul %x, %dy {transpose_lhs = true} : (tensor<4x8xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %g = zero.pack %dw, %db at [0, 48] : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<64xf32>
    %s = zero.reduce_scatter %g : tensor<64xf32> -> tensor<32xf32>
    %sums = zero.update @b0, %s, %hyper {kernel = @adamw} : (tensor<32xf32>, tensor<16xf32>) -> tensor<2xf32>
    %n = nn.launch @sum(%sums) : (tensor<2xf32>) -> tensor<1xf32>
    %p = zero.pack %l, %n at [0, 1] : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %r = zero.all_reduce %p : tensor<2xf32>
    %loss = zero.view %r at 0 : tensor<2xf32> -> tensor<1xf32>
    %norm = zero.view %r at 1 : tensor<2xf32> -> tensor<1xf32>
    return %loss, %norm : tensor<1xf32>, tensor<1xf32>
  }
}
)mlir";

class Export : public testing::Test {
protected:
  Export() {
    context.loadDialect<func::FuncDialect, zero::nn::NnDialect, zero::state::ZeroDialect, zero::planir::PlanDialect>();
    module = parseSourceString<ModuleOp>(kModule, &context);
    options.model = "m.onnx";
    options.describe = [](func::FuncOp function) -> FailureOr<zero::codegen::KernelInfo> {
      zero::codegen::KernelInfo info;
      info.symbol = function.getName().str();
      info.extent = 2;
      info.args = function.getNumArguments() + function.getNumResults();
      for (Type type : llvm::concat<const Type>(function.getArgumentTypes(), function.getResultTypes()))
        info.argBytes.push_back(uint64_t(zero::nn::bytesOf(cast<ShapedType>(type))));
      return info;
    };
  }
  bool lower() {
    PassManager pm(&context);
    zero::schedule::buildPipeline(pm, {});
    zero::place::buildPipeline(pm);
    return succeeded(pm.run(*module));
  }
  bool run(plan::Plan &result) { return module && lower() && succeeded(zero::planir::exportPlan(*module, options, result, constants)); }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  zero::planir::ExportOptions options;
  std::vector<char> constants;
};

TEST_F(Export, TheLoaderAcceptsIt) {
  plan::Plan p;
  ASSERT_TRUE(run(p));
  EXPECT_NO_THROW(plan::validate(p, constants.size()));
  EXPECT_EQ(p.world(), 2u);
  EXPECT_EQ(p.stage(), 3u);
  EXPECT_EQ(p.samples(), 4u);
  EXPECT_EQ(p.tokens(), 4u);
  ASSERT_EQ(p.arenas_size(), 2);
  EXPECT_TRUE(p.arenas(0).persistent());
  EXPECT_EQ(p.arenas(1).bytes(), p.programs(0).arena_bytes(1));
  EXPECT_EQ(p.kernels_size(), 3); // launched ones only
}

TEST_F(Export, ModelState) {
  plan::Plan p;
  ASSERT_TRUE(run(p));
  ASSERT_EQ(p.buckets_size(), 1);
  ASSERT_EQ(p.buckets(0).tensors_size(), 3);
  const std::array roles{plan::StateTensor::MASTER, plan::StateTensor::FIRST_MOMENT, plan::StateTensor::SECOND_MOMENT};
  for (int i = 0; i < 3; ++i) {
    const plan::StateTensor &tensor = p.buckets(0).tensors(i);
    EXPECT_EQ(tensor.role(), roles[size_t(i)]);
    EXPECT_EQ(tensor.dtype(), plan::F32);
    EXPECT_EQ(tensor.part(), plan::SHARD);
    EXPECT_EQ(tensor.ref().bytes(), 128u); // 32 elements
    EXPECT_FALSE(p.buffers(int(tensor.ref().buffer())).has_bucket());
  }
  size_t whole = 0; // the gathered parameters and the gradient
  for (const plan::Buffer &buffer : p.buffers())
    if (buffer.part() == plan::WHOLE) {
      EXPECT_EQ(buffer.bucket(), 0u);
      EXPECT_EQ(buffer.dtype(), plan::F32);
      EXPECT_EQ(buffer.bytes(), 256u);
      ++whole;
    }
  EXPECT_EQ(whole, 2u);
  EXPECT_EQ(p.buckets(0).padding_elements(), 10u);
  ASSERT_EQ(p.parameters_size(), 2);
  EXPECT_EQ(p.parameters(0).source().offset(), 100u);
  EXPECT_TRUE(p.parameters(0).aliases(0).transposed());
  EXPECT_EQ(p.parameters(0).aliases(0).source().offset(), 400u);
  EXPECT_FALSE(p.parameters(1).has_source());
  ASSERT_EQ(p.parameters(1).pieces_size(), 1);
  EXPECT_EQ(p.parameters(1).pieces(0).offset_elements(), 48u);
  EXPECT_EQ(p.parameters(1).pieces(0).size_size(), 0); // all of it
  EXPECT_EQ(p.parameters(1).init().rule(), plan::Init::NORMAL);
  EXPECT_NE(p.parameters(1).init().seed(), p.parameters(0).init().seed());
}

TEST_F(Export, SeedsFollowTheRunsSeed) {
  plan::Plan one, two;
  ASSERT_TRUE(run(one));
  options.initSeed = 7;
  ASSERT_TRUE(succeeded(zero::planir::exportPlan(*module, options, two, constants)));
  EXPECT_NE(one.parameters(1).init().seed(), two.parameters(1).init().seed());
}

TEST_F(Export, InputsAndConstants) {
  plan::Plan p;
  ASSERT_TRUE(run(p));
  ASSERT_EQ(p.inputs_size(), 4);
  EXPECT_EQ(p.inputs(1).role(), plan::Input::LABELS);
  ASSERT_EQ(p.losses_size(), 1);
  EXPECT_EQ(p.losses(0).kind(), plan::CROSS_ENTROPY);
  EXPECT_EQ(p.losses(0).output() + " " + p.losses(0).labels(), "y labels");
  EXPECT_EQ(p.losses(0).ignore_index(), -7);
  EXPECT_EQ(p.losses(0).weight(), 0.5);
  EXPECT_EQ(p.inputs(1).limit(), 6);
  EXPECT_EQ(p.inputs(1).classes(), 0);
  EXPECT_FALSE(p.inputs(1).has_ignored());
  EXPECT_EQ(p.inputs(0).limit(), 0);
  EXPECT_EQ(p.inputs(0).classes(), 9);
  EXPECT_EQ(p.inputs(0).ignored(), -100);
  EXPECT_EQ(p.inputs(1).dtype(), plan::I64);
  ASSERT_EQ(p.constants_size(), 2);
  EXPECT_EQ(p.constants(0).ref().bytes(), 24u); // a bool is a byte
  for (int i = 0; i < 24; ++i) EXPECT_EQ(constants[p.constants(0).segment_offset() + i], 1);
  float pair[2];
  std::memcpy(pair, constants.data() + p.constants(1).segment_offset(), sizeof pair);
  EXPECT_EQ(pair[1], 2.0f);
}

TEST_F(Export, Steps) {
  plan::Plan p;
  ASSERT_TRUE(run(p));
  const plan::Program &program = p.programs(0);
  EXPECT_EQ(program.name(), "step");
  EXPECT_EQ(program.loss().offset(), 0u);
  EXPECT_EQ(program.gradient_norm().offset(), 4u);
  const plan::Step *product = nullptr, *update = nullptr;
  for (const plan::Step &step : program.steps()) {
    if (step.has_matmul() && !product) product = &step;
    if (step.has_update()) update = &step;
  }
  ASSERT_TRUE(product && update);
  EXPECT_EQ(product->name(), "/head/MatMul");
  EXPECT_EQ(product->matmul().lda(), 8u);
  ASSERT_EQ(product->waits_size(), 1);
  EXPECT_EQ(product->waits(0).lane(), plan::GATHER);
  EXPECT_EQ(update->lane(), plan::COMPUTE);
  ASSERT_EQ(p.axes_size(), 1);
  EXPECT_EQ(p.axes(0).name(), "data");
  EXPECT_EQ(p.axes(0).size(), 2u);
  ASSERT_EQ(update->reads(1).strides_size(), 1);
  EXPECT_EQ(update->reads(1).strides(0), 128u);
  EXPECT_EQ(update->update().dtype(), plan::F32);
  EXPECT_EQ(update->reads_size(), 5); // parameters, gradient, both moments, hyper-parameters
  EXPECT_EQ(update->writes_size(), 4);
}

TEST_F(Export, RefusesWhatIsNotPlaced) {
  PassManager pm(&context);
  zero::schedule::buildPipeline(pm, {});
  ASSERT_TRUE(succeeded(pm.run(*module)));
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) { said = d.str(); });
  plan::Plan p;
  EXPECT_TRUE(failed(zero::planir::exportPlan(*module, options, p, constants)));
  EXPECT_NE(said.find("has no offset"), std::string::npos);
}

} // namespace
