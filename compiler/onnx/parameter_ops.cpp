//===- parameter_ops.cpp - the parameters that were decided on, as nn.parameter ---------------------===//
#include "compiler/onnx/parameters.h"

using namespace mlir;

namespace zero::onnx {

static mlir::Type storedType(Type type, MLIRContext *context) {
  switch (type) {
  case Type::Float16:
    return FloatType::getF16(context);
  case Type::BFloat16:
    return FloatType::getBF16(context);
  case Type::Double:
    return FloatType::getF64(context);
  default:
    return FloatType::getF32(context);
  }
}

LogicalResult emitParameters(ModuleOp module, const Decisions &decisions, Weights &weights, const ImportOptions &options) {
  MLIRContext *context = module.getContext();
  OpBuilder b(context);
  b.setInsertionPointToStart(module.getBody());
  for (auto &p : decisions.parameters()) {
    const TensorProto &t = *p->tensor;
    Location loc = NameLoc::get(b.getStringAttr(p->firstUser));
    auto place = [&](const TensorProto &of) -> FailureOr<FileRange> {
      if (of.type == Type::Double)
        return emitError(loc) << "parameter '" << of.name
                              << "' is stored as f64, which is not trained; export the model in f32 (model.float())";
      if (!of.hasData)
        return emitError(loc) << "parameter '" << of.name << "' has no data in the file; pass --init random to train from random values";
      auto at = weights.place(of);
      if (!at)
        return emitError(loc) << "parameter '" << of.name << "' stores its " << name(of.type)
                              << " values as numbers in the protobuf; save the model with raw_data or external data";
      return *at;
    };
    auto type = RankedTensorType::get(t.dims, b.getF32Type());
    auto op = b.create<nn::ParameterOp>(loc, b.getStringAttr(p->name), TypeAttr::get(type), b.getBoolAttr(p->trainable), StringAttr(),
                                        IntegerAttr(), IntegerAttr(), TypeAttr(), StringAttr(), FloatAttr(), ArrayAttr(), StringAttr(),
                                        DenseI64ArrayAttr(), DenseI64ArrayAttr());
    if (options.init == Init::Random) {
      bool ones = p->role == "scale" && !p->plusOne, zeros = p->role == "bias" || (p->role == "scale" && p->plusOne);
      op.setInit(ones ? "ones" : zeros ? "zeros" : "normal");
      if (!ones && !zeros) op.setInitStdAttr(b.getF32FloatAttr(0.02f));
    } else {
      auto at = place(t);
      if (failed(at)) return failure();
      op.setFile(at->file);
      op.setOffset(at->offset);
      op.setBytes(at->bytes);
      op.setStored(storedType(t.type, context));
    }
    SmallVector<mlir::Attribute> aliases;
    for (const Parameter::Alias &a : p->aliases) {
      NamedAttrList fields;
      fields.set("name", b.getStringAttr(a.tensor->name));
      fields.set("transposed", b.getBoolAttr(a.transposed));
      auto at = place(*a.tensor);
      if (failed(at)) return failure();
      fields.set("file", b.getStringAttr(at->file));
      fields.set("offset", b.getI64IntegerAttr(int64_t(at->offset)));
      fields.set("bytes", b.getI64IntegerAttr(int64_t(at->bytes)));
      fields.set("stored", TypeAttr::get(storedType(a.tensor->type, context)));
      aliases.push_back(fields.getDictionary(context));
    }
    if (!aliases.empty()) op.setAliasesAttr(b.getArrayAttr(aliases));
  }
  return success();
}

} // namespace zero::onnx
