// fuselite explain: which nodes are taken, why the others are not, and what they become.
#include <CLI/CLI.hpp>
#include <iostream>

#include "runtime/write_file.h"
#include "tools/commands/commands.h"
#include "tools/common/session.h"

namespace fuselite::tools {
namespace {

struct Arguments {
  std::string model;
  std::string format = "text";
  std::string output;
  InputLayerFlags layer_flags;
  DelegateFlags delegate;
};

void Explain(const Arguments& arguments) {
  const partitioner::Options options = CheckUsage(arguments.delegate.Parse());
  const auto model = Check(OpenModel(arguments.model));
  const InputRequest inputs{CheckUsage(ParseInputLayers(arguments.layer_flags))};
  const Session session = Check(OpenForExplanation(model, options, inputs), arguments.model);
  if (!session.prepared.ok()) {
    std::cerr << "fuselite: " << arguments.model
              << ": not every partition could be compiled; --shape gives inputs their shapes: "
              << session.prepared.message() << '\n';
  }
  const partitioner::Explanation explanation = session.delegate->Explain();
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
  command->add_option("-o,--output", arguments->output, "The file to write; else standard output");
  arguments->layer_flags.AddShapesTo(*command);
  arguments->delegate.AddTo(*command);
  command->callback([arguments] { Explain(*arguments); });
}

}  // namespace fuselite::tools
