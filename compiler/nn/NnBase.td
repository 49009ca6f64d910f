//===- NnBase.td - the nn dialect: tensor mathematics of a transformer ---------------------------===//
#ifndef ZERO_NN_BASE_TD
#define ZERO_NN_BASE_TD
include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "NnInterfaces.td"

def Nn_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::zero::nn";
  let summary = "Tensor mathematics of a transformer, independent of ONNX, ranks, memory and time";
  let description = [{
    Values are ranked tensors of static shape. Nothing broadcasts silently: operands of an elementwise
    operation have equal shapes, and `nn.broadcast` says where a value is repeated.

    Operations come in three kinds. *Primitives* (elementwise, data movement, reductions) are what kernels
    are generated from. *Composites* (`nn.softmax`, `nn.layer_norm`, `nn.cross_entropy`, …) carry a name
    that passes and gradients need and are rewritten into primitives by `nn-decompose`. *Library*
    operations (`nn.matmul`, `nn.attention`) are calls of the target's library.

    The forward graph is `func.func @forward`; its arguments and results carry the attribute `nn.name`.
    Parameters are symbols of the module (`nn.parameter`) read by `nn.get`. The training step is
    `func.func @train`: arguments carry `nn.role` ("data", "shared", "labels", "loss_scale", "seed", "hyper") beside
    their name, `nn.limit` where their values index something, and `nn.classes` where a loss of the model's own takes
    them for labels; the loss is returned, and each gradient leaves through `nn.gradient`. Dimension 0 of data and labels is the batch; what is shared is the same for every sample.
  }];
  let extraClassDeclaration = [{
    static constexpr ::llvm::StringLiteral kNameAttr = "nn.name";
    static constexpr ::llvm::StringLiteral kRoleAttr = "nn.role";
    /// Of an integer argument: its values must lie in [-limit, limit).
    static constexpr ::llvm::StringLiteral kLimitAttr = "nn.limit";
    /// Of an integer argument: [classes], or [classes, ignored]: its values must lie in [0, classes), or be the label that does not count.
    static constexpr ::llvm::StringLiteral kClassesAttr = "nn.classes";
    /// Of an argument of @forward: the symbols its dimensions have in the file, "" where one is a fixed number.
    static constexpr ::llvm::StringLiteral kSymbolsAttr = "nn.symbols";
    /// Of the module: what the loss is the weighted sum of, one dictionary each: `kind` ("cross_entropy", "mse", "output"), `output`,
    /// `weight` (f64), and where it has labels `labels` (the argument) and `ignore_index`. `loss_scale` has one number for each.
    static constexpr ::llvm::StringLiteral kLossesAttr = "nn.losses";
    /// Unit attribute of a `func.func` that is the body of a kernel (see `nn.launch`).
    static constexpr ::llvm::StringLiteral kKernelAttr = "nn.kernel";
    /// Pairs [result, operand] of a kernel: the result may be written over the operand.
    static constexpr ::llvm::StringLiteral kInplaceAttr = "nn.inplace";
  }];
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
}

class Nn_Op<string mnemonic, list<Trait> traits = []> : Op<Nn_Dialect, mnemonic, traits>;

def Nn_Tensor  : StaticShapeTensorOf<[F32, F64, F16, BF16, I64, I32, I1]>;
def Nn_Float   : StaticShapeTensorOf<[F32, F64, F16, BF16]>;
def Nn_Integer : StaticShapeTensorOf<[I64, I32]>;
def Nn_Bool    : StaticShapeTensorOf<[I1]>;

defvar Nn_Diff = DeclareOpInterfaceMethods<DifferentiableOpInterface>;
defvar Nn_Evaluable = DeclareOpInterfaceMethods<EvaluableOpInterface>;
defvar Nn_Splittable = DeclareOpInterfaceMethods<SplittableOpInterface>;
defvar Nn_SplittableSum = DeclareOpInterfaceMethods<SplittableOpInterface, ["sumsRows"]>;
defvar Nn_Composite = DeclareOpInterfaceMethods<CompositeOpInterface>;
defvar Nn_Indexed = DeclareOpInterfaceMethods<IndexedOpInterface>;
defvar Nn_IndexedFree = DeclareOpInterfaceMethods<IndexedOpInterface, ["isFree"]>;
defvar Nn_IndexedOfWork = DeclareOpInterfaceMethods<IndexedOpInterface, ["getWork"]>;
defvar Nn_IndexedFreeOfWork = DeclareOpInterfaceMethods<IndexedOpInterface, ["isFree", "getWork"]>;
defvar Nn_Pointwise = DeclareOpInterfaceMethods<PointwiseOpInterface>;

/// Marks operations that compute each result element from the operand elements at the same index.
def Nn_Elementwise : NativeOpTrait<"Elementwise"> { let cppNamespace = "::zero::nn"; }

/// Marks operations that compute each row (along the last dimension) from that row of the first operand; the others are the same for every row.
def Nn_RowWise : NativeOpTrait<"RowWise"> { let cppNamespace = "::zero::nn"; }

/// Marks operations whose result holds elements of the operands, bit for bit.
def Nn_Movement : NativeOpTrait<"Movement"> { let cppNamespace = "::zero::nn"; }

/// Marks primitives that make one element of many: sums and the like.
def Nn_Accumulates : NativeOpTrait<"Accumulates"> { let cppNamespace = "::zero::nn"; }

/// Marks operations whose numbers come from a seed: equal ones are equal only within one step, and none is a constant.
def Nn_Draws : NativeOpTrait<"Draws"> { let cppNamespace = "::zero::nn"; }

/// Marks operations that give their operands no gradient, as in PyTorch: steps, noise, and what is detached.
def Nn_NoGradient : NativeOpTrait<"NoGradient"> { let cppNamespace = "::zero::nn"; }

/// An elementwise primitive: says by a formula what it does to the numbers at one index.
class Nn_PointwiseOp<string mnemonic, list<Trait> traits = []>
    : Nn_Op<mnemonic, !listconcat([Pure, Nn_Elementwise, Nn_Pointwise], traits)>;

class Nn_Unary<string mnemonic, Type type, list<Trait> traits = []>
    : Nn_PointwiseOp<mnemonic, !listconcat([SameOperandsAndResultType], traits)> {
  let arguments = (ins type:$input);
  let results = (outs type:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}
class Nn_Binary<string mnemonic, Type type, list<Trait> traits = []>
    : Nn_PointwiseOp<mnemonic, !listconcat([SameOperandsAndResultType], traits)> {
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}
#endif
