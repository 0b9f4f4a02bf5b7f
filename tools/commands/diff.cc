// fuselite diff: how far the delegate's results are from those of the reference kernels.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <sstream>

#include "runtime/support/printable.h"
#include "runtime/support/text_table.h"
#include "tools/commands/commands.h"
#include "tools/common/progress.h"
#include "tools/common/session.h"
#include "tools/common/validators.h"
#include "tools/inputs/tensors.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

using ModelPtr = std::shared_ptr<const interpreter::Model>;

// Inner layers pass their errors on: in MobileNetV2 one is 1.1e-5 of its range off while the output
// is well within its bound.
constexpr double kLayerAllowance = 10;

struct Arguments {
  std::string model, signature;
  std::vector<std::string> inputs;
  InputLayerFlags layer_flags;
  uint64_t seed = 0;
  int runs = 1;
  std::optional<double> tolerance;
  bool layers = false;
  std::string format = "text";
  DelegateFlags delegate;
};

void RunOnce(const Session& session, uint64_t seed) {
  Check(session.inputs.Fill(*session.interpreter, seed));
  session.interpreter->ResetVariables();
  Check(session.interpreter->Invoke());
}

InputRequest RequestOf(const Arguments& arguments) {
  return {CheckUsage(ParseInputLayers(arguments.layer_flags)), arguments.inputs};
}

// `part`: AllowedPart of the model.
double Tolerance(const Arguments& arguments, double part, DataType type,
                 const Difference& difference) {
  const double allowance = arguments.layers && part == kFloatPart ? kLayerAllowance : 1;
  return arguments.tolerance.value_or(allowance * DefaultTolerance(type, difference.range, part));
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

// How far the reference's own output `place` moves when its inputs move by some roundings: in
// models that quantize activations at run time a rounding decides the next step of a row, and what
// no kernel of LiteRT keeps is no fault of fuselite.
double Sensitivity(const Session& reference, uint64_t seed, int place, const Array& expected) {
  constexpr int kTrials = 3;
  constexpr double kCondition = 4;
  double largest = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Check(reference.inputs.Fill(*reference.interpreter, seed));
    PerturbInputs(*reference.interpreter, seed + static_cast<uint64_t>(trial));
    reference.interpreter->ResetVariables();
    Check(reference.interpreter->Invoke());
    const Array moved = Check(CopyTensor(reference.interpreter->output(place)));
    largest = std::max(largest, Compare(moved, expected).max);
  }
  return kCondition * largest;
}

// One output of one run.
struct Outcome {
  int run;
  std::string output, type;
  Difference difference;
  double allowed;
  bool within() const { return difference.max <= allowed; }
};

// Asks for the sensitivity of outputs that are beyond their bound: `outcomes` are those of the run
// that `reference` has just made, in order.
void AllowForSensitivity(const Session& reference, uint64_t seed, std::span<Outcome> outcomes) {
  std::vector<Array> expected;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    expected.push_back(Check(CopyTensor(reference.interpreter->output(static_cast<int>(i)))));
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].within()) continue;
    outcomes[i].allowed = std::max(outcomes[i].allowed,
                                   Sensitivity(reference, seed, static_cast<int>(i), expected[i]));
  }
}

std::vector<Outcome> CompareOutputs(const ModelPtr& model, const Arguments& arguments,
                                    const partitioner::Options& options) {
  const Session reference =
      Check(OpenSession(model, HostOf(options), {}, RequestOf(arguments), arguments.signature),
            arguments.model);
  const Session fuselite =
      Check(OpenSession(model, HostOf(options), CheckUsage(arguments.delegate.Create(options)),
                        RequestOf(arguments), arguments.signature),
            arguments.model);
  const double part = AllowedPart(*model, options.precision);
  Progress progress("comparing");
  std::vector<Outcome> outcomes;
  for (int run = 0; run < arguments.runs; ++run) {
    progress.Update(static_cast<double>(run) / arguments.runs);
    const uint64_t seed = arguments.seed + static_cast<uint64_t>(run);
    RunOnce(reference, seed);
    RunOnce(fuselite, seed);
    for (size_t i = 0; i < reference.interpreter->outputs().size(); ++i) {
      const int place = static_cast<int>(i);
      const interpreter::TensorView tensor = reference.interpreter->output(place);
      const Difference difference = Compare(Check(CopyTensor(fuselite.interpreter->output(place))),
                                            Check(CopyTensor(tensor)));
      outcomes.push_back({run, ShortName(tensor.name), std::string(DataTypeName(tensor.type)),
                          difference, Tolerance(arguments, part, tensor.type, difference)});
    }
    if (!arguments.tolerance && part > kFloatPart) {
      const size_t outputs = reference.interpreter->outputs().size();
      AllowForSensitivity(reference, seed, std::span(outcomes).last(outputs));
    }
  }
  return outcomes;
}

