//===- NnElementwise.td - operations that work element by element --------------------------------===//
#ifndef ZERO_NN_ELEMENTWISE_TD
#define ZERO_NN_ELEMENTWISE_TD
include "NnBase.td"

def Nn_AddOp : Nn_Binary<"add", Nn_Tensor, [Nn_Diff, Commutative]> { let summary = "lhs + rhs"; }
def Nn_SubOp : Nn_Binary<"sub", Nn_Tensor, [Nn_Diff]> { let summary = "lhs - rhs"; }
def Nn_MulOp : Nn_Binary<"mul", Nn_Tensor, [Nn_Diff, Commutative]> { let summary = "lhs * rhs"; }
def Nn_DivOp : Nn_Binary<"div", Nn_Tensor, [Nn_Diff]> { let summary = "lhs / rhs (integers: towards zero)"; }
def Nn_ModOp : Nn_Binary<"mod", Nn_Integer> { let summary = "Remainder with the sign of rhs (ONNX Mod, fmod = 0)"; }
def Nn_PowOp : Nn_Binary<"pow", Nn_Float, [Nn_Diff]> { let summary = "lhs ^ rhs"; }
def Nn_MaxOp : Nn_Binary<"max", Nn_Tensor, [Nn_Diff, Commutative]> { let summary = "Larger operand; NaN if either is NaN"; }
def Nn_MinOp : Nn_Binary<"min", Nn_Tensor, [Nn_Diff, Commutative]> { let summary = "Smaller operand; NaN if either is NaN"; }
def Nn_AndOp : Nn_Binary<"and", Nn_Bool, [Commutative]> { let summary = "Logical and"; }
def Nn_OrOp  : Nn_Binary<"or", Nn_Bool, [Commutative]> { let summary = "Logical or"; }
def Nn_XorOp : Nn_Binary<"xor", Nn_Bool, [Commutative]> { let summary = "Logical exclusive or"; }
def Nn_NotOp : Nn_Unary<"not", Nn_Bool> { let summary = "Logical not"; }
def Nn_BitAndOp : Nn_Binary<"bit_and", Nn_Integer, [Commutative]> { let summary = "And, bit by bit"; }
def Nn_BitOrOp  : Nn_Binary<"bit_or", Nn_Integer, [Commutative]> { let summary = "Or, bit by bit"; }
def Nn_BitXorOp : Nn_Binary<"bit_xor", Nn_Integer, [Commutative]> { let summary = "Exclusive or, bit by bit"; }
def Nn_ShiftLeftOp  : Nn_Binary<"shift_left", Nn_Integer> { let summary = "Bits moved up by rhs places; 0 where these are all or more"; }
def Nn_ShiftRightOp : Nn_Binary<"shift_right", Nn_Integer> { let summary = "Bits moved down by rhs places, zeros above them"; }

def Nn_NegOp   : Nn_Unary<"neg", Nn_Tensor, [Nn_Diff]> { let summary = "-x"; }
def Nn_AbsOp   : Nn_Unary<"abs", Nn_Tensor, [Nn_Diff]> { let summary = "|x|"; }
def Nn_ExpOp   : Nn_Unary<"exp", Nn_Float, [Nn_Diff]> { let summary = "e^x"; }
def Nn_LogOp   : Nn_Unary<"log", Nn_Float, [Nn_Diff]> { let summary = "Natural logarithm"; }
def Nn_Log1pOp : Nn_Unary<"log1p", Nn_Float, [Nn_Diff]> { let summary = "Natural logarithm of 1 + x, to the digits of a small x"; }
def Nn_SqrtOp  : Nn_Unary<"sqrt", Nn_Float, [Nn_Diff]> { let summary = "Square root"; }
def Nn_RsqrtOp : Nn_Unary<"rsqrt", Nn_Float, [Nn_Diff]> { let summary = "1 / sqrt(x)"; }
def Nn_TanhOp  : Nn_Unary<"tanh", Nn_Float, [Nn_Diff]> { let summary = "Hyperbolic tangent"; }
def Nn_ErfOp   : Nn_Unary<"erf", Nn_Float, [Nn_Diff]> { let summary = "Error function"; }
def Nn_SinOp   : Nn_Unary<"sin", Nn_Float, [Nn_Diff]> { let summary = "Sine"; }
def Nn_CosOp   : Nn_Unary<"cos", Nn_Float, [Nn_Diff]> { let summary = "Cosine"; }
def Nn_AsinhOp  : Nn_Unary<"asinh", Nn_Float, [Nn_Diff]> { let summary = "Inverse hyperbolic sine"; }
def Nn_AtanOp  : Nn_Unary<"atan", Nn_Float, [Nn_Diff]> { let summary = "Inverse tangent"; }
def Nn_FloorOp : Nn_Unary<"floor", Nn_Float, [Nn_NoGradient]> { let summary = "Largest integer not above x"; }
def Nn_DetachOp : Nn_Unary<"detach", Nn_Float, [Nn_NoGradient]> { let summary = "x, which gets no gradient; nn-differentiate removes it"; }
def Nn_SigmoidOp : Nn_Unary<"sigmoid", Nn_Float, [Nn_Diff]> { let summary = "1 / (1 + e^-x)"; }

def Nn_IsNanOp : Nn_PointwiseOp<"is_nan", [SameOperandsAndResultShape]> {
  let summary = "Whether x is not a number";
  let arguments = (ins Nn_Float:$input);
  let results = (outs Nn_Bool:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def Nn_Predicate : I32EnumAttr<"Predicate", "comparison", [
    I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
    I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]> {
  let cppNamespace = "::zero::nn";
}
def Nn_CompareOp : Nn_PointwiseOp<"compare", [SameOperandsAndResultShape, SameTypeOperands]> {
  let summary = "Compare element by element (floats: ordered, except ne)";
  let arguments = (ins Nn_Predicate:$predicate, Nn_Tensor:$lhs, Nn_Tensor:$rhs);
  let results = (outs Nn_Bool:$result);
  let assemblyFormat = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
}

def Nn_SelectOp : Nn_PointwiseOp<"select", [SameOperandsAndResultShape, Nn_Diff,
                                   AllTypesMatch<["on_true", "on_false", "result"]>]> {
  let summary = "condition ? on_true : on_false, element by element (ONNX Where)";
  let arguments = (ins Nn_Bool:$condition, Nn_Tensor:$on_true, Nn_Tensor:$on_false);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` type($condition) `,` type($result)";
}

def Nn_CastOp : Nn_PointwiseOp<"cast", [SameOperandsAndResultShape, Nn_Diff]> {
  let summary = "Convert the element type (float to integer: towards zero; to bool: x != 0)";
  let arguments = (ins Nn_Tensor:$input);
  let results = (outs Nn_Tensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
  let hasFolder = 1;
}
#endif
