#include "interpreter/control_flow.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "interpreter/op_resolver.h"
#include "interpreter/registration.h"
#include "interpreter/subgraph.h"
#include "runtime/aligned_buffer.h"
#include "runtime/is_index.h"

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

// Copies the value into a tensor of its shape.
Status Put(const Value& value, Subgraph& graph, TfLiteTensor& to) {
  if (to.type == tflite::kTfLiteString) {
    FUSELITE_RETURN_IF_ERROR(graph.ResizeStrings(to, value.dims, value.bytes.size()));
  }
  if (to.bytes != value.bytes.size()) return Internal("a value of another size");
  std::ranges::copy(value.bytes, to.data.raw);
  return Status();
}

Status RunOn(const std::vector<Value>& arguments, Subgraph& callee) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    FUSELITE_RETURN_IF_ERROR(callee.ResizeInput(callee.inputs()[i], arguments[i].dims));
  }
  if (!callee.ready()) FUSELITE_RETURN_IF_ERROR(callee.AllocateTensors());
  for (size_t i = 0; i < arguments.size(); ++i) {
    FUSELITE_RETURN_IF_ERROR(Put(arguments[i], callee, callee.tensor(callee.inputs()[i])));
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
    FUSELITE_RETURN_IF_ERROR(Put(values[i], graph, tensor));
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
  // A caller may write any byte; as a bool, one beyond 1 chooses a branch beyond the last.
  return tensor.data.raw_const[0] != 0;
}

std::vector<Value> CopyAll(Subgraph& graph, std::span<const int> tensors) {
  std::vector<Value> values;
  for (int index : tensors) values.push_back(Copy(graph.tensor(index)));
  return values;
}

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
    FUSELITE_ASSIGN_OR_RETURN(const bool condition, Condition(selector));
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
    FUSELITE_RETURN_IF_ERROR(Shape(graph, arguments, branch));
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

