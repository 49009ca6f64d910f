//===- PlanSyntax.cpp - how references, waits and lists are written ------------------------------===//
#include "compiler/plan/PlanSyntax.h"

using namespace mlir;

namespace zero::planir {

namespace {
/// Collects references as they are parsed.
struct RefParser {
  OpAsmParser &parser;
  SmallVectorImpl<OpAsmParser::UnresolvedOperand> &buffers;
  SmallVector<int64_t> offsets, strides, bytes;

  /// [64, 128] or [0 + rank * 256, 128], after the operand.
  ParseResult bounds() {
    int64_t stride = 0;
    if (parser.parseLSquare() || parser.parseInteger(offsets.emplace_back())) return failure();
    if (succeeded(parser.parseOptionalPlus()) && (parser.parseKeyword("rank") || parser.parseStar() || parser.parseInteger(stride)))
      return failure();
    strides.push_back(stride);
    return failure(parser.parseComma() || parser.parseInteger(bytes.emplace_back()) || parser.parseRSquare());
  }
  /// The rest of a list whose first operand has been parsed, or the whole list.
  ParseResult list(bool hasFirst) {
    while (true) {
      if ((!hasFirst && parser.parseOperand(buffers.emplace_back())) || bounds()) return failure();
      hasFirst = false;
      if (failed(parser.parseOptionalComma())) return success();
    }
  }
};
} // namespace

ParseResult parseRefs(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &buffers, DenseI64ArrayAttr &offsets,
                      DenseI64ArrayAttr &strides, DenseI64ArrayAttr &bytes, IntegerAttr &inputs) {
  RefParser refs{parser, buffers, {}, {}, {}};
  OpAsmParser::UnresolvedOperand first;
  if (OptionalParseResult any = parser.parseOptionalOperand(first); any.has_value()) {
    buffers.push_back(first);
    if (failed(*any) || refs.list(true)) return failure();
  }
  Builder &builder = parser.getBuilder();
  inputs = builder.getI64IntegerAttr(buffers.size());
  if (succeeded(parser.parseOptionalArrow()) && refs.list(false)) return failure();
  offsets = builder.getDenseI64ArrayAttr(refs.offsets);
  strides = builder.getDenseI64ArrayAttr(refs.strides);
  bytes = builder.getDenseI64ArrayAttr(refs.bytes);
  return success();
}

void printRefs(OpAsmPrinter &printer, Operation *, OperandRange buffers, DenseI64ArrayAttr offsets, DenseI64ArrayAttr strides,
               DenseI64ArrayAttr bytes, IntegerAttr inputs) {
  int64_t read = inputs.getInt();
  for (auto [i, buffer] : llvm::enumerate(buffers)) {
    if (int64_t(i) == read)
      printer << (i ? " -> " : "-> ");
    else if (i)
      printer << ", ";
    printer << buffer << "[" << offsets[i];
    if (strides[i]) printer << " + rank * " << strides[i];
    printer << ", " << bytes[i] << "]";
  }
}

static ParseResult parseLaneName(OpAsmParser &parser, Lane &lane) {
  StringRef name;
  SMLoc where = parser.getCurrentLocation();
  if (parser.parseKeyword(&name)) return failure();
  auto known = symbolizeLane(name);
  if (!known) return parser.emitError(where, "no lane is called '") << name << "'";
  lane = *known;
  return success();
}

/// "gather 2", after what is there already.
static ParseResult parseTick(OpAsmParser &parser, SmallVectorImpl<int64_t> &list) {
  Lane lane;
  if (parseLaneName(parser, lane)) return failure();
  list.push_back(int64_t(lane));
  return parser.parseInteger(list.emplace_back());
}

ParseResult parseWaits(OpAsmParser &parser, DenseI64ArrayAttr &waits) {
  if (failed(parser.parseOptionalKeyword("waits"))) return success();
  SmallVector<int64_t> pairs;
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, [&] { return parseTick(parser, pairs); })) return failure();
  waits = parser.getBuilder().getDenseI64ArrayAttr(pairs);
  return success();
}

void printWaits(OpAsmPrinter &printer, Operation *, DenseI64ArrayAttr waits) {
  if (!waits || waits.empty()) return;
  printer << " waits(";
  for (int64_t i = 0; i + 1 < waits.size(); i += 2) printer << (i ? ", " : "") << stringifyLane(Lane(waits[i])) << " " << waits[i + 1];
  printer << ")";
}

ParseResult parseEntryWaits(OpAsmParser &parser, DenseI64ArrayAttr &waits) {
  SmallVector<int64_t> triples;
  auto one = [&]() -> ParseResult {
    return failure(parser.parseInteger(triples.emplace_back()) || parser.parseColon() || parseTick(parser, triples));
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, one)) return failure();
  waits = parser.getBuilder().getDenseI64ArrayAttr(triples);
  return success();
}

void printEntryWaits(OpAsmPrinter &printer, Operation *, DenseI64ArrayAttr waits) {
  printer << "(";
  for (int64_t i = 0; i + 2 < waits.size(); i += 3)
    printer << (i ? ", " : "") << waits[i] << ": " << stringifyLane(Lane(waits[i + 1])) << " " << waits[i + 2];
  printer << ")";
}

ParseResult parseLane(OpAsmParser &parser, LaneAttr &lane, DenseI64ArrayAttr &waits) {
  Lane own;
  if (parseLaneName(parser, own)) return failure();
  lane = LaneAttr::get(parser.getContext(), own);
  return parseWaits(parser, waits);
}

void printLane(OpAsmPrinter &printer, Operation *op, LaneAttr lane, DenseI64ArrayAttr waits) {
  printer << stringifyLane(lane.getValue());
  printWaits(printer, op, waits);
}

ParseResult parseList(OpAsmParser &parser, DenseI64ArrayAttr &list) {
  list = dyn_cast_or_null<DenseI64ArrayAttr>(DenseI64ArrayAttr::parse(parser, Type()));
  return success(bool(list));
}
void printList(OpAsmPrinter &printer, Operation *, DenseI64ArrayAttr list) { list.print(printer); }

} // namespace zero::planir
