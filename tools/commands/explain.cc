// fuselite explain: which nodes are taken, why the others are not, and what they become.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <set>

#include "runtime/support/printable.h"
#include "runtime/support/write_file.h"
#include "runtime/tflite/builtin_codes.h"
#include "tools/commands/commands.h"
#include "tools/common/progress.h"
#include "tools/common/session.h"
#include "tools/common/validators.h"
#include "tools/graph/graph_html.h"
#include "tools/inputs/files.h"
#include "tools/inputs/tensors.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

struct Arguments {
  std::string model, signature;
  std::string format = "text";
  std::string output, html;
  bool writes_plan = true;  // beside the picture, or instead of it
  int runs = 0;             // to measure for the picture
  InputLayerFlags layer_flags;
  DelegateFlags delegate;
};

// What each operator and step takes, on average over runs with random inputs.
NodeTimesUs MeasureNodes(const std::shared_ptr<const interpreter::Model>& model,
                         const Arguments& arguments, partitioner::Options options) {
  options.keep_profile = true;
  const InputRequest inputs{CheckUsage(ParseInputLayers(arguments.layer_flags))};
  Session session = Check(
      OpenSession(model, HostOf(options), {.fuselite = &options}, inputs, arguments.signature),
      arguments.model);
  const int subgraph = session.interpreter->main_subgraph();
  Check(session.inputs.Fill(*session.interpreter, 0));
  Check(session.interpreter->Invoke());
  session.interpreter->SetProfiling(true);
  Progress progress("profiling");
  for (int run = 0; run < arguments.runs; ++run) {
    progress.Update(static_cast<double>(run) / arguments.runs);
    Check(session.interpreter->Invoke());
  }
  NodeTimesUs times;
  for (const interpreter::NodeEvent& event : session.interpreter->TakeEvents()) {
    if (event.subgraph != subgraph) continue;
    times[event.node] += static_cast<double>(event.duration_ns) / 1e3 / arguments.runs;
  }
  const std::shared_ptr<partitioner::DelegateState> state = session.delegate->state();
  const partitioner::Explanation explanation = state->Explain();
  session = Session();  // its kernels hand over what they measured
  const partitioner::ProfiledPartitions profile = state->profile().Times();
  const partitioner::GraphReport* const graph = explanation.Find(subgraph);
  if (graph == nullptr) return times;
  for (const partitioner::PartitionReport& partition : graph->partitions) {
    const auto steps = profile.find({subgraph, partition.nodes.front()});
    if (steps == profile.end() || steps->second.size() != partition.report.steps.size()) continue;
    for (size_t i = 0; i < steps->second.size(); ++i) {
      const std::vector<int>& nodes = partition.report.steps[i].host_nodes;
      const StepTimes& step = steps->second[i];
      if (nodes.empty() || step.runs == 0) continue;
      times[*std::ranges::min_element(nodes)] =
          static_cast<double>(step.wall_ns) / 1e3 / static_cast<double>(step.runs);
    }
  }
  return times;
}

// Whether the file leaves a dimension of some input open, and nobody has said what it is.
bool LeavesDimensions(const Session& session) {
  if (!session.resized.empty()) return false;
  for (size_t i = 0; i < session.interpreter->inputs().size(); ++i) {
    const interpreter::TensorView input = session.interpreter->input(static_cast<int>(i));
    if (std::ranges::count(input.shape_signature, -1) > 0) return true;
  }
  return false;
}

// Why the host could not prepare everything: what the delegate says of it, where it failed there.
// What failed before the host came to the delegate's partitions is the reason for theirs, too.
std::string WhyNotPrepared(const Session& session, partitioner::Explanation& explanation) {
  for (const partitioner::GraphReport& graph : explanation.graphs) {
    for (const partitioner::PartitionReport& partition : graph.partitions) {
      if (partition.error.empty()) continue;
      return session.resized + (session.resized.empty() ? "" : ": ") + partition.error;
    }
  }
  std::string reason(session.prepared.message());
  const auto graph = static_cast<size_t>(session.interpreter->main_subgraph());
  if (graph >= explanation.graphs.size()) return reason;
  for (partitioner::PartitionReport& partition : explanation.graphs[graph].partitions) {
    if (!partition.compiled) partition.error = reason;
  }
  return reason;
}

