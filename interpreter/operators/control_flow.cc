#include "interpreter/operators/control_flow.h"

#include <numeric>
#include <vector>

#include "interpreter/calls.h"
#include "interpreter/op_resolver.h"
#include "interpreter/operators/loop.h"
#include "interpreter/registration.h"
#include "interpreter/subgraph.h"
#include "runtime/support/is_index.h"

namespace fuselite::interpreter {
namespace {

using tflite::Elements;
using tflite::TfLiteNode;
using tflite::TfLiteTensor;

// The branches: IF's then and else, as many as STABLEHLO_CASE names. All take the inputs behind the
// first.
std::vector<int> Branches(const TfLiteNode& node, bool cases) {
  if (!cases) return {0, 1};
  const auto& params = *static_cast<const tflite::TfLiteStablehloCaseParams*>(node.builtin_data);
  std::vector<int> all(params.num_branches);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// An index out of range means the last branch.
Result<int> Chosen(const TfLiteTensor& selector, bool cases, int branches) {
  if (!cases) {
    FUSELITE_ASSIGN_OR_RETURN(const bool condition, ReadCondition(selector));
    return condition ? 0 : 1;
  }
  if (selector.type != tflite::kTfLiteInt32 || selector.bytes != sizeof(int32_t)) {
    return InvalidArgument("its index is not one int32");
  }
  const int index = selector.data.i32[0];
  return IsIndex(index, branches) ? index : branches - 1;
}

template <bool kCases>
Status PrepareBranches(Subgraph& graph, const TfLiteNode& node) {
  if (node.inputs->size < 1 || node.inputs->data[0] < 0) {
    return InvalidArgument("has nothing to choose by");
  }
  const auto arguments = Elements(node.inputs).subspan(1);
  const auto outputs = Elements(node.outputs);
  Subgraph& first = Callee(graph, node, 0);
  bool fixed = true;
  for (int which : Branches(node, kCases)) {
    Subgraph& branch = Callee(graph, node, which);
    FUSELITE_RETURN_IF_ERROR(CheckSignature(graph, arguments, outputs, branch, outputs.size()));
    FUSELITE_RETURN_IF_ERROR(ShapeCallee(graph, arguments, branch));
    fixed &= !branch.has_dynamic_tensors();
    for (size_t i = 0; fixed && i < outputs.size(); ++i) {
      fixed = SameShape(first.tensor(first.outputs()[i]), branch.tensor(branch.outputs()[i]));
    }
  }
  return ShapeOutputs(graph, outputs, first, fixed);
}

template <bool kCases>
Status InvokeBranch(Subgraph& graph, const TfLiteNode& node) {
  const auto count = static_cast<int>(Branches(node, kCases).size());
  FUSELITE_ASSIGN_OR_RETURN(const int chosen,
                            Chosen(graph.tensor(node.inputs->data[0]), kCases, count));
  Subgraph& branch = Callee(graph, node, chosen);
  FUSELITE_RETURN_IF_ERROR(
      RunOn(CopyAll(graph, Elements(node.inputs).subspan(1)), branch, Call::kBegins));
  return Store(graph, Elements(node.outputs), Results(branch));
}

Subgraph& Decomposition(Subgraph& graph, const TfLiteNode& node) {
  const auto& params =
      *static_cast<const tflite::TfLiteStablehloCompositeParams*>(node.builtin_data);
  return *graph.host().subgraphs[params.subgraph_index];
}

// A composite is what its decomposition gives, whatever it is called.
Status PrepareComposite(Subgraph& graph, const TfLiteNode& node) {
  const auto arguments = Elements(node.inputs);
  const auto outputs = Elements(node.outputs);
  Subgraph& body = Decomposition(graph, node);
  FUSELITE_RETURN_IF_ERROR(CheckSignature(graph, arguments, outputs, body, outputs.size()));
  FUSELITE_RETURN_IF_ERROR(ShapeCallee(graph, arguments, body));
  return ShapeOutputs(graph, outputs, body, !body.has_dynamic_tensors());
}

Status InvokeComposite(Subgraph& graph, const TfLiteNode& node) {
  Subgraph& body = Decomposition(graph, node);
  FUSELITE_RETURN_IF_ERROR(RunOn(CopyAll(graph, Elements(node.inputs)), body, Call::kBegins));
  return Store(graph, Elements(node.outputs), Results(body));
}

}  // namespace

void AddControlFlow(OpResolver& resolver) {
  resolver.AddBuiltin(tflite::kTfLiteBuiltinIf,
                      Registration<PrepareBranches<false>, InvokeBranch<false>>());
  resolver.AddBuiltin(tflite::kTfLiteBuiltinStablehloCase,
                      Registration<PrepareBranches<true>, InvokeBranch<true>>());
  resolver.AddBuiltin(tflite::kTfLiteBuiltinWhile, Registration<PrepareWhile, InvokeWhile>());
  resolver.AddBuiltin(tflite::kTfLiteBuiltinStablehloComposite,
                      Registration<PrepareComposite, InvokeComposite>());
}

}  // namespace fuselite::interpreter
