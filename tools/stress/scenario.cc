#include "tools/stress/scenario.h"

#include <algorithm>

#include "runtime/tflite/builtin_codes.h"
#include "tools/inputs/tensors.h"

namespace fuselite::tools {
namespace {

// The inputs' shapes with another first dimension.
InputRequest WithBatch(const interpreter::Model& model, int batch) {
  InputRequest request;
  if (batch == 0 || model.subgraphs.empty()) return request;
  const interpreter::ModelSubgraph& graph = model.subgraphs.front();
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Shape& shape = graph.tensors[graph.inputs[i]].shape;
    InputLayer layer{.name = "", .place = static_cast<int>(i), .has_shape = true};
    layer.shape.assign(shape.dims().begin(), shape.dims().end());
    if (!layer.shape.empty()) layer.shape.front() = batch;
    request.layers.push_back(std::move(layer));
  }
  return request;
}

Result<Outputs> RunAndCopy(const Session& session, uint64_t seed) {
  FUSELITE_RETURN_IF_ERROR(RunSubject(session, seed).status());
  Outputs outputs;
  for (size_t i = 0; i < session.interpreter->outputs().size(); ++i) {
    FUSELITE_ASSIGN_OR_RETURN(Array output,
                              CopyTensor(session.interpreter->output(static_cast<int>(i))));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace

Result<Session> OpenSubject(const StressContext& context, int batch) {
  return OpenSession(context.model, HostOf(context.options), {.fuselite = &context.options},
                     WithBatch(*context.model, batch));
}

bool HasResourceVariables(const interpreter::Model& model) {
  return std::ranges::any_of(model.subgraphs, [](const interpreter::ModelSubgraph& graph) {
    return std::ranges::count(graph.operators, tflite::kTfLiteBuiltinVarHandle,
                              &interpreter::ModelOperator::builtin_code) > 0;
  });
}

Status Restart(const StressContext& context, Session& session) {
  if (!HasResourceVariables(*context.model)) return Status();
  FUSELITE_ASSIGN_OR_RETURN(Session fresh, OpenSubject(context));
  session.interpreter.reset();  // its delegate outlives it
  session = std::move(fresh);
  return Status();
}

Status PrepareRun(const Session& session, uint64_t seed) {
  FUSELITE_RETURN_IF_ERROR(FillRandom(*session.interpreter, seed));
  session.interpreter->ResetVariables();
  return Status();
}

std::string OutputBytes(const Session& session) {
  std::string bytes;
  for (size_t i = 0; i < session.interpreter->outputs().size(); ++i) {
    const interpreter::TensorView output = session.interpreter->output(static_cast<int>(i));
    bytes.append(static_cast<const char*>(output.data), output.bytes);
  }
  return bytes;
}

Result<std::string> RunSubject(const Session& session, uint64_t seed) {
  FUSELITE_RETURN_IF_ERROR(PrepareRun(session, seed));
  FUSELITE_RETURN_IF_ERROR(session.interpreter->Invoke());
  return OutputBytes(session);
}

Result<std::string> RunAgain(const StressContext& context, Session& session) {
  FUSELITE_RETURN_IF_ERROR(Restart(context, session));
  return RunSubject(session, context.seed);
}

Result<std::string> ExpectedOutputs(const StressContext& context, int batch) {
  FUSELITE_ASSIGN_OR_RETURN(const Session session, OpenSubject(context, batch));
  return RunSubject(session, context.seed);
}

Status CheckOutputs(const Result<std::string>& actual, const std::string& expected,
                    std::string_view when) {
  if (!actual.ok()) return actual.status().In(std::string(when));
  if (*actual != expected) return Internal(when, ": the outputs differ");
  return Status();
}

Result<Outputs> FreshOutputs(const StressContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const Session session, OpenSubject(context));
  return RunAndCopy(session, context.seed);
}

Result<Outputs> ReferenceOutputs(const StressContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const Session session,
                            OpenSession(context.model, HostOf(context.options), {}));
  return RunAndCopy(session, context.seed);
}

Status CheckNear(const StressContext& context, const Outputs& actual, const Outputs& expected) {
  const double part = AllowedPart(*context.model, context.options.precision);
  for (size_t i = 0; i < expected.size(); ++i) {
    const Difference difference = Compare(actual[i], expected[i]);
    const double allowed = DefaultTolerance(expected[i].type, difference.range, part);
    if (!(difference.max <= allowed)) {
      return Internal("output ", i, " differs by ", difference.max, ", allowed ", allowed);
    }
  }
  return Status();
}

}  // namespace fuselite::tools