// What explain has to say: the explanation, and why the model cannot run as it is asked to. That
// is told behind the explanation, which shows where it comes from.
struct Answer {
  partitioner::Explanation explanation;
  int subgraph = 0;  // that of the signature, or the first one
  Status refusal;    // of the first signature that was refused
};

Answer ExplainSession(const Session& session, const Arguments& arguments) {
  Answer answer{session.delegate->Explain(), session.interpreter->main_subgraph(), {}};
  if (session.prepared.ok()) return answer;
  const std::string reason = arguments.model + ": some partitions could not be compiled: " +
                             WhyNotPrepared(session, answer.explanation);
  // Inputs of other shapes need no less than the smallest ones that the file's stand for; what else
  // these do not allow says nothing of the model.
  const bool of_budget = session.prepared.code() == StatusCode::kOverBudget;
  if (of_budget || !LeavesDimensions(session)) {
    answer.refusal = Status(session.prepared.code(), reason);
  } else {
    std::cerr << "fuselite: " << OneLine(reason) << "; --shape says how large an input is\n";
  }
  return answer;
}

// The explanation of one signature, or of the first subgraph.
Answer ExplainOne(const std::shared_ptr<const interpreter::Model>& model,
                  const Arguments& arguments, const partitioner::Options& options,
                  const InputRequest& inputs) {
  const Session session =
      Check(OpenForExplanation(model, options, inputs, arguments.signature), arguments.model);
  return ExplainSession(session, arguments);
}

// Whether the signature has an input of that name, a dimension of which the file leaves open.
bool LeavesOpen(const interpreter::Model& model, const interpreter::Signature& signature,
                const std::string& name) {
  const auto& tensors = model.subgraphs[signature.subgraph].tensors;
  return std::ranges::any_of(signature.inputs, [&](const interpreter::SignatureTensor& input) {
    const interpreter::ModelTensor& tensor = tensors[input.tensor];
    return (name == input.name || name == tensor.name) &&
           std::ranges::count(tensor.shape_signature, -1) > 0;
  });
}

// The explanation of another signature than the one that shapes are given for. Its inputs of the
// same names have these shapes, too, where they may.
Answer ExplainBeside(const std::shared_ptr<const interpreter::Model>& model,
                     const Arguments& arguments, const partitioner::Options& options,
                     InputRequest inputs, const interpreter::Signature& signature) {
  std::erase_if(inputs.layers, [&](const InputLayer& layer) {
    return layer.name.empty() || !LeavesOpen(*model, signature, layer.name);
  });
  Result<Session> session = OpenForExplanation(model, options, inputs, signature.key);
  const bool fits = session.ok() && session->prepared.ok();
  if (!fits && !inputs.layers.empty()) {
    session = OpenForExplanation(model, options, {}, signature.key);
  }
  return ExplainSession(Check(std::move(session), arguments.model), arguments);
}

// Leaves out the decompositions of composites where nobody but the delegate runs these.
void DropDecompositions(const interpreter::Model& model, partitioner::Explanation& explanation) {
  std::set<int> run;
  for (const interpreter::ModelSubgraph& graph : model.subgraphs) {
    for (const interpreter::ModelOperator& op : graph.operators) {
      if (op.builtin_code != tflite::kTfLiteBuiltinStablehloComposite) continue;
      run.insert(op.subgraphs.begin(), op.subgraphs.end());
    }
  }
  for (const partitioner::GraphReport& graph : explanation.graphs) {
    for (const partitioner::Verdict& verdict : graph.verdicts) {
      if (!verdict.claimed && verdict.op == "STABLEHLO_COMPOSITE") return;
    }
  }
  for (auto subgraph = run.rbegin(); subgraph != run.rend(); ++subgraph) {
    if (*subgraph == 0 || *subgraph >= static_cast<int>(explanation.graphs.size())) continue;
    explanation.graphs.erase(explanation.graphs.begin() + *subgraph);
  }
}

