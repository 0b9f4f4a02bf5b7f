#include "interpreter/control_flow.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "interpreter/op_resolver.h"
#include "interpreter/registration.h"
#include "interpreter/subgraph.h"

namespace fuselite::interpreter {
namespace {

using tflite::Elements;
using tflite::TfLiteNode;
using tflite::TfLiteTensor;

// A tensor's shape and bytes, kept while subgraphs run over the original.
struct Value {
  tflite::TfLiteType type = tflite::kTfLiteNoType;
  std::vector<int> dims;
  std::vector<char> bytes;
};

Value Copy(const TfLiteTensor& tensor) {
  const auto dims = Elements(static_cast<const tflite::TfLiteIntArray*>(tensor.dims));
  return {tensor.type,
          {dims.begin(), dims.end()},
          {tensor.data.raw_const, tensor.data.raw_const + tensor.bytes}};
}

Subgraph& Callee(Subgraph& graph, const TfLiteNode& node, int which) {
  return *graph.host().subgraphs[static_cast<const int*>(node.builtin_data)[which]];
}

Status CheckSignature(Subgraph& graph, std::span<const int> arguments, std::span<const int> results,
                      Subgraph& callee, size_t result_count) {
  if (callee.inputs().size() != arguments.size() || callee.outputs().size() != result_count) {
    return InvalidArgument("subgraph ", callee.index(), " takes ", callee.inputs().size(),
                           " and gives ", callee.outputs().size(), " tensors, expected ",
                           arguments.size(), " and ", result_count);
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] < 0 ||
        graph.tensor(arguments[i]).type != callee.tensor(callee.inputs()[i]).type) {
      return InvalidArgument("input ", i, " of subgraph ", callee.index(), " has another type");
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (graph.tensor(results[i]).type != callee.tensor(callee.outputs()[i]).type) {
      return InvalidArgument("output ", i, " of subgraph ", callee.index(), " has another type");
    }
  }
  return Status();
}

// Gives the callee's inputs the shapes of `arguments` and plans it.
Status Shape(Subgraph& graph, std::span<const int> arguments, Subgraph& callee) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const TfLiteTensor& from = graph.tensor(arguments[i]);
    FUSELITE_RETURN_IF_ERROR(callee.ResizeInput(callee.inputs()[i], Elements(from.dims)));
  }
  return callee.ready() ? Status() : callee.AllocateTensors();
}

Status RunOn(const std::vector<Value>& arguments, Subgraph& callee) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    FUSELITE_RETURN_IF_ERROR(callee.ResizeInput(callee.inputs()[i], arguments[i].dims));
  }
  if (!callee.ready()) FUSELITE_RETURN_IF_ERROR(callee.AllocateTensors());
  for (size_t i = 0; i < arguments.size(); ++i) {
    TfLiteTensor& to = callee.tensor(callee.inputs()[i]);
    if (to.bytes != arguments[i].bytes.size()) return Internal("an argument of another size");
    if (to.bytes > 0) std::memcpy(to.data.raw, arguments[i].bytes.data(), to.bytes);
  }
  return callee.Invoke();
}

std::vector<Value> Results(Subgraph& callee) {
  std::vector<Value> values;
  for (int output : callee.outputs()) values.push_back(Copy(callee.tensor(output)));
  return values;
}

Status Store(Subgraph& graph, std::span<const int> outputs, const std::vector<Value>& values) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    TfLiteTensor& tensor = graph.tensor(outputs[i]);
    if (tensor.allocation_type == tflite::kTfLiteDynamic) {
      FUSELITE_RETURN_IF_ERROR(graph.ResizeTensor(tensor, values[i].dims));
    }
    if (tensor.bytes != values[i].bytes.size()) return Internal("a result of another size");
    if (tensor.bytes > 0) std::memcpy(tensor.data.raw, values[i].bytes.data(), tensor.bytes);
  }
  return Status();
}

bool SameShape(const TfLiteTensor& a, const TfLiteTensor& b) {
  return std::ranges::equal(Elements(a.dims), Elements(b.dims));
}

// The outputs of `node` get the shapes of the callees' outputs, or become dynamic where `fixed` is
// false.
Status ShapeOutputs(Subgraph& graph, std::span<const int> outputs, Subgraph& callee, bool fixed) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    TfLiteTensor& tensor = graph.tensor(outputs[i]);
    if (!fixed) {
      graph.SetDynamic(tensor);
      continue;
    }
    const TfLiteTensor& from = callee.tensor(callee.outputs()[i]);
    FUSELITE_RETURN_IF_ERROR(graph.ResizeTensor(tensor, Elements(from.dims)));
  }
  return Status();
}

