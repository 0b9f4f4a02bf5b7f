#include "tools/common/session.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "interpreter/op_resolver.h"
#include "runtime/support/environment.h"
#include "runtime/support/is_index.h"

namespace fuselite::tools {
namespace {

constexpr const char* kUseFuselite = "--use_fuselite";

// An operator that leaves its outputs' shapes as the file has them.
tflite::TfLiteRegistration Placeholder() {
  tflite::TfLiteRegistration registration{};
  registration.prepare = [](tflite::TfLiteContext*, tflite::TfLiteNode*) {
    return tflite::kTfLiteOk;
  };
  registration.invoke = [](tflite::TfLiteContext*, tflite::TfLiteNode*) {
    return tflite::kTfLiteError;
  };
  return registration;
}

interpreter::OpResolver Placeholders(const interpreter::Model& model) {
  interpreter::OpResolver resolver;
  for (const interpreter::ModelSubgraph& graph : model.subgraphs) {
    for (const interpreter::ModelOperator& op : graph.operators) {
      const int version = op.version;
      if (op.builtin_code == tflite::kTfLiteBuiltinCustom) {
        resolver.AddCustom(op.custom_name, Placeholder(), version, version);
      } else {
        resolver.AddBuiltin(op.builtin_code, Placeholder(), version, version);
      }
    }
  }
  return resolver;
}

Status ApplyOthers(std::vector<DelegatePtr> delegates, Session& session) {
  for (DelegatePtr& delegate : delegates) {
    session.others.push_back(std::move(delegate));
    FUSELITE_RETURN_IF_ERROR(session.interpreter->ApplyDelegate(session.others.back().get()));
  }
  return Status();
}

Status Apply(SessionDelegates delegates, Session& session) {
  FUSELITE_RETURN_IF_ERROR(ApplyOthers(std::move(delegates.before), session));
  if (delegates.fuselite != nullptr) {
    session.delegate = std::make_unique<partitioner::Delegate>(*delegates.fuselite);
    FUSELITE_RETURN_IF_ERROR(session.interpreter->ApplyDelegate(session.delegate->c_struct()));
  }
  return ApplyOthers(std::move(delegates.after), session);
}

Result<Session> Open(std::shared_ptr<const interpreter::Model> model, const HostOptions& options,
                     std::unique_ptr<interpreter::OpResolver> resolver, SessionDelegates delegates,
                     const InputRequest& inputs, const std::string& signature = "") {
  interpreter::InterpreterOptions host;
  host.num_threads = options.num_threads > 0 ? options.num_threads : -1;
  host.budget = options.budget;
  host.resolver = resolver.get();
  host.signature = signature;
  Session session;
  session.resolver = std::move(resolver);
  FUSELITE_ASSIGN_OR_RETURN(session.interpreter,
                            interpreter::Interpreter::Create(std::move(model), host));
  FUSELITE_ASSIGN_OR_RETURN(session.inputs, Inputs::Read(*session.interpreter, inputs));
  FUSELITE_ASSIGN_OR_RETURN(session.resized, session.inputs.Resize(*session.interpreter));
  FUSELITE_RETURN_IF_ERROR(Apply(std::move(delegates), session));
  session.prepared = session.interpreter->AllocateTensors();
  if (!session.prepared.ok() && !session.resized.empty()) {
    session.prepared = session.prepared.In(session.resized);
  }
  return session;
}

}  // namespace

void DelegateFlags::AddTo(CLI::App& to) {
  command = &to;
  AddFuseliteTo(to);
  for (const auto& provider : providers) provider->AddFlags(to);
}

void DelegateFlags::AddFuseliteTo(CLI::App& to) {
  to.add_flag(kUseFuselite, use_fuselite,
              "Apply fuselite, at this place among the delegates; false: do without it")
      ->group("Delegate")
      ->capture_default_str();
  AddOptionsTo(to);
}

void DelegateFlags::AddOptionsTo(CLI::App& to) {
  for (const partitioner::OptionRow& row : partitioner::OptionTable()) {
    const std::string name(row.name);
    // The second name is what TensorFlow Lite's tools would call it.
    std::string flags = "--" + name + ",--fuselite_" + name;
    if (name == "max_partitions") flags += ",--max_delegated_partitions";
    to.add_option_function<std::string>(
          flags, [this, name](const std::string& value) { values[name] = value; },
          std::string(row.doc) + " (" + std::string(row.default_value) + ")")
        ->group("Delegate");
  }
}

Result<SessionDelegates> DelegateFlags::Create(const partitioner::Options& options) const {
  std::vector<PlacedDelegate> others;
  for (const auto& provider : providers) {
    FUSELITE_ASSIGN_OR_RETURN(std::vector<PlacedDelegate> created, provider->Create(*command));
    std::ranges::move(created, std::back_inserter(others));
  }
  std::ranges::stable_sort(others, {}, &PlacedDelegate::place);
  SessionDelegates delegates;
  if (use_fuselite) delegates.fuselite = &options;
  const int own_place = FlagPlace(*command, kUseFuselite);
  for (PlacedDelegate& other : others) {
    auto& side = other.place < own_place ? delegates.before : delegates.after;
    side.push_back(std::move(other.delegate));
  }
  return delegates;
}

bool DelegateFlags::AskForAny() const {
  // Providers log the flags that were given, and nothing where none was.
  std::ostringstream asked;
  for (const auto& provider : providers) provider->LogParams(asked);
  return use_fuselite || !asked.view().empty();
}

Result<partitioner::Options> DelegateFlags::Parse() const {
  std::vector<partitioner::KeyValue> given(values.begin(), values.end());
  constexpr std::string_view kMaxMemory = "max_memory";
  const std::string machine = std::to_string(MachineMemory());
  const char* const environment = std::getenv(EnvironmentName(kMaxMemory).c_str());
  if (!values.contains(std::string(kMaxMemory)) && (environment == nullptr || *environment == 0)) {
    given.emplace_back(kMaxMemory, machine);
  }
  return partitioner::ParseOptions(given);
}

HostOptions HostOf(const partitioner::Options& options) {
  return {options.num_threads, options.budget};
}

Result<Session> OpenSession(std::shared_ptr<const interpreter::Model> model,
                            const HostOptions& host, SessionDelegates delegates,
                            const InputRequest& inputs, const std::string& signature) {
  FUSELITE_ASSIGN_OR_RETURN(Session session, Open(std::move(model), host, nullptr,
                                                  std::move(delegates), inputs, signature));
  FUSELITE_RETURN_IF_ERROR(session.prepared);
  return session;
}

Result<Session> OpenForExplanation(std::shared_ptr<const interpreter::Model> model,
                                   const partitioner::Options& options, const InputRequest& inputs,
                                   const std::string& signature) {
  auto resolver = std::make_unique<interpreter::OpResolver>(Placeholders(*model));
  return Open(std::move(model), HostOf(options), std::move(resolver), {.fuselite = &options},
              inputs, signature);
}

DelegateCounts CountDelegated(const partitioner::Delegate& delegate, int graph_index) {
  DelegateCounts counts;
  const partitioner::Explanation explanation = delegate.Explain();
  if (!IsIndex(graph_index, explanation.graphs.size())) return counts;
  const partitioner::GraphReport& graph = explanation.graphs[graph_index];
  counts.nodes = static_cast<int>(graph.verdicts.size());
  for (const partitioner::Verdict& verdict : graph.verdicts) counts.claimed += verdict.claimed;
  counts.partitions = static_cast<int>(graph.partitions.size());
  for (const partitioner::PartitionReport& partition : graph.partitions) {
    counts.steps += static_cast<int>(partition.report.steps.size());
  }
  return counts;
}

}  // namespace fuselite::tools
