// fuselite analyze: what is in a model, as TensorFlow's Analyzer prints it, and who runs each
// operator.
#include <CLI/CLI.hpp>
#include <iostream>

#include "runtime/support/is_index.h"
#include "runtime/support/printable.h"
#include "runtime/support/text_table.h"
#include "tools/commands/commands.h"
#include "tools/common/session.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

using interpreter::Model;
using interpreter::ModelOperator;
using interpreter::ModelSubgraph;
using interpreter::ModelTensor;

struct Arguments {
  std::string model;
  DelegateFlags delegate;
};

// "T#0, T#1": -1 is an input left out.
std::string TensorList(const std::vector<int>& tensors) {
  std::string text;
  for (int tensor : tensors) {
    text += (text.empty() ? "T#" : ", T#") + std::to_string(tensor);
  }
  return text;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

std::string ShapeText(const ModelTensor& tensor) {
  std::string text;
  for (int32_t dim : tensor.shape.dims()) text += (text.empty() ? "" : ", ") + std::to_string(dim);
  return "[" + text + "]";
}

// Lists for each operator of a subgraph "fuselite", or why it is left to the host.
std::vector<std::string> Owners(const partitioner::Explanation& explanation, size_t graph,
                                size_t count) {
  std::vector<std::string> owners(count, "host");
  if (graph >= explanation.graphs.size()) return owners;
  for (const partitioner::Verdict& verdict : explanation.graphs[graph].verdicts) {
    if (!IsIndex(verdict.host_node, count)) continue;
    owners[static_cast<size_t>(verdict.host_node)] =
        verdict.claimed ? "fuselite" : "host: " + OneLine(verdict.reason);
  }
  return owners;
}

void PrintSummary(const Model& model, const std::string& path) {
  std::cout
      << "=== " << path << " ===\n\nYour TFLite model has '" << model.subgraphs.size()
      << "' subgraph(s). In the subgraph description below,\nT# represents the Tensor numbers. "
         "The last column says who runs the operator.\n\n";
}

void PrintOperators(const ModelSubgraph& graph, size_t index,
                    const std::vector<std::string>& owners) {
  std::cout << "Subgraph#" << index << ' ' << (graph.name.empty() ? "main" : OneLine(graph.name))
            << '(' << TensorList(graph.inputs) << ") -> [" << TensorList(graph.outputs) << "]\n";
  std::vector<std::string> lines;
  size_t width = 0;
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    const ModelOperator& op = graph.operators[i];
    lines.push_back("  Op#" + std::to_string(i) + ' ' + OneLine(Model::OperatorName(op)) + '(' +
                    TensorList(op.inputs) + ") -> [" + TensorList(op.outputs) + ']');
    width = std::max(width, lines.back().size());
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    std::cout << lines[i] << std::string(width - lines[i].size() + 2, ' ') << owners[i] << '\n';
  }
}

size_t PrintTensors(const ModelSubgraph& graph, size_t index) {
  std::cout << "\nTensors of Subgraph#" << index << '\n';
  size_t constants = 0;
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const ModelTensor& tensor = graph.tensors[i];
    std::cout << "  T#" << i << '(' << OneLine(tensor.name) << ") shape:" << ShapeText(tensor)
              << ", type:" << Upper(DataTypeName(tensor.type));
    if (tensor.constant) std::cout << " RO " << tensor.data.size() << " bytes";
    if (tensor.is_variable) std::cout << " variable";
    std::cout << '\n';
    constants += tensor.constant ? tensor.data.size() : 0;
  }
  std::cout << '\n';
  return constants;
}

void PrintSizes(const Model& model, size_t constants) {
  const auto line = [&](const char* what, size_t bytes) {
    const double share = model.file_bytes ? 100.0 * static_cast<double>(bytes) /
                                                static_cast<double>(model.file_bytes)
                                          : 0;
    std::cout << what << bytes << " bytes (" << Fixed(share, 2) << " %)\n";
  };
  std::cout << "---------------------------------------------------------------\n"
            << "              Model size: " << model.file_bytes << " bytes\n";
  line("    Non-data buffer size: ", model.file_bytes - std::min(model.file_bytes, constants));
  line("  Total data buffer size: ", constants);
}

void Analyze(const Arguments& arguments) {
  const partitioner::Options options = CheckUsage(arguments.delegate.Parse());
  const auto model = Check(OpenModel(arguments.model));
  const Session session = Check(OpenForExplanation(model, options), arguments.model);
  const partitioner::Explanation explanation = session.delegate->Explain();
  PrintSummary(*model, arguments.model);
  size_t constants = 0;
  for (size_t i = 0; i < model->subgraphs.size(); ++i) {
    const ModelSubgraph& graph = model->subgraphs[i];
    PrintOperators(graph, i, Owners(explanation, i, graph.operators.size()));
    constants += PrintTensors(graph, i);
  }
  PrintSizes(*model, constants);
}

}  // namespace

void AddAnalyzeCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "analyze", "List operators and tensors, as TensorFlow's Analyzer does, and who runs each");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("model", arguments->model, "A .tflite file, or zoo:NAME")->required();
  arguments->delegate.AddOptionsTo(*command);
  command->callback([arguments] { Analyze(*arguments); });
}

}  // namespace fuselite::tools