// Explains the signature that was asked for, else all of them: each is prepared by itself.
Answer ExplainAll(const std::shared_ptr<const interpreter::Model>& model,
                  const Arguments& arguments, const partitioner::Options& options) {
  const InputRequest inputs{CheckUsage(ParseInputLayers(arguments.layer_flags))};
  Answer all = ExplainOne(model, arguments, options, inputs);
  std::vector<partitioner::GraphReport>& graphs = all.explanation.graphs;
  if (arguments.signature.empty()) {
    for (const interpreter::Signature& signature : model->signatures) {
      const auto index = static_cast<size_t>(signature.subgraph);
      if (index == 0 || index >= graphs.size()) continue;
      Answer beside = ExplainBeside(model, arguments, options, inputs, signature);
      graphs[index] = std::move(beside.explanation.graphs[index]);
      if (all.refusal.ok()) all.refusal = std::move(beside.refusal);
    }
  }
  DropDecompositions(*model, all.explanation);
  return all;
}

// Writes the explanation where it was asked for.
void Write(const Arguments& arguments, const partitioner::Explanation& explanation) {
  const std::string text = arguments.format == "json"  ? partitioner::ToJson(explanation)
                           : arguments.format == "dot" ? partitioner::ToDot(explanation)
                                                       : partitioner::ToText(explanation);
  if (arguments.output.empty()) {
    std::cout << text << std::flush;
  } else {
    Check(WriteFile(arguments.output, {text}));
  }
}

void Explain(const Arguments& arguments) {
  if (arguments.runs > 0 && arguments.html.empty()) {
    throw CommandError(
        "--profile_runs: the times are shown in the picture; give its file by --html", 2);
  }
  CheckUsage(CheckDistinct({{"--output", arguments.output}, {"--html", arguments.html}}));
  const partitioner::Options options = CheckUsage(arguments.delegate.Parse());
  const auto model = Check(OpenModel(arguments.model));
  const auto [explanation, subgraph, refusal] = ExplainAll(model, arguments, options);
  if (arguments.writes_plan) Write(arguments, explanation);
  if (!arguments.html.empty()) {
    NodeTimesUs times;
    if (arguments.runs > 0 && refusal.ok()) times = MeasureNodes(model, arguments, options);
    Check(WriteFile(arguments.html,
                    {GraphHtml(*model, subgraph, arguments.model, explanation, times)}));
  }
  Check(refusal);
}

}  // namespace

void AddExplainCommand(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("explain", "Say which nodes are taken, why others are not, and the plan");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("model", arguments->model, "A .tflite file, or zoo:NAME")->required();
  command->add_option("--format", arguments->format, "text, json or dot (Graphviz)")
      ->check(CLI::IsMember({"text", "json", "dot"}))
      ->capture_default_str();
  command->add_option("--signature", arguments->signature,
                      "Key of the signature to prepare; else every one");
  command->add_option("-o,--output", arguments->output, "The file to write; else standard output")
      ->check(Names("file"));
  arguments->layer_flags.AddShapesTo(*command);
  command
      ->add_option("--html", arguments->html,
                   "Write the graph as a picture for a browser, one file that needs no network, "
                   "instead of the text; beside what --format or --output ask for")
      ->check(Names("file"));
  command
      ->add_option("--profile_runs", arguments->runs,
                   "With --html: run the model so often and show the times; 0: no times")
      ->check(AtLeast(0))
      ->capture_default_str();
  arguments->delegate.AddOptionsTo(*command);
  command->callback([arguments, command] {
    const bool asked = command->count("--format") + command->count("--output") > 0;
    arguments->writes_plan = arguments->html.empty() || asked;
    Explain(*arguments);
  });
}

}  // namespace fuselite::tools
