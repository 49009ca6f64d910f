//===- NnOps.td - the operations of the nn dialect -----------------------------------------------===//
#ifndef ZERO_NN_OPS_TD
#define ZERO_NN_OPS_TD
include "NnElementwise.td"
include "NnMovement.td"
include "NnComposites.td"
include "NnLibrary.td"

//===----------------------------------------------------------------------===//
// Parameters and constants
//===----------------------------------------------------------------------===//

def Nn_ParameterOp : Nn_Op<"parameter", [Symbol]> {
  let summary = "A tensor of the model that training may change; a symbol of the module";
  let description = [{
    The symbol's name is the initializer's name in the ONNX file and the name under which gradients,
    checkpoints and exports show it. Weights are not in the IR: `file`, `offset` and `bytes` say where they
    lie (row-major, element type `stored`); without `file` they come from `init` ("zeros", "ones", "normal").
    `aliases` lists tied initializers: dictionaries {name, transposed, file, offset, bytes, stored}.
    The operation's location names the ONNX nodes that read it first.

    A tile of a parameter (see `nn-tile`) is a parameter of its own to all passes. `tile_of` is the name of the whole, `whole` its shape and
    `begin` the tile's first index along each dimension; `type` is the tile's, everything else that of the whole parameter.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Nn_Tensor>:$type, BoolAttr:$trainable,
                       OptionalAttr<StrAttr>:$file, DefaultValuedAttr<I64Attr, "0">:$offset,
                       DefaultValuedAttr<I64Attr, "0">:$bytes, OptionalAttr<TypeAttr>:$stored,
                       OptionalAttr<StrAttr>:$init, DefaultValuedAttr<F32Attr, "0.0f">:$init_std,
                       OptionalAttr<ArrayAttr>:$aliases, OptionalAttr<StrAttr>:$tile_of,
                       OptionalAttr<DenseI64ArrayAttr>:$whole, OptionalAttr<DenseI64ArrayAttr>:$begin);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
  let hasVerifier = 1;
}

def Nn_GetOp : Nn_Op<"get", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The present value of a parameter, or that rounded to bf16 or f16: its compute copy";
  let arguments = (ins FlatSymbolRefAttr:$parameter);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$parameter attr-dict `:` type($result)";
}

def Nn_GradientOp : Nn_Op<"gradient", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Hand over the complete gradient of a trainable parameter (once per parameter and step)";
  let arguments = (ins FlatSymbolRefAttr:$parameter, Nn_Float:$value);
  let assemblyFormat = "$parameter `,` $value attr-dict `:` type($value)";
}

def Nn_ConstantOp : Nn_Op<"constant", [Pure, ConstantLike, Nn_Splittable, Nn_IndexedFree, Nn_Evaluable, AllTypesMatch<["value", "result"]>]> {
  let summary = "A tensor known at compile time";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def Nn_IotaOp : Nn_Op<"iota", [Pure, Nn_IndexedFree, Nn_Evaluable]> {
  let summary = "The index along one dimension: result[…, i, …] = i";
  let arguments = (ins I64Attr:$dim);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Nn_RandomOp : Nn_Op<"random", [Pure, Nn_Draws, Nn_IndexedFreeOfWork, Nn_Evaluable]> {
  let summary = "Uniform numbers in [0, 1) from a counter-based generator";
  let description = [{
    `seed` is i64[2]: the run's seed mixed with the step, and the global index s of the first sample of this
    tensor. Dimension 0 is the batch, or the batch and more that a reshape has joined with it: the element with
    linear index i gets hash(seed[0], id, s * (elements / samples) + i), where `samples` is the number of
    samples the tensor covers, so the stream does not depend on how the batch is split over ranks. A tensor that is the same for
    every sample has `samples` = 0 and gets hash(seed[0], id, i) on every rank.
  }];
  let arguments = (ins StaticShapeTensorOf<[I64]>:$seed, I64Attr:$id, I64Attr:$samples);
  let results = (outs StaticShapeTensorOf<[F32]>:$result);
  let assemblyFormat = "$seed attr-dict `:` type($seed) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def Nn_LaunchOp : Nn_Op<"launch", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Call of a generated kernel";
  let description = [{
    `kernel` names a private `func.func` of the module with the unit attribute `nn.kernel`, whose body holds primitives
    only; equal bodies are one function however often they are launched. Operand and result types are the function's.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Nn_Tensor>:$inputs);
  let results = (outs Variadic<Nn_Tensor>:$outputs);
  let assemblyFormat = "$kernel `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}
#endif
