#include <map>
#include <set>
#include <sstream>

#include "partitioner/report/explanation.h"

namespace fuselite::partitioner {
namespace {

// Text inside a quoted string of Graphviz; \n starts a new line.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return escaped;
}

class DotGraph {
 public:
  DotGraph(const GraphReport& graph, size_t index, std::ostream& out)
      : graph_(graph), prefix_("g" + std::to_string(index)), out_(out) {}

  void Write() {
    for (size_t p = 0; p < graph_.partitions.size(); ++p) WritePartition(p);
    for (const Verdict& verdict : graph_.verdicts) {
      if (!vertex_.contains(verdict.host_node)) WriteHostNode(verdict);
    }
    WriteEdges();
  }

 private:
  void WritePartition(size_t p) {
    const std::string cluster = prefix_ + "p" + std::to_string(p);
    out_ << "  subgraph cluster_" << cluster << " {\n    label=\"partition " << p << "\";\n";
    const std::vector<fusion::StepReport>& steps = graph_.partitions[p].report.steps;
    for (size_t s = 0; s < steps.size(); ++s) {
      const std::string name = cluster + "s" + std::to_string(s);
      out_ << "    " << name << " [shape=box, label=\"" << Escaped(steps[s].ops) << "\\n"
           << Escaped(steps[s].kernel) << "\\n"
           << Escaped(steps[s].output_shape) << "\"];\n";
      for (int node : steps[s].host_nodes) vertex_[node] = name;
    }
    out_ << "  }\n";
  }

  // Writes a node that the host runs, or one that was taken and then needed no step of its own.
  void WriteHostNode(const Verdict& verdict) {
    const std::string name = prefix_ + "n" + std::to_string(verdict.host_node);
    out_ << "  " << name << " [shape=ellipse, style=" << (verdict.claimed ? "dashed" : "filled")
         << ", label=\"" << Escaped(verdict.op) << "\\n"
         << Escaped(verdict.claimed ? std::string("no step of its own") : verdict.reason)
         << "\"];\n";
    vertex_[verdict.host_node] = name;
  }

  void WriteEdges() {
    std::map<int, std::string> maker;
    std::set<std::pair<std::string, std::string>> edges;
    for (const Verdict& verdict : graph_.verdicts) {
      const std::string& to = vertex_[verdict.host_node];
      for (int tensor : verdict.inputs) {
        const auto from = maker.find(tensor);
        if (from != maker.end() && from->second != to) edges.emplace(from->second, to);
      }
      for (int tensor : verdict.outputs) maker[tensor] = to;
    }
    for (const auto& [from, to] : edges) out_ << "  " << from << " -> " << to << ";\n";
  }

  const GraphReport& graph_;
  const std::string prefix_;
  std::ostream& out_;
  std::map<int, std::string> vertex_;  // of a host node
};

}  // namespace

std::string ToDot(const Explanation& explanation) {
  std::ostringstream out;
  out << "digraph fuselite {\n  node [fontsize=10];\n";
  for (size_t i = 0; i < explanation.graphs.size(); ++i) {
    DotGraph(explanation.graphs[i], i, out).Write();
  }
  out << "}\n";
  return std::move(out).str();
}

}  // namespace fuselite::partitioner