// The values of a loop whose turns change no shape. The body reads them from one place and writes
// them to another, and the places change their roles: nothing is copied from turn to turn.
class LoopValues {
 public:
  // nullopt where a shape changes or memory is not the arena's: what a delegate or another operator
  // keeps to itself cannot be put elsewhere.
  static std::optional<LoopValues> Of(Subgraph& graph, std::span<const int> arguments,
                                      Subgraph& condition, Subgraph& body) {
    if (condition.has_dynamic_tensors() || body.has_dynamic_tensors()) return std::nullopt;
    LoopValues values(condition, body);
    std::set<int> written;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const TfLiteTensor& argument = graph.tensor(arguments[i]);
      const int in = body.inputs()[i], out = body.outputs()[i];
      const bool passes = in == out;
      if (!passes && std::ranges::count(body.inputs(), out) > 0) return std::nullopt;
      if (!passes && !written.insert(out).second) return std::nullopt;
      for (const TfLiteTensor* tensor :
           {&condition.tensor(condition.inputs()[i]), &body.tensor(in), &body.tensor(out)}) {
        const bool movable = tensor->allocation_type == tflite::kTfLiteArenaRw;
        if (!movable || tensor->bytes != argument.bytes || !SameShape(*tensor, argument)) {
          return std::nullopt;
        }
      }
      Place place{AlignedBuffer(argument.bytes), AlignedBuffer(passes ? 0 : argument.bytes),
                  passes};
      if (place.now.data() == nullptr || place.next.data() == nullptr) return std::nullopt;
      std::copy_n(argument.data.raw_const, argument.bytes, place.now.as<char>());
      values.places_.push_back(std::move(place));
    }
    return values;
  }

  Status Run() {
    const Moved moved(condition_, body_);
    while (true) {
      for (size_t i = 0; i < places_.size(); ++i) {
        condition_.tensor(condition_.inputs()[i]).data.raw = places_[i].now.as<char>();
      }
      FUSELITE_RETURN_IF_ERROR(condition_.Invoke());
      FUSELITE_ASSIGN_OR_RETURN(const bool more,
                                Condition(condition_.tensor(condition_.outputs()[0])));
      if (!more) return Status();
      for (size_t i = 0; i < places_.size(); ++i) {
        body_.tensor(body_.inputs()[i]).data.raw = places_[i].now.as<char>();
        if (places_[i].passes) continue;
        body_.tensor(body_.outputs()[i]).data.raw = places_[i].next.as<char>();
      }
      FUSELITE_RETURN_IF_ERROR(body_.Invoke());
      for (Place& place : places_) {
        if (!place.passes) std::swap(place.now, place.next);
      }
    }
  }

  Status StoreTo(Subgraph& graph, std::span<const int> outputs) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      TfLiteTensor& tensor = graph.tensor(outputs[i]);
      const TfLiteTensor& from = body_.tensor(body_.inputs()[i]);
      if (tensor.allocation_type == tflite::kTfLiteDynamic) {
        FUSELITE_RETURN_IF_ERROR(graph.ResizeTensor(tensor, Elements(from.dims)));
      }
      if (tensor.bytes != from.bytes) return Internal("a result of another size");
      std::copy_n(places_[i].now.as<const char>(), tensor.bytes, tensor.data.raw);
    }
    return Status();
  }

 private:
  struct Place {
    AlignedBuffer now, next;
    bool passes;  // the body gives what it was given
  };
  // Puts the subgraphs' tensors back where they were.
  class Moved {
   public:
    Moved(Subgraph& condition, Subgraph& body) {
      for (int tensor : condition.inputs()) Keep(condition.tensor(tensor));
      for (int tensor : body.inputs()) Keep(body.tensor(tensor));
      for (int tensor : body.outputs()) Keep(body.tensor(tensor));
    }
    Moved(const Moved&) = delete;
    Moved& operator=(const Moved&) = delete;
    ~Moved() {
      for (const auto& [tensor, data] : kept_) tensor->data.raw = data;
    }

   private:
    void Keep(TfLiteTensor& tensor) { kept_.emplace_back(&tensor, tensor.data.raw); }
    std::vector<std::pair<TfLiteTensor*, char*>> kept_;
  };

  LoopValues(Subgraph& condition, Subgraph& body) : condition_(condition), body_(body) {}

  Subgraph& condition_;
  Subgraph& body_;
  std::vector<Place> places_;
};

Status InvokeWhile(Subgraph& graph, const TfLiteNode& node) {
  Subgraph& condition = Callee(graph, node, 0);
  Subgraph& body = Callee(graph, node, 1);
  const auto arguments = Elements(node.inputs);
  const auto outputs = Elements(node.outputs);
  FUSELITE_RETURN_IF_ERROR(Shape(graph, arguments, condition));
  FUSELITE_RETURN_IF_ERROR(Shape(graph, arguments, body));
  if (auto moving = LoopValues::Of(graph, arguments, condition, body)) {
    FUSELITE_RETURN_IF_ERROR(moving->Run());
    return moving->StoreTo(graph, outputs);
  }
  std::vector<Value> values = CopyAll(graph, arguments);
  while (true) {
    FUSELITE_RETURN_IF_ERROR(RunOn(values, condition));
    FUSELITE_ASSIGN_OR_RETURN(const bool more, Condition(condition.tensor(condition.outputs()[0])));
    if (!more) return Store(graph, outputs, values);
    FUSELITE_RETURN_IF_ERROR(RunOn(values, body));
    values = Results(body);
  }
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
  FUSELITE_RETURN_IF_ERROR(Shape(graph, arguments, body));
  return ShapeOutputs(graph, outputs, body, !body.has_dynamic_tensors());
}

Status InvokeComposite(Subgraph& graph, const TfLiteNode& node) {
  Subgraph& body = Decomposition(graph, node);
  FUSELITE_RETURN_IF_ERROR(RunOn(CopyAll(graph, Elements(node.inputs)), body));
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
