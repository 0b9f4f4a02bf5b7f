#include "partitioner/explanation.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "runtime/status_join.h"
#include "runtime/text_table.h"
#include "runtime/write_file.h"

namespace fuselite::partitioner {
namespace {

// "1 step", "3 steps".
std::string Plural(size_t count, std::string_view noun) {
  return internal::Join(count, ' ', noun, count == 1 ? "" : "s");
}

// "0-4 7": ascending runs as ranges.
std::string Ranges(const std::vector<int>& numbers) {
  std::string text;
  for (size_t begin = 0, end; begin < numbers.size(); begin = end) {
    end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ' ';
    text += std::to_string(numbers[begin]);
    if (end - begin > 1) text += "-" + std::to_string(numbers[end - 1]);
  }
  return text;
}

// What several things have in common, said once: lines in the order of their first mention.
class Grouped {
 public:
  void Add(const std::string& what, std::string where) {
    const auto at = std::ranges::find(lines_, what, &Line::what);
    Line& line = at != lines_.end() ? *at : lines_.emplace_back(Line{what, {}});
    line.where.push_back(std::move(where));
  }
  // `place`: "step", "node".
  void Print(std::string_view heading, std::string_view place, std::ostream& out) const {
    if (lines_.empty()) return;
    out << "  " << heading << '\n';
    for (const Line& line : lines_) {
      const bool one =
          line.where.size() == 1 && line.where[0].find_first_of(" -") == line.where[0].npos;
      out << "    " << line.what << " (" << place << (one ? "" : "s");
      for (size_t i = 0; i < line.where.size(); ++i) out << (i ? ", " : " ") << line.where[i];
      out << ")\n";
    }
  }

 private:
  struct Line {
    std::string what;
    std::vector<std::string> where;
  };
  std::vector<Line> lines_;
};

// The partition of a host node; null where it is the host's.
const PartitionReport* PartitionOf(const GraphReport& graph, int node) {
  const auto at = std::ranges::find_if(graph.partitions, [&](const PartitionReport& partition) {
    return std::ranges::count(partition.nodes, node) > 0;
  });
  return at == graph.partitions.end() ? nullptr : &*at;
}

// The nodes that no table of steps will show.
void PrintNodes(const GraphReport& graph, std::ostream& out) {
  TextTable table({"node", "operator", "output", "verdict"});
  for (const Verdict& verdict : graph.verdicts) {
    const PartitionReport* partition = PartitionOf(graph, verdict.host_node);
    if (partition != nullptr && partition->compiled) continue;
    table.AddRow({std::to_string(verdict.host_node), verdict.op, verdict.shapes,
                  verdict.claimed ? "taken" : "left to the host: " + verdict.reason});
  }
  if (!table.empty()) table.Print(out, 2);
}

void PrintSteps(const fusion::CompileReport& report, std::ostream& out) {
  TextTable table(
      {"step", "nodes", "operators", "output", "kernel", "placed in", "multiply-adds", "weights"});
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const fusion::StepReport& step = report.steps[i];
    const auto weights = static_cast<double>(step.weight_bytes);
    table.AddRow({std::to_string(i), Ranges(step.host_nodes), step.ops, step.output_shape,
                  step.kernel, step.placement, Count(step.multiply_adds),
                  weights > 0 ? Bytes(weights) : "-"});
  }
  table.Print(out, 2);
}

void PrintCache(const CacheReport& cache, std::ostream& out) {
  out << "  cache: " << cache.found << " of " << cache.found + cache.made
      << " packed weights were in " << cache.file;
  if (!cache.problem.empty()) out << "; " << cache.problem;
  out << '\n';
}

void PrintPartition(const PartitionReport& partition, size_t index, std::ostream& out) {
  out << "partition " << index << ": " << Plural(partition.nodes.size(), "node") << " ("
      << Ranges(partition.nodes) << "), " << Count(partition.cost) << " multiply-adds";
  if (!partition.compiled) {
    out << ", not yet prepared by the host\n";
    return;
  }
  const fusion::CompileReport& report = partition.report;
  double weights = 0;
  for (const fusion::StepReport& step : report.steps) weights += step.weight_bytes;
  out << "; " << Plural(report.steps.size(), "step") << " on "
      << Plural(static_cast<size_t>(partition.threads), "thread") << ", weights " << Bytes(weights)
      << ", intermediate values in " << Bytes(static_cast<double>(report.arena_bytes))
      << (report.batch_parts > 1 ? " for each thread" : "") << ", compiled in "
      << Fixed(partition.compile_ms, 1) << " ms\n";
  if (report.batch_parts > 1) {
    out << "  a batch is computed in " << report.batch_parts
        << " parts, each of them by all steps, so that its values stay in the cache\n";
  }
  if (!partition.waiting_nodes.empty()) {
    out << "  shapes depend on values at " << Ranges(partition.waiting_nodes)
        << ": what follows is compiled while it runs, once for each shape\n";
  }
  if (!partition.host_run_nodes.empty()) {
    out << "  the host's kernel runs the subgraphs of " << Ranges(partition.host_run_nodes)
        << " inside the partition: the host does not say in which order they give their results\n";
  }
  PrintSteps(report, out);
  for (const CacheReport& cache : report.caches) PrintCache(cache, out);

  Grouped refusals, rewrites;
  for (size_t i = 0; i < report.steps.size(); ++i) {
    for (const fusion::Refusal& refusal : report.steps[i].refusals) {
      refusals.Add("not " + refusal.candidate + ": " + refusal.reason, std::to_string(i));
    }
  }
  for (const fusion::RewriteRecord& rewrite : report.rewrites) {
    rewrites.Add(rewrite.what, Ranges(rewrite.host_nodes));
  }
  refusals.Print("faster kernels that refused:", "step", out);
  rewrites.Print("rewrites:", "node", out);
}

}  // namespace

