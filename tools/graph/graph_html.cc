#include "tools/graph/graph_html.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "runtime/support/is_index.h"
#include "tools/graph/graph_html_page.h"

namespace fuselite::tools {
namespace {

using Json = nlohmann::ordered_json;
using interpreter::Model;
using interpreter::ModelOperator;
using interpreter::ModelSubgraph;

std::string ShapesOf(const ModelSubgraph& graph, const std::vector<int>& tensors) {
  std::string text;
  for (int index : tensors) {
    if (index < 0) continue;
    const interpreter::ModelTensor& tensor = graph.tensors[static_cast<size_t>(index)];
    text += (text.empty() ? "" : ", ") + std::string(DataTypeName(tensor.type)) +
            tensor.shape.ToString();
  }
  return text;
}

class Picture {
 public:
  // `report`: null where the delegate was not shown the graph.
  Picture(const interpreter::ModelSubgraph& graph, const partitioner::GraphReport* report,
          const NodeTimesUs& times)
      : graph_(graph), times_(times), box_of_(graph_.operators.size(), -1) {
    if (report != nullptr) AddPartitions(*report);
    AddOperators(report);
    AddEnds();
    AddEdges();
  }

  Json boxes() const { return boxes_; }
  Json edges() const { return edges_; }

 private:
  // The steps of partitions: the operators of each become one box.
  void AddPartitions(const partitioner::GraphReport& report) {
    for (size_t p = 0; p < report.partitions.size(); ++p) {
      for (const fusion::StepReport& step : report.partitions[p].report.steps) {
        if (step.host_nodes.empty()) continue;
        const int box = AddBox({{"kind", "step"},
                                {"partition", p},
                                {"label", step.ops},
                                {"detail", step.kernel},
                                {"shape", step.output_shape},
                                {"nodes", step.host_nodes},
                                {"multiply_adds", step.multiply_adds},
                                {"weight_bytes", step.weight_bytes}});
        Time(box, step.host_nodes);
        for (int node : step.host_nodes) Assign(node, box);
      }
      // What became part of no step's list (it was folded into memory) belongs to the partition
      // still.
      for (int node : report.partitions[p].nodes) {
        if (Known(node) && box_of_[static_cast<size_t>(node)] < 0)
          AddOperator(node, "folded", p, "");
      }
    }
  }

  void AddOperators(const partitioner::GraphReport* report) {
    std::map<int, std::string> reasons;
    if (report != nullptr) {
      for (const partitioner::Verdict& verdict : report->verdicts) {
        reasons[verdict.host_node] = verdict.reason;
      }
    }
    for (size_t i = 0; i < graph_.operators.size(); ++i) {
      const int node = static_cast<int>(i);
      if (box_of_[i] < 0) AddOperator(node, "host", nullptr, reasons[node]);
    }
  }

  void AddOperator(int node, const char* kind, const Json& partition, const std::string& reason) {
    const ModelOperator& op = graph_.operators[static_cast<size_t>(node)];
    const int box = AddBox({{"kind", kind},
                            {"partition", partition},
                            {"label", Model::OperatorName(op)},
                            {"detail", reason},
                            {"shape", ShapesOf(graph_, op.outputs)},
                            {"nodes", {node}}});
    Time(box, {node});
    Assign(node, box);
  }

  void AddEnds() {
    for (int input : graph_.inputs) {
      maker_[input] =
          AddBox({{"kind", "end"}, {"label", "input"}, {"shape", ShapesOf(graph_, {input})}});
    }
  }

  void AddEdges() {
    for (size_t i = 0; i < graph_.operators.size(); ++i) {
      for (int output : graph_.operators[i].outputs) maker_[output] = box_of_[i];
    }
    std::set<std::pair<int, int>> edges;
    const auto add = [&](int tensor, int to) {
      const auto from = maker_.find(tensor);
      if (from != maker_.end() && from->second != to) edges.emplace(from->second, to);
    };
    for (size_t i = 0; i < graph_.operators.size(); ++i) {
      for (int input : graph_.operators[i].inputs) add(input, box_of_[i]);
    }
    for (int output : graph_.outputs) {
      add(output,
          AddBox({{"kind", "end"}, {"label", "output"}, {"shape", ShapesOf(graph_, {output})}}));
    }
    for (const auto& [from, to] : edges) edges_.push_back({from, to});
  }

  bool Known(int node) const { return IsIndex(node, box_of_.size()); }
  void Assign(int node, int box) {
    if (Known(node)) box_of_[static_cast<size_t>(node)] = box;
  }
  int AddBox(Json box) {
    boxes_.push_back(std::move(box));
    return static_cast<int>(boxes_.size()) - 1;
  }
  void Time(int box, const std::vector<int>& nodes) {
    const auto found = times_.find(*std::ranges::min_element(nodes));
    if (found != times_.end()) boxes_[static_cast<size_t>(box)]["us"] = found->second;
  }

  const ModelSubgraph& graph_;
  const NodeTimesUs& times_;
  Json boxes_ = Json::array(), edges_ = Json::array();
  std::vector<int> box_of_;   // of each operator
  std::map<int, int> maker_;  // the box that makes a tensor
};

// The text stands within <script>, which nothing in it may end.
std::string ScriptText(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  for (char c : text) c == '<' ? safe += "\\u003c" : safe += c;
  return safe;
}

}  // namespace

std::string GraphHtml(const Model& model, int subgraph, const std::string& title,
                      const partitioner::Explanation& explanation, const NodeTimesUs& times) {
  const Picture picture(model.subgraphs[static_cast<size_t>(subgraph)], explanation.Find(subgraph),
                        times);
  const Json data = {{"title", title},
                     {"isa", std::string(IsaName(explanation.options.isa))},
                     {"boxes", picture.boxes()},
                     {"edges", picture.edges()}};
  return kGraphPageHead + ScriptText(data) + kGraphPageTail;
}

}  // namespace fuselite::tools
