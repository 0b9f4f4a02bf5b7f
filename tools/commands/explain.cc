// fuselite explain: which nodes are taken, why the others are not, and what they become.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <set>

#include "runtime/tflite_builtin_codes.h"
#include "runtime/write_file.h"
#include "tools/commands/commands.h"
#include "tools/common/graph_html.h"
#include "tools/common/progress.h"
#include "tools/common/session.h"
#include "tools/common/tensors.h"
#include "tools/common/validators.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

struct Arguments {
  std::string model, signature;
  std::string format = "text";
  std::string output, html;
  int runs = 0;  // to measure for the picture
  InputLayerFlags layer_flags;
  DelegateFlags delegate;
};

// What each operator and step takes, on average over runs with random inputs.
NodeTimesUs MeasureNodes(const std::shared_ptr<const interpreter::Model>& model,
                         const Arguments& arguments, partitioner::Options options) {
  options.keep_profile = true;
  const InputRequest inputs{CheckUsage(ParseInputLayers(arguments.layer_flags))};
  Session session =
      Check(OpenSession(model, HostOf(options), {.fuselite = &options}, inputs), arguments.model);
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
    if (event.subgraph != 0) continue;
    times[event.node] += static_cast<double>(event.duration_ns) / 1e3 / arguments.runs;
  }
  const std::shared_ptr<partitioner::DelegateState> state = session.delegate->state();
  const partitioner::Explanation explanation = state->Explain();
  session = Session();  // its kernels hand over what they measured
  const partitioner::ProfiledPartitions profile = state->Profile();
  for (const partitioner::PartitionReport& partition : explanation.graphs.front().partitions) {
    const auto steps = profile.find({0, partition.nodes.front()});
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

// The explanation of one signature, or of the first subgraph.
partitioner::Explanation ExplainOne(const std::shared_ptr<const interpreter::Model>& model,
                                    const Arguments& arguments, const partitioner::Options& options,
                                    const std::string& signature) {
  const InputRequest inputs{CheckUsage(ParseInputLayers(arguments.layer_flags))};
  const Session session =
      Check(OpenForExplanation(model, options, inputs, signature), arguments.model);
  if (!session.prepared.ok()) {
    std::cerr << "fuselite: " << arguments.model
              << ": not every partition could be compiled; --shape gives inputs their shapes: "
              << session.prepared.message() << '\n';
  }
  return session.delegate->Explain();
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
partitioner::Explanation ExplainAll(const std::shared_ptr<const interpreter::Model>& model,
                                    const Arguments& arguments,
                                    const partitioner::Options& options) {
  partitioner::Explanation all = ExplainOne(model, arguments, options, arguments.signature);
  // Shapes are given for one signature's inputs.
  const bool shaped = !arguments.layer_flags.named_shapes.empty();
  if (arguments.signature.empty() && !shaped) {
    for (const interpreter::Signature& signature : model->signatures) {
      const auto index = static_cast<size_t>(signature.subgraph);
      if (index == 0 || index >= all.graphs.size()) continue;
      all.graphs[index] = ExplainOne(model, arguments, options, signature.key).graphs[index];
    }
  }
  DropDecompositions(*model, all);
  return all;
}

void Explain(const Arguments& arguments) {
  const partitioner::Options options = CheckUsage(arguments.delegate.Parse());
  const auto model = Check(OpenModel(arguments.model));
  const partitioner::Explanation explanation = ExplainAll(model, arguments, options);
  if (!arguments.html.empty()) {
    NodeTimesUs times;
    if (arguments.runs > 0) times = MeasureNodes(model, arguments, options);
    Check(WriteFile(arguments.html, {GraphHtml(*model, arguments.model, explanation, times)}));
    return;
  }
  const std::string text = arguments.format == "json"  ? partitioner::ToJson(explanation)
                           : arguments.format == "dot" ? partitioner::ToDot(explanation)
                                                       : partitioner::ToText(explanation);
  if (arguments.output.empty()) {
    std::cout << text;
    return;
  }
  Check(WriteFile(arguments.output, {text}));
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
  command->add_option("-o,--output", arguments->output, "The file to write; else standard output");
  arguments->layer_flags.AddShapesTo(*command);
  command->add_option("--html", arguments->html,
                      "Write the graph as a picture for a browser: one file that needs no network");
  command
      ->add_option("--profile_runs", arguments->runs,
                   "With --html: run the model so often and show the times; 0: no times")
      ->check(AtLeast(0))
      ->capture_default_str();
  arguments->delegate.AddTo(*command);
  command->callback([arguments] { Explain(*arguments); });
}

}  // namespace fuselite::tools
