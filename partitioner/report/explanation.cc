#include "partitioner/report/explanation.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "runtime/support/printable.h"
#include "runtime/support/status_join.h"
#include "runtime/support/text_table.h"
#include "runtime/support/write_file.h"

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

// "node 3", "nodes 3-5 7".
std::string Numbered(std::string_view noun, const std::vector<int>& numbers) {
  return internal::Join(noun, numbers.size() == 1 ? " " : "s ", Ranges(numbers));
}

const char* Are(const std::vector<int>& numbers) { return numbers.size() == 1 ? " is" : " are"; }

// What several things have in common, said once: lines in the order of their first mention.
class Grouped {
 public:
  void Add(const std::string& what, std::vector<int> where) {
    const auto at = std::ranges::find(lines_, what, &Line::what);
    Line& line = at != lines_.end() ? *at : lines_.emplace_back(Line{what, {}});
    line.where.insert(std::move(where));
  }
  // `place`: "step", "node".
  void Print(std::string_view heading, std::string_view place, std::ostream& out) const {
    if (lines_.empty()) return;
    out << "  " << heading << '\n';
    for (const Line& line : lines_) {
      const bool one = line.where.size() == 1 && line.where.begin()->size() == 1;
      out << "    " << OneLine(line.what) << " (" << place << (one ? " " : "s ")
          << Places(line.where) << ")\n";
    }
  }

 private:
  struct Line {
    std::string what;
    std::set<std::vector<int>> where;  // several numbers: they are concerned together
  };

  // "3-5, 7 9": places of one number as ranges, places of several apart.
  static std::string Places(const std::set<std::vector<int>>& where) {
    std::string text;
    std::vector<int> singles;
    const auto add = [&](const std::vector<int>& numbers) {
      if (!numbers.empty()) text += (text.empty() ? "" : ", ") + Ranges(numbers);
    };
    for (const std::vector<int>& place : where) {
      const bool follows = place.size() == 1 && !singles.empty() && place[0] == singles.back() + 1;
      if (!follows) add(std::exchange(singles, {}));
      if (place.size() == 1) {
        singles.push_back(place[0]);
      } else {
        add(place);
      }
    }
    add(singles);
    return text;
  }

  std::vector<Line> lines_;
};

// The partition of a host node; null where it is the host's.
const PartitionReport* PartitionOf(const GraphReport& graph, int node) {
  const auto at = std::ranges::find_if(graph.partitions, [&](const PartitionReport& partition) {
    return std::ranges::count(partition.nodes, node) > 0;
  });
  return at == graph.partitions.end() ? nullptr : &*at;
}

// Whether the host keeps all of several nodes for one reason.
bool HaveOneReason(const std::vector<Verdict>& verdicts) {
  return verdicts.size() > 1 && std::ranges::all_of(verdicts, [&](const Verdict& verdict) {
           return !verdict.claimed && verdict.reason == verdicts.front().reason;
         });
}

// "all 4 nodes (VAR_HANDLE, ASSIGN_VARIABLE) are left to the host: REASON".
void PrintOneReason(const std::vector<Verdict>& verdicts, std::ostream& out) {
  std::vector<std::string> operators;
  for (const Verdict& verdict : verdicts) {
    if (std::ranges::count(operators, verdict.op) == 0) operators.push_back(verdict.op);
  }
  out << "  all " << verdicts.size() << " nodes (";
  for (size_t i = 0; i < operators.size(); ++i) out << (i ? ", " : "") << OneLine(operators[i]);
  out << ") are left to the host: " << OneLine(verdicts.front().reason) << '\n';
}

// The nodes that no table of steps will show.
void PrintNodes(const GraphReport& graph, std::ostream& out) {
  if (HaveOneReason(graph.verdicts)) return PrintOneReason(graph.verdicts, out);
  TextTable table({"node", "operator", "output", "verdict"});
  for (const Verdict& verdict : graph.verdicts) {
    const PartitionReport* partition = PartitionOf(graph, verdict.host_node);
    const bool later =
        partition != nullptr && std::ranges::count(partition->later_nodes, verdict.host_node) > 0;
    if (partition != nullptr && partition->compiled && !later) continue;
    table.AddRow({std::to_string(verdict.host_node), verdict.op, verdict.shapes,
                  verdict.claimed ? "taken" : "left to the host: " + verdict.reason});
  }
  if (!table.empty()) table.Print(out, 2);
}

void PrintSteps(const fusion::CompileReport& report, std::ostream& out) {
  TextTable table(
      {"step", "nodes", "operators", "output", "kernel", "placed in", "multiply-adds", "weights"});
  const auto add = [&](std::string name, const fusion::StepReport& step) {
    const auto weights = static_cast<double>(step.weight_bytes);
    table.AddRow({std::move(name), Ranges(step.host_nodes), step.ops, step.output_shape,
                  step.kernel, step.placement, Count(step.multiply_adds),
                  weights > 0 ? Bytes(weights) : "-"});
  };
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const fusion::StepReport& step = report.steps[i];
    add(std::to_string(i), step);
    for (size_t k = 0; k < step.steps.size(); ++k) add(internal::Join(i, ".", k), step.steps[k]);
  }
  if (!table.empty()) table.Print(out, 2);
}