Result<bool> Condition(const TfLiteTensor& tensor) {
  if (tensor.type != tflite::kTfLiteBool || tensor.bytes != 1) {
    return InvalidArgument("its condition is not one bool");
  }
  return tensor.data.b[0];
}

std::vector<Value> CopyAll(Subgraph& graph, std::span<const int> tensors) {
  std::vector<Value> values;
  for (int index : tensors) values.push_back(Copy(graph.tensor(index)));
  return values;
}

Status PrepareIf(Subgraph& graph, const TfLiteNode& node) {
  if (node.inputs->size < 1 || node.inputs->data[0] < 0) return InvalidArgument("has no condition");
  const auto arguments = Elements(node.inputs).subspan(1);
  const auto outputs = Elements(node.outputs);
  bool fixed = true;
  for (int which : {0, 1}) {
    Subgraph& branch = Callee(graph, node, which);
    FUSELITE_RETURN_IF_ERROR(CheckSignature(graph, arguments, outputs, branch, outputs.size()));
    FUSELITE_RETURN_IF_ERROR(Shape(graph, arguments, branch));
    fixed &= !branch.has_dynamic_tensors();
  }
  Subgraph& first = Callee(graph, node, 0);
  Subgraph& second = Callee(graph, node, 1);
  for (size_t i = 0; fixed && i < outputs.size(); ++i) {
    fixed = SameShape(first.tensor(first.outputs()[i]), second.tensor(second.outputs()[i]));
  }
  return ShapeOutputs(graph, outputs, first, fixed);
}

Status InvokeIf(Subgraph& graph, const TfLiteNode& node) {
  FUSELITE_ASSIGN_OR_RETURN(const bool condition, Condition(graph.tensor(node.inputs->data[0])));
  Subgraph& branch = Callee(graph, node, condition ? 0 : 1);
  FUSELITE_RETURN_IF_ERROR(RunOn(CopyAll(graph, Elements(node.inputs).subspan(1)), branch));
  return Store(graph, Elements(node.outputs), Results(branch));
}

Status PrepareWhile(Subgraph& graph, const TfLiteNode& node) {
  const auto arguments = Elements(node.inputs);
  const auto outputs = Elements(node.outputs);
  Subgraph& condition = Callee(graph, node, 0);
  Subgraph& body = Callee(graph, node, 1);
  if (arguments.size() != outputs.size()) return InvalidArgument("has other outputs than inputs");
  FUSELITE_RETURN_IF_ERROR(CheckSignature(graph, arguments, {}, condition, 1));
  FUSELITE_RETURN_IF_ERROR(CheckSignature(graph, arguments, outputs, body, outputs.size()));
  FUSELITE_RETURN_IF_ERROR(Shape(graph, arguments, condition));
  FUSELITE_RETURN_IF_ERROR(Shape(graph, arguments, body));
  // Fixed only where a turn changes no shape; none at all is a turn, too.
  bool fixed = !body.has_dynamic_tensors();
  for (size_t i = 0; fixed && i < outputs.size(); ++i) {
    fixed = SameShape(graph.tensor(arguments[i]), body.tensor(body.outputs()[i]));
  }
  return ShapeOutputs(graph, outputs, body, fixed);
}

Status InvokeWhile(Subgraph& graph, const TfLiteNode& node) {
  Subgraph& condition = Callee(graph, node, 0);
  Subgraph& body = Callee(graph, node, 1);
  std::vector<Value> values = CopyAll(graph, Elements(node.inputs));
  while (true) {
    FUSELITE_RETURN_IF_ERROR(RunOn(values, condition));
    FUSELITE_ASSIGN_OR_RETURN(const bool more, Condition(condition.tensor(condition.outputs()[0])));
    if (!more) return Store(graph, Elements(node.outputs), values);
    FUSELITE_RETURN_IF_ERROR(RunOn(values, body));
    values = Results(body);
  }
}

}  // namespace

void AddControlFlow(OpResolver& resolver) {
  resolver.AddBuiltin(tflite::kTfLiteBuiltinIf, Registration<PrepareIf, InvokeIf>());
  resolver.AddBuiltin(tflite::kTfLiteBuiltinWhile, Registration<PrepareWhile, InvokeWhile>());
}

}  // namespace fuselite::interpreter
