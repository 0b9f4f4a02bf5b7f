#include "partitioner/explanation.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <sstream>

namespace fuselite::partitioner {
namespace {

using Row = std::vector<std::string>;

// Columns as wide as their widest cell; the last one is not padded.
void PrintTable(const std::vector<Row>& rows, std::ostream& out) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    out << ' ';
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      out << ' ' << std::left << std::setw(static_cast<int>(widths[i])) << row[i];
    }
    out << ' ' << row.back() << '\n';
  }
}

std::string NodeList(const std::vector<int>& nodes) {
  std::string text;
  for (int node : nodes) {
    if (!text.empty()) text += ' ';
    text += std::to_string(node);
  }
  return text;
}

// The partition of a host node; -1 where it is the host's.
int PartitionOf(const GraphReport& graph, int node) {
  for (size_t i = 0; i < graph.partitions.size(); ++i) {
    if (std::ranges::count(graph.partitions[i].nodes, node) > 0) return static_cast<int>(i);
  }
  return -1;
}

void PrintVerdicts(const GraphReport& graph, std::ostream& out) {
  std::vector<Row> rows = {{"node", "operator", "output", "verdict"}};
  for (const Verdict& verdict : graph.verdicts) {
    const std::string word =
        verdict.claimed ? "partition " + std::to_string(PartitionOf(graph, verdict.host_node))
                        : "left to the host: " + verdict.reason;
    rows.push_back({std::to_string(verdict.host_node), verdict.op, verdict.shapes, word});
  }
  PrintTable(rows, out);
}

std::string Candidates(const fusion::StepReport& step) {
  std::string text;
  for (const fusion::Refusal& refusal : step.refusals) {
    text += "      not " + refusal.candidate + ": " + refusal.reason + "\n";
  }
  return text;
}

void PrintPartition(const PartitionReport& partition, size_t index, std::ostream& out) {
  out << "partition " << index << ": " << partition.nodes.size() << " nodes, "
      << Amount(partition.cost) << " multiply-adds";
  if (!partition.compiled) {
    out << ", not yet prepared by the host\n";
    return;
  }
  const fusion::CompileReport& report = partition.report;
  out << ", " << report.steps.size() << " steps, " << partition.threads << " threads, arena "
      << Amount(static_cast<double>(report.arena_bytes)) << "B, compiled in " << std::fixed
      << std::setprecision(1) << partition.compile_ms << " ms\n";
  std::vector<Row> rows = {
      {"step", "kernel", "operators", "output", "placed in", "multiply-adds", "weights", "nodes"}};
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const fusion::StepReport& step = report.steps[i];
    rows.push_back({std::to_string(i), step.kernel, step.ops, step.output_shape, step.placement,
                    Amount(step.multiply_adds),
                    Amount(static_cast<double>(step.weight_bytes)) + "B",
                    NodeList(step.host_nodes)});
  }
  PrintTable(rows, out);
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const std::string refused = Candidates(report.steps[i]);
    if (!refused.empty()) out << "    step " << i << ":\n" << refused;
  }
  for (const std::string& rewrite : report.rewrites) out << "    rewrite: " << rewrite << '\n';
}

bool EndsWith(std::string_view text, std::string_view end) { return text.ends_with(end); }

}  // namespace

std::string Amount(double value) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  int unit = 0;
  while (value >= 1000 && unit < 4) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f%s" : "%.3g%s", value, kUnits[unit]);
  return text;
}

std::string ToText(const Explanation& explanation) {
  std::ostringstream out;
  const Options& options = explanation.options;
  out << "fuselite: isa " << IsaName(options.isa) << ", jit " << (options.jit ? "on" : "off")
      << ", fusion " << (options.fusion ? "on" : "off") << '\n';
  for (size_t i = 0; i < explanation.graphs.size(); ++i) {
    const GraphReport& graph = explanation.graphs[i];
    const auto claimed = std::ranges::count(graph.verdicts, true, &Verdict::claimed);
    if (explanation.graphs.size() > 1) out << "graph " << i << ": ";
    out << graph.verdicts.size() << " nodes, " << claimed << " taken, in "
        << graph.partitions.size()
        << (graph.partitions.size() == 1 ? " partition\n" : " partitions\n");
    if (!graph.error.empty()) out << "error: " << graph.error << '\n';
    PrintVerdicts(graph, out);
    for (size_t p = 0; p < graph.partitions.size(); ++p)
      PrintPartition(graph.partitions[p], p, out);
  }
  return std::move(out).str();
}

Status WriteExplanation(const Explanation& explanation, const std::string& path) {
  const std::string text = EndsWith(path, ".json")  ? ToJson(explanation)
                           : EndsWith(path, ".dot") ? ToDot(explanation)
                                                    : ToText(explanation);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return IoError("cannot write ", path);
  return Status();
}

}  // namespace fuselite::partitioner
