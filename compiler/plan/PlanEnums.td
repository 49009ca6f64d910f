//===- PlanEnums.td - the enumerations of the plan dialect ------------------------------------------===//
#ifndef ZERO_PLAN_ENUMS_TD
#define ZERO_PLAN_ENUMS_TD
include "mlir/IR/EnumAttr.td"

class Plan_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::zero::planir";
}
// The numbers of the enumerations are those of plan.proto.
def Plan_Lane : Plan_Enum<"Lane", "in-order queue", [
    I32EnumAttrCase<"compute", 0>, I32EnumAttrCase<"gather", 1>, I32EnumAttrCase<"reduce", 2>, I32EnumAttrCase<"to_device", 3>,
    I32EnumAttrCase<"to_host", 4>, I32EnumAttrCase<"disk_read", 5>, I32EnumAttrCase<"disk_write", 6>, I32EnumAttrCase<"update", 7>,
    I32EnumAttrCase<"update_read", 8>, I32EnumAttrCase<"update_write", 9>,
    I32EnumAttrCase<"update_host", 10>]>;
def Plan_Kind : Plan_Enum<"BufferKind", "what a buffer holds", [
    I32EnumAttrCase<"parameter", 1>, I32EnumAttrCase<"gradient", 2>, I32EnumAttrCase<"optimizer", 3>, I32EnumAttrCase<"constant", 4>,
    I32EnumAttrCase<"input", 5>, I32EnumAttrCase<"activation", 6>, I32EnumAttrCase<"gathered", 7>, I32EnumAttrCase<"staging", 8>,
    I32EnumAttrCase<"scalar", 9>, I32EnumAttrCase<"fetched", 10>]>;
def Plan_Role : Plan_Enum<"ProgramRole", "which micro-step", [
    I32EnumAttrCase<"step", 0>, I32EnumAttrCase<"first", 1>, I32EnumAttrCase<"middle", 2>, I32EnumAttrCase<"last", 3>,
    I32EnumAttrCase<"eval", 4>]>;
def Plan_CollectiveKind : Plan_Enum<"CollectiveKind", "what a collective does", [
    I32EnumAttrCase<"all_gather", 0>, I32EnumAttrCase<"reduce_scatter", 1>, I32EnumAttrCase<"all_reduce", 2>]>;
def Plan_Epilogue : Plan_Enum<"Epilogue", "what a product makes of its result", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"bias", 3>, I32EnumAttrCase<"gelu", 4>, I32EnumAttrCase<"gelu_gradient", 5>]>;
def Plan_Grouped : Plan_Enum<"Grouped", "what a product of a batch has of its group", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"rhs", 1>, I32EnumAttrCase<"result", 2>]>;
#endif