GraphReport WithReports(GraphReport graph) {
  for (PartitionReport& partition : graph.partitions) {
    for (const auto& segment : std::exchange(partition.segments, {})) partition.report += *segment;
  }
  return graph;
}

TextTable OpeningTimes(const Explanation& explanation) {
  double judging = 0, compiling = 0;
  fusion::CompileTimes sum;
  for (const GraphReport& graph : explanation.graphs) {
    judging += graph.judge_ms;
    for (const PartitionReport& partition : graph.partitions) {
      const fusion::CompileTimes& times = partition.report.times;
      compiling += partition.compile_ms;
      sum.rewrites += times.rewrites;
      sum.placement += times.placement;
      sum.packing += times.packing;
      sum.kernels += times.kernels;
      sum.memory += times.memory;
    }
  }
  const double known = sum.rewrites + sum.placement + sum.packing + sum.kernels + sum.memory;
  TextTable table({"opening", "ms"});
  const auto add = [&](std::string what, double ms) {
    table.AddRow({std::move(what), Fixed(ms, 2)});
  };
  add("import, verdicts, partitions", judging);
  add("rewrites", sum.rewrites);
  add("placement", sum.placement);
  add("packing of weights", sum.packing);
  add("emission of code", sum.kernels);
  add("memory plan", sum.memory);
  add("other", compiling - known);
  return table;
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
    out << Plural(graph.verdicts.size(), "node") << ", " << claimed << " taken, in "
        << Plural(graph.partitions.size(), "partition") << '\n';
    if (!graph.error.empty()) out << "error: " << graph.error << '\n';
    PrintNodes(graph, out);
    for (size_t p = 0; p < graph.partitions.size(); ++p) {
      PrintPartition(graph.partitions[p], p, out);
    }
  }
  return std::move(out).str();
}

Status WriteExplanation(const Explanation& explanation, const std::string& path) {
  const std::string text = path.ends_with(".json")  ? ToJson(explanation)
                           : path.ends_with(".dot") ? ToDot(explanation)
                                                    : ToText(explanation);
  return WriteFile(path, {text});
}

}  // namespace fuselite::partitioner
