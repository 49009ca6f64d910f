//===- ZeroAttrs.td - the zero dialect, and what it says of state -----------------------------------===//
#ifndef ZERO_ZERO_ATTRS_TD
#define ZERO_ZERO_ATTRS_TD
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Zero_Dialect : Dialect {
  let name = "zero";
  let cppNamespace = "::zero::state";
  let summary = "Where model state lives and how it moves";
  let description = [{
    Parameters live in *buckets*: flat ranges of elements, split evenly over the ranks. The module says for whom it was
    sharded: attributes `zero.world`, `zero.stage`, `zero.accumulate` (i64) and `zero.optimizer` ("adamw" | "sgd"); `zero.vertical` (unit):
    micro-steps are interleaved in one program; `zero.scales_loss` (unit): gradients come multiplied by a loss scale, updates divide by it, and all of them wait for the gradient norm, which says whether there
    is one.

    Each function with the attribute `zero.role` ("step", "first", "middle", "last", "eval") is a program: one
    micro-step of one rank; `zero.clips` (unit) marks the variant that waits for the global gradient norm.
    Where the module is `zero.vertical`, `step` holds all micro-steps: an argument with `zero.micro_step` = i (i64) is that of micro-step i, one
    without is that of the first or of all of them, and losses are returned of one micro-step after the other.
    It returns the losses summed over ranks (tensor<Nxf32>, one number each) and, where it updates, the squared gradient norm (tensor<1xf32>).
    Ranks differ only in which shard is their own, so one function serves all of them.

    Beside these operations stand `nn.matmul`, `nn.attention(_grad)`, `nn.launch`, `nn.reshape` and `nn.constant`.
    Lanes, bytes and offsets are not known here.
  }];
  let hasOperationAttrVerify = 1;
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    static constexpr ::llvm::StringLiteral kWorld = "zero.world", kStage = "zero.stage", kAccumulate = "zero.accumulate",
                                           kOptimizer = "zero.optimizer", kRemovals = "zero.removals", kScalesLoss = "zero.scales_loss", kVertical = "zero.vertical", kRole = "zero.role", kClips = "zero.clips",
                                           kMicroStep = "zero.micro_step";
    /// Micro-steps that program `function` holds.
    static int64_t microStepsOf(::mlir::Operation *function);
  }];
}
// The numbers of the enumerations are those of plan.proto.
class Zero_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::zero::state";
}
def Zero_Role : Zero_Enum<"Role", "what the numbers of a tensor are", [
    I32EnumAttrCase<"master", 1>, I32EnumAttrCase<"compute", 2>, I32EnumAttrCase<"gradient", 3>, I32EnumAttrCase<"first_moment", 4>,
    I32EnumAttrCase<"second_moment", 5>, I32EnumAttrCase<"momentum", 6>]>;
def Zero_Part : Zero_Enum<"Part", "how much of a bucket", [I32EnumAttrCase<"whole", 1>, I32EnumAttrCase<"shard", 2>]>;
def Zero_Tier : Zero_Enum<"Tier", "kind of memory", [
    I32EnumAttrCase<"device", 0>, I32EnumAttrCase<"host", 1>, I32EnumAttrCase<"disk", 2>]>;

def Zero_TensorAttr : AttrDef<Zero_Dialect, "Tensor"> {
  let mnemonic = "tensor";
  let summary = "One number per element of a bucket, or of a shard of it: which, of what type, and where";
  let description = [{ `#zero.tensor<first_moment f32 shard on device>` }];
  let parameters = (ins EnumParameter<Zero_Role>:$role, "::mlir::Type":$type, EnumParameter<Zero_Part>:$part,
                        EnumParameter<Zero_Tier>:$tier);
  let assemblyFormat = "`<` $role $type $part `on` $tier `>`";
}
def Zero_TensorArrayAttr : TypedArrayAttrBase<Zero_TensorAttr, "list of the tensors that a bucket keeps">;
#endif