void PrintText(const std::vector<Outcome>& outcomes) {
  TextTable table(
      {"run", "output", "type", "max", "mean", "std dev", "range", "allowed", "verdict"});
  for (const Outcome& outcome : outcomes) {
    const Difference& difference = outcome.difference;
    table.AddRow({std::to_string(outcome.run), outcome.output, outcome.type, Number(difference.max),
                  Number(difference.mean), Number(difference.deviation), Number(difference.range),
                  Number(outcome.allowed),
                  outcome.within()        ? "within"
                  : difference.same_shape ? "beyond"
                                          : "other shape"});
  }
  table.Print(std::cout);
}

void WarnOfNaNs(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) {
    if (!outcome.difference.is_nan) continue;
    std::cerr << "fuselite: output " << outcome.output << " is NaN throughout in run "
              << outcome.run << ": nothing was compared\n";
  }
}

// An infinite difference is null.
void PrintJson(const std::vector<Outcome>& outcomes, const std::string& first_layer) {
  using Json = nlohmann::ordered_json;
  Json json = {{"outputs", Json::array()}};
  for (const Outcome& outcome : outcomes) {
    json["outputs"].push_back({{"run", outcome.run},
                               {"output", outcome.output},
                               {"dtype", outcome.type},
                               {"max", outcome.difference.max},
                               {"mean", outcome.difference.mean},
                               {"allowed", outcome.allowed},
                               {"within", outcome.within()}});
  }
  if (!first_layer.empty()) json["first_layer"] = first_layer;
  std::cout << json.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
}

// The subgraph that is compared.
int MainSubgraph(const interpreter::Model& model, const Arguments& arguments) {
  const auto signature =
      std::ranges::find(model.signatures, arguments.signature, &interpreter::Signature::key);
  const bool named = !arguments.signature.empty() && signature != model.signatures.end();
  return named ? signature->subgraph : 0;
}

// The model with these tensors of the main graph as its outputs: what is observed is computed and
// stored, so the tensors before them are too.
ModelPtr WithOutputs(const ModelPtr& model, const Arguments& arguments, std::vector<int> outputs) {
  auto changed = std::make_shared<interpreter::Model>(*model);
  const int main = MainSubgraph(*model, arguments);
  changed->subgraphs[main].outputs = std::move(outputs);
  changed->signatures = {{arguments.signature, main, {}, {}}};
  return changed;
}

// Numeric tensors that operators make, in running order.
std::vector<int> ComputedTensors(const interpreter::Model& model, const Arguments& arguments) {
  const interpreter::ModelSubgraph& graph = model.subgraphs[MainSubgraph(model, arguments)];
  std::vector<int> tensors;
  for (const interpreter::ModelOperator& op : graph.operators) {
    for (int tensor : op.outputs) {
      if (tensor >= 0 && BitWidth(graph.tensors[tensor].type) > 0) tensors.push_back(tensor);
    }
  }
  return tensors;
}

std::string MakerOf(const interpreter::Model& model, const Arguments& arguments, int tensor) {
  const auto& operators = model.subgraphs[MainSubgraph(model, arguments)].operators;
  for (size_t i = 0; i < operators.size(); ++i) {
    if (std::ranges::count(operators[i].outputs, tensor) > 0) {
      return "node " + std::to_string(i) + " " +
             OneLine(interpreter::Model::OperatorName(operators[i]));
    }
  }
  return "no node";
}

// What the reference kernels give for `tensors`.
std::vector<Array> ReferenceValues(const ModelPtr& model, const Arguments& arguments,
                                   const partitioner::Options& options,
                                   const std::vector<int>& tensors) {
  const Session session = Check(OpenSession(WithOutputs(model, arguments, tensors), HostOf(options),
                                            {}, RequestOf(arguments), arguments.signature));
  RunOnce(session, arguments.seed);
  std::vector<Array> values;
  for (size_t i = 0; i < tensors.size(); ++i) {
    values.push_back(Check(CopyTensor(session.interpreter->output(static_cast<int>(i)))));
  }
  return values;
}