void PrintCache(const CacheReport& cache, std::ostream& out) {
  out << "  cache: " << cache.found << " of " << cache.found + cache.made
      << " packed weights were in " << cache.file;
  if (!cache.problem.empty()) out << "; " << cache.problem;
  out << '\n';
}

// What became of the partition as a whole, behind its nodes and their multiply-adds. `main`: it is
// of the graph that the model's callers run.
std::string OutcomeOf(const PartitionReport& partition, bool main) {
  if (!partition.error.empty()) return ", could not be compiled: " + OneLine(partition.error);
  if (!partition.compiled) return main ? ", not yet compiled" : ", compiled when it first runs";
  const fusion::CompileReport& report = partition.report;
  double weights = 0;
  for (const fusion::StepReport& step : report.steps) weights += step.weight_bytes;
  return internal::Join("; ", Plural(report.steps.size(), "step"), " on ",
                        Plural(static_cast<size_t>(partition.threads), "thread"), ", weights ",
                        Bytes(weights), ", intermediate values in ",
                        Bytes(static_cast<double>(report.arena_bytes)),
                        report.batch_parts > 1 ? " for each thread" : "", ", compiled in ",
                        Fixed(partition.compile_ms, 1), " ms");
}

// What the table of steps does not show of how the partition runs.
void PrintNotes(const PartitionReport& partition, std::ostream& out) {
  if (partition.report.batch_parts > 1) {
    out << "  a batch is computed in " << partition.report.batch_parts
        << " parts, each of them by all steps, so that its values stay in the cache\n";
  }
  if (!partition.waiting_nodes.empty()) {
    const std::vector<int>& later = partition.later_nodes;
    out << "  the shapes behind " << Numbered("node", partition.waiting_nodes)
        << " depend on values: "
        << (later.empty() ? "what follows is" : Numbered("node", later) + Are(later))
        << " compiled while the model runs, once for each shape\n";
  }
  if (!partition.host_run_nodes.empty()) {
    out << "  the host's kernel runs the subgraphs of "
        << Numbered("node", partition.host_run_nodes)
        << " inside the partition: the host does not say in which order they give their results\n";
  }
}

void PrintPartition(const PartitionReport& partition, size_t index, bool main, std::ostream& out) {
  out << "partition " << index << ": " << Plural(partition.nodes.size(), "node") << " ("
      << Ranges(partition.nodes) << "), " << Count(partition.cost) << " multiply-adds"
      << OutcomeOf(partition, main) << '\n';
  if (!partition.compiled) return;
  PrintNotes(partition, out);
  const fusion::CompileReport& report = partition.report;
  PrintSteps(report, out);
  for (const CacheReport& cache : report.caches) PrintCache(cache, out);

  Grouped refusals, rewrites;
  for (size_t i = 0; i < report.steps.size(); ++i) {
    for (const fusion::Refusal& refusal : report.steps[i].refusals) {
      refusals.Add(refusal.candidate + ": " + refusal.reason, {static_cast<int>(i)});
    }
  }
  for (const fusion::RewriteRecord& rewrite : report.rewrites) {
    rewrites.Add(rewrite.what, rewrite.host_nodes);
  }
  refusals.Print("faster kernels that could not be used:", "step", out);
  rewrites.Print("rewrites:", "node", out);
  const std::vector<int> rest = NodesWithoutStep(partition);
  if (!rest.empty()) {
    out << "  computed within other steps or not needed: " << Numbered("node", rest) << '\n';
  }
}

}  // namespace

GraphReport WithReports(GraphReport graph) {
  for (PartitionReport& partition : graph.partitions) {
    for (const auto& segment : std::exchange(partition.segments, {})) partition.report += *segment;
  }
  return graph;
}

std::vector<int> NodesWithoutStep(const PartitionReport& partition) {
  if (!partition.compiled) return {};
  std::set<int> rest(partition.nodes.begin(), partition.nodes.end());
  const auto leave_out = [&](const std::vector<int>& named) {
    for (const int node : named) rest.erase(node);
  };
  for (const fusion::StepReport& step : partition.report.steps) leave_out(step.host_nodes);
  for (const fusion::RewriteRecord& rewrite : partition.report.rewrites) {
    leave_out(rewrite.host_nodes);
  }
  leave_out(partition.waiting_nodes);
  leave_out(partition.later_nodes);
  leave_out(partition.host_run_nodes);
  return {rest.begin(), rest.end()};
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
    if (!graph.error.empty()) out << "error: " << OneLine(graph.error) << '\n';
    PrintNodes(graph, out);
    for (size_t p = 0; p < graph.partitions.size(); ++p) {
      PrintPartition(graph.partitions[p], p, i == 0, out);
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
