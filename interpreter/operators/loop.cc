#include "interpreter/operators/loop.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "interpreter/calls.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::interpreter {

using tflite::Elements;
using tflite::TfLiteNode;
using tflite::TfLiteTensor;

namespace {

// Whether a run of subgraph `from` may run `to`, by others than those in `seen`. No memory is asked
// for where it runs none at all, as most do.
bool Reaches(const Model& model, int from, int to, std::set<int>& seen) {
  return std::ranges::any_of(model.subgraphs[from].operators, [&](const ModelOperator& op) {
    return std::ranges::any_of(op.subgraphs, [&](int callee) {
      return callee == to || (seen.insert(callee).second && Reaches(model, callee, to, seen));
    });
  });
}

// Whether one is run by the other, too, which gives it shapes and memory of another call.
bool AreEntangled(Subgraph& graph, int condition, int body) {
  const Model& model = *graph.host().model;
  std::set<int> by_condition, by_body;
  return condition == body || Reaches(model, condition, body, by_condition) ||
         Reaches(model, body, condition, by_body);
}

// The values of a loop whose turns change no shape. The body reads them from one place and writes
// them to another, and the places change their roles: nothing is copied from turn to turn.
class LoopValues {
 public:
  // nullopt where a shape changes, where a turn begins anew, or where memory is not the arena's:
  // what a delegate or another operator keeps to itself cannot be put elsewhere.
  static std::optional<LoopValues> Of(Subgraph& graph, std::span<const int> arguments,
                                      Subgraph& condition, Subgraph& body) {
    if (condition.has_dynamic_tensors() || body.has_dynamic_tensors()) return std::nullopt;
    if (TakesHandles(body) && body.KeepsStates()) return std::nullopt;
    if (AreEntangled(graph, condition.index(), body.index())) return std::nullopt;
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
      FUSELITE_RETURN_IF_ERROR(body_.CheckCancelled());
      for (size_t i = 0; i < places_.size(); ++i) {
        condition_.tensor(condition_.inputs()[i]).data.raw = places_[i].now.as<char>();
      }
      FUSELITE_RETURN_IF_ERROR(condition_.Invoke());
      FUSELITE_ASSIGN_OR_RETURN(const bool more,
                                ReadCondition(condition_.tensor(condition_.outputs()[0])));
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

}  // namespace

Status PrepareWhile(Subgraph& graph, const TfLiteNode& node) {
  const auto arguments = Elements(node.inputs);
  const auto outputs = Elements(node.outputs);
  Subgraph& condition = Callee(graph, node, 0);
  Subgraph& body = Callee(graph, node, 1);
  if (arguments.size() != outputs.size()) return InvalidArgument("has other outputs than inputs");
  FUSELITE_RETURN_IF_ERROR(CheckSignature(graph, arguments, {}, condition, 1));
  FUSELITE_RETURN_IF_ERROR(CheckSignature(graph, arguments, outputs, body, outputs.size()));
  FUSELITE_RETURN_IF_ERROR(ShapeCallee(graph, arguments, condition));
  FUSELITE_RETURN_IF_ERROR(ShapeCallee(graph, arguments, body));
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
  const auto arguments = Elements(node.inputs);
  const auto outputs = Elements(node.outputs);
  FUSELITE_RETURN_IF_ERROR(BeginOn(graph, arguments, condition));
  FUSELITE_RETURN_IF_ERROR(BeginOn(graph, arguments, body));
  if (auto moving = LoopValues::Of(graph, arguments, condition, body)) {
    FUSELITE_RETURN_IF_ERROR(moving->Run());
    return moving->StoreTo(graph, outputs);
  }
  // Otherwise states last until the loop ends, or a turn is given other shapes.
  const Call turn = TakesHandles(body) ? Call::kBegins : Call::kGoesOn;
  std::vector<Value> values = CopyAll(graph, arguments);
  while (true) {
    FUSELITE_RETURN_IF_ERROR(graph.CheckCancelled());
    FUSELITE_RETURN_IF_ERROR(RunOn(values, condition, Call::kGoesOn));
    FUSELITE_ASSIGN_OR_RETURN(const bool more,
                              ReadCondition(condition.tensor(condition.outputs()[0])));
    if (!more) return Store(graph, outputs, values);
    FUSELITE_RETURN_IF_ERROR(RunOn(values, body, turn));
    values = Results(body);
  }
}

}  // namespace fuselite::interpreter
