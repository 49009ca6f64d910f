//===- parse.cpp - onnx.proto messages from the wire ---------------------------------------------===//
#include "compiler/onnx/model.h"
#include "compiler/onnx/wire.h"

namespace zero::onnx {
namespace {

/// Subgraphs in attributes of nodes of subgraphs …; exporters nest two or three deep.
constexpr int kMaxDepth = 16;

void floats(const Field &f, std::vector<float> &out) {
  if (f.wire == 5) return out.push_back(f.real());
  if (f.wire != 2 || f.bytes.size() % 4) throw FormatError("is no ONNX file: a list of floats has a length that is no multiple of 4");
  size_t old = out.size();
  out.resize(old + f.bytes.size() / 4);
  if (out.size() > old) std::memcpy(&out[old], f.bytes.data(), f.bytes.size());
}

Graph graph(StringRef bytes, int depth);

Attribute attribute(StringRef bytes, int depth) {
  Attribute a;
  Field f;
  for (Wire w(bytes, "attribute"); w.next(f);) {
    switch (f.number) {
    case 1:
      a.name = f.bytes;
      break;
    case 2:
      a.f = f.real();
      break;
    case 3:
      a.i = f.integer();
      break;
    case 4:
      a.s = f.bytes;
      break;
    case 5:
      a.tensor = std::make_shared<TensorProto>(parseTensor(f.bytes));
      break;
    case 6:
      a.graph = std::make_shared<Graph>(graph(f.bytes, depth + 1));
      break;
    case 7:
      floats(f, a.floats);
      break;
    case 8:
      integers(f, [&](uint64_t v) { a.ints.push_back(int64_t(v)); });
      break;
    case 9:
      a.strings.push_back(f.bytes);
      break;
    case 10:
    case 11:
    case 14:
    case 15:
    case 22:
    case 23:
      a.unread = true;
      break;
    case 20:
      a.kind = int32_t(f.value);
      break;
    case 21:
      a.reference = f.bytes;
      break;
    default:
      break;
    }
  }
  return a;
}

/// PyTorch writes "['', 'transformer', 'transformer.h.3.mlp', 'addmm_14']", the modules from the outermost inwards and what the
/// node came from: the last but one.
StringRef innermostModule(StringRef scopes) {
  if (!scopes.consume_front("['") || !scopes.consume_back("']")) return {};
  auto [modules, from] = scopes.rsplit("', '");
  if (from.empty()) return {};
  size_t inner = modules.rfind("', '");
  return inner == StringRef::npos ? modules : modules.substr(inner + 4);
}

Node node(StringRef bytes, int depth) {
  Node n;
  Field f;
  for (Wire w(bytes, "node"); w.next(f);) {
    switch (f.number) {
    case 1:
      n.inputs.push_back(f.bytes);
      break;
    case 2:
      n.outputs.push_back(f.bytes);
      break;
    case 3:
      n.name = f.bytes;
      break;
    case 4:
      n.op = f.bytes;
      break;
    case 5:
      n.attributes.push_back(attribute(f.bytes, depth));
      break;
    case 7:
      n.domain = f.bytes;
      break;
    case 8:
      n.overload = f.bytes;
      break;
    case 9: { // metadata_props
      auto [key, value] = entry(f.bytes, "node");
      if (key == "pkg.torch.onnx.name_scopes") n.module = innermostModule(value);
      if (key == "pkg.torch.onnx.fx_node") n.call = value;
      break;
    }
    default:
      break;
    }
  }
  if (n.domain == "ai.onnx") n.domain = "";
  return n;
}

ValueInfo valueInfo(StringRef bytes) {
  ValueInfo v;
  Field f;
  for (Wire w(bytes, "value"); w.next(f);) {
    if (f.number == 1) v.name = f.bytes;
    if (f.number != 2) continue;
    Field t;
    for (Wire type(f.bytes, "type"); type.next(t);) {
      if (t.number != 1) continue;
      v.tensor = true;
      Field e;
      for (Wire tensorType(t.bytes, "type"); tensorType.next(e);) {
        if (e.number == 1) v.type = Type(int32_t(e.value));
        if (e.number != 2) continue;
        v.ranked = true;
        Field d;
        for (Wire shape(e.bytes, "shape"); shape.next(d);) {
          if (d.number != 1) continue;
          Dim dim;
          Field x;
          for (Wire one(d.bytes, "dimension"); one.next(x);) {
            if (x.number == 1 && x.wire == 0) dim.size = x.integer();
            if (x.number == 2) dim.parameter = x.bytes;
          }
          v.dims.push_back(dim);
        }
      }
    }
  }
  return v;
}

/// A tensor that stands in a Constant node is an initializer under the node's output: whole models keep their weights so.
void liftConstant(Graph &g) {
  Node &n = g.nodes.back();
  if (n.op != "Constant" || !n.domain.empty() || n.outputs.size() != 1 || n.attributes.size() != 1) return;
  Attribute &value = n.attributes[0];
  if (value.name != "value" || !value.tensor || !value.reference.empty()) return;
  TensorProto t = std::move(*value.tensor);
  t.name = n.outputs[0];
  t.inNode = true;
  g.initializers.push_back(std::move(t));
  g.nodes.pop_back();
}

Graph graph(StringRef bytes, int depth) {
  if (depth > kMaxDepth) throw FormatError("nests graphs more than " + std::to_string(kMaxDepth) + " deep");
  Graph g;
  Field f;
  for (Wire w(bytes, "graph"); w.next(f);) {
    switch (f.number) {
    case 1:
      g.nodes.push_back(node(f.bytes, depth));
      liftConstant(g);
      break;
    case 2:
      g.name = f.bytes;
      break;
    case 5:
      g.initializers.push_back(parseTensor(f.bytes));
      break;
    case 11:
      g.inputs.push_back(valueInfo(f.bytes));
      break;
    case 12:
      g.outputs.push_back(valueInfo(f.bytes));
      break;
    case 15:
      throw FormatError("stores an initializer as a sparse tensor, which is not read; save it dense");
    default:
      break;
    }
  }
  return g;
}

OpsetImport opset(StringRef bytes) {
  OpsetImport o;
  Field f;
  for (Wire w(bytes, "opset"); w.next(f);) {
    if (f.number == 1) o.domain = f.bytes == "ai.onnx" ? "" : f.bytes;
    if (f.number == 2) o.version = f.integer();
  }
  return o;
}

Function function(StringRef bytes) {
  Function fn;
  Field f;
  for (Wire w(bytes, "function"); w.next(f);) {
    switch (f.number) {
    case 1:
      fn.name = f.bytes;
      break;
    case 4:
      fn.inputs.push_back(f.bytes);
      break;
    case 5:
      fn.outputs.push_back(f.bytes);
      break;
    case 6:
      fn.attributes.push_back(f.bytes);
      break;
    case 7:
      fn.nodes.push_back(node(f.bytes, 0));
      break;
    case 9:
      fn.opsets.push_back(opset(f.bytes));
      break;
    case 10:
      fn.domain = f.bytes;
      break;
    case 11:
      fn.defaults.push_back(attribute(f.bytes, 0));
      break;
    case 13:
      fn.overload = f.bytes;
      break;
    default:
      break;
    }
  }
  return fn;
}

} // namespace

static uint64_t count(const std::vector<Node> &nodes) {
  uint64_t n = nodes.size();
  for (const Node &node : nodes)
    for (const Attribute &a : node.attributes)
      if (a.graph) n += count(a.graph->nodes); // nested kMaxDepth deep at most
  return n;
}

uint64_t Model::countNodes() const {
  uint64_t n = count(graph.nodes);
  for (const Function &f : functions) n += count(f.nodes);
  return n;
}

Model parseModel(StringRef bytes) {
  if (bytes.empty()) throw FormatError("is empty");
  Model m;
  Field f;
  for (Wire w(bytes, "model"); w.next(f);) {
    switch (f.number) {
    case 1:
      m.irVersion = f.integer();
      break;
    case 2:
      m.producer = f.bytes;
      break;
    case 3:
      m.producerVersion = f.bytes;
      break;
    case 7:
      if (m.hasGraph) throw FormatError("holds two graphs");
      m.graph = graph(f.bytes, 0);
      m.hasGraph = true;
      break;
    case 8:
      m.opsets.push_back(opset(f.bytes));
      break;
    case 25:
      m.functions.push_back(function(f.bytes));
      break;
    default:
      break;
    }
  }
  if (!m.hasGraph) throw FormatError("is no ONNX file: it holds no graph");
  if (m.opsets.empty()) throw FormatError("is no ONNX file: it names no operator set");
  return m;
}

} // namespace zero::onnx