// Compares `tensors`, all observed at once; says which is the first one beyond its tolerance, ""
// where none is.
std::string FindFirst(const ModelPtr& model, const Arguments& arguments,
                      const partitioner::Options& options, std::span<const int> tensors,
                      std::span<const Array> expected) {
  const Session session = Check(OpenSession(
      WithOutputs(model, arguments, {tensors.begin(), tensors.end()}), HostOf(options),
      CheckUsage(arguments.delegate.Create(options)), RequestOf(arguments), arguments.signature));
  RunOnce(session, arguments.seed);
  const double part = AllowedPart(*model, options.precision);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const interpreter::TensorView tensor = session.interpreter->output(static_cast<int>(i));
    const Difference difference = Compare(Check(CopyTensor(tensor)), expected[i]);
    const double allowed = Tolerance(arguments, part, tensor.type, difference);
    if (difference.max <= allowed) continue;
    std::ostringstream text;
    text << "first difference beyond tolerance: tensor " << tensors[i] << " '"
         << ShortName(tensor.name) << "' of " << MakerOf(*model, arguments, tensors[i]) << ": max "
         << Number(difference.max) << ", mean " << Number(difference.mean) << ", allowed "
         << Number(allowed);
    return std::move(text).str();
  }
  return "";
}

// First with every tensor observed, where nothing is fused; then one at a time, which leaves the
// steps before it as they are. The reference runs once: it takes a hundred times as long.
std::string FindFirstLayer(const ModelPtr& model, const Arguments& arguments,
                           const partitioner::Options& options) {
  const std::vector<int> tensors = ComputedTensors(*model, arguments);
  const std::vector<Array> expected = ReferenceValues(model, arguments, options, tensors);
  Progress progress("looking at fused layers");
  std::string found = FindFirst(model, arguments, options, tensors, expected);
  for (size_t i = 0; i < tensors.size() && found.empty(); ++i) {
    progress.Update(static_cast<double>(i) / static_cast<double>(tensors.size()));
    const std::span<const int> one(&tensors[i], 1);
    found = FindFirst(model, arguments, options, one, {&expected[i], 1});
  }
  return found;
}

void Diff(const Arguments& arguments) {
  const partitioner::Options options = CheckUsage(arguments.delegate.Parse());
  const ModelPtr model = Check(OpenModel(arguments.model));
  const std::vector<Outcome> outcomes = CompareOutputs(model, arguments, options);
  const bool text = arguments.format == "text";
  if (text) PrintText(outcomes);
  std::string first_layer;
  if (arguments.layers) {
    first_layer = FindFirstLayer(model, arguments, options);
    if (text) {
      std::cout << (first_layer.empty() ? "no tensor differs beyond tolerance" : first_layer)
                << '\n';
    }
  }
  if (!text) PrintJson(outcomes, first_layer);
  WarnOfNaNs(outcomes);
  if (!first_layer.empty() || !std::ranges::all_of(outcomes, &Outcome::within)) {
    throw CommandError(arguments.model + ": differs beyond the tolerance");
  }
}

}  // namespace

void AddDiffCommand(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("diff", "Compare fuselite with the reference kernels; exit 1 past bounds");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("model", arguments->model, "A .tflite file, or zoo:NAME")->required();
  command->add_option("--signature", arguments->signature,
                      "Key of the signature to compare; else the first subgraph");
  command->add_option("-i,--input", arguments->inputs, kInputHelp);
  command->add_option("--seed", arguments->seed, "Of random inputs")
      ->check(WholeNumber())
      ->capture_default_str();
  command->add_option("--runs", arguments->runs, "Comparisons, each with the next seed")
      ->check(AtLeast(1))
      ->capture_default_str();
  command
      ->add_option(
          "--tolerance", arguments->tolerance,
          "Greatest absolute difference; else 0 for integers, 1e-5 of a float's range (1e-4 "
          "with --layers), 0.02 of it in models with dynamic-range operators, or what the "
          "reference itself moves "
          "by when its inputs do by 2^-20")
      ->check(AtLeast(0));
  command->add_flag("--layers", arguments->layers, "Find the first tensor that differs");
  arguments->layer_flags.AddTo(*command);
  command->add_option("--format", arguments->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  arguments->delegate.AddTo(*command);
  command->callback([arguments] { Diff(*arguments); });
}

}  // namespace fuselite::tools
