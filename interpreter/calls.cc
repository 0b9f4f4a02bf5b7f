#include "interpreter/calls.h"

#include <algorithm>

namespace fuselite::interpreter {

using tflite::Elements;
using tflite::TfLiteTensor;

namespace {

Value Copy(const TfLiteTensor& tensor) {
  const auto dims = Elements(static_cast<const tflite::TfLiteIntArray*>(tensor.dims));
  return {tensor.type,
          {dims.begin(), dims.end()},
          {tensor.data.raw_const, tensor.data.raw_const + tensor.bytes}};
}

// Copies the value into a tensor of its shape.
Status Put(const Value& value, Subgraph& graph, TfLiteTensor& to) {
  if (to.type == tflite::kTfLiteString) {
    FUSELITE_RETURN_IF_ERROR(graph.ResizeStrings(to, value.dims, value.bytes.size()));
  }
  if (to.bytes != value.bytes.size()) return Internal("a value of another size");
  std::ranges::copy(value.bytes, to.data.raw);
  return Status();
}

Status ResizeInputs(Subgraph& graph, std::span<const int> arguments, Subgraph& callee) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const TfLiteTensor& from = graph.tensor(arguments[i]);
    FUSELITE_RETURN_IF_ERROR(callee.ResizeInput(callee.inputs()[i], Elements(from.dims)));
  }
  return Status();
}

// As LiteRT does it: it lets go of a callee when its operator has run, and prepares it for the next
// run, with which states and random sequences begin anew. Where it preserves all tensors it keeps
// the callee, and with it all of these.
Status Begin(Subgraph& callee) {
  if (!callee.host().preserve_all_tensors || TakesHandles(callee)) return callee.AllocateAnew();
  return callee.AllocateTensors();
}

}  // namespace

Subgraph& Callee(Subgraph& graph, const tflite::TfLiteNode& node, int which) {
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

Status ShapeCallee(Subgraph& graph, std::span<const int> arguments, Subgraph& callee) {
  FUSELITE_RETURN_IF_ERROR(ResizeInputs(graph, arguments, callee));
  return callee.AllocateTensors();
}

Status BeginOn(Subgraph& graph, std::span<const int> arguments, Subgraph& callee) {
  FUSELITE_RETURN_IF_ERROR(ResizeInputs(graph, arguments, callee));
  return Begin(callee);
}

bool SameShape(const TfLiteTensor& a, const TfLiteTensor& b) {
  return std::ranges::equal(Elements(a.dims), Elements(b.dims));
}

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

Result<bool> ReadCondition(const TfLiteTensor& tensor) {
  if (tensor.type != tflite::kTfLiteBool || tensor.bytes != 1) {
    return InvalidArgument("its condition is not one bool");
  }
  // A caller may write any byte; as a bool, one beyond 1 chooses a branch beyond the last.
  return tensor.data.raw_const[0] != 0;
}

bool TakesHandles(const Subgraph& callee) {
  return std::ranges::any_of(callee.inputs(), [&](int input) {
    return callee.tensor(input).type == tflite::kTfLiteResource;
  });
}

Status RunOn(const std::vector<Value>& arguments, Subgraph& callee, Call call) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    FUSELITE_RETURN_IF_ERROR(callee.ResizeInput(callee.inputs()[i], arguments[i].dims));
  }
  if (call == Call::kBegins || !callee.ready()) FUSELITE_RETURN_IF_ERROR(Begin(callee));
  for (size_t i = 0; i < arguments.size(); ++i) {
    FUSELITE_RETURN_IF_ERROR(Put(arguments[i], callee, callee.tensor(callee.inputs()[i])));
  }
  return callee.Invoke();
}

std::vector<Value> CopyAll(Subgraph& graph, std::span<const int> tensors) {
  std::vector<Value> values;
  for (int index : tensors) values.push_back(Copy(graph.tensor(index)));
  return values;
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
    FUSELITE_RETURN_IF_ERROR(Put(values[i], graph, tensor));
  }
  return Status();
}

}  // namespace fuselite::interpreter
