#include "tools/measure/op_profile.h"

#include <algorithm>
#include <map>
#include <ostream>

#include "runtime/support/printable.h"
#include "runtime/support/text_table.h"

namespace fuselite::tools {
namespace {

double Total(const std::vector<OpTime>& ops) {
  double total = 0;
  for (const OpTime& op : ops) total += op.average_ms();
  return total;
}

double Percent(double part, double total) { return total > 0 ? 100 * part / total : 0; }

void PrintOps(const char* title, const std::vector<OpTime>& ops, std::ostream& out) {
  const double total = Total(ops);
  TextTable table({"[node type]", "[start]", "[first]", "[avg ms]", "[%]", "[cdf%]", "[mem KB]",
                   "[times called]", "[Name]"});
  double sum = 0;
  for (const OpTime& op : ops) {
    sum += op.average_ms();
    table.AddRow({op.type, Fixed(op.start_ms, 3), Fixed(op.first_ms, 3), Fixed(op.average_ms(), 3),
                  Fixed(Percent(op.average_ms(), total), 3) + "%",
                  Fixed(Percent(sum, total), 3) + "%", "0.000", "1", op.name});
  }
  out << "============================== " << title << " ==============================\n";
  table.Print(out);
  out << '\n';
}

std::string NodeName(const interpreter::NodeEvent& event) {
  const std::string node = "node " + std::to_string(event.node);
  return event.subgraph == 0 ? node : "subgraph " + std::to_string(event.subgraph) + " " + node;
}

std::vector<OpTime> NodeTimes(const std::vector<interpreter::NodeEvent>& events) {
  std::vector<OpTime> ops;
  std::map<std::pair<int, int>, size_t> index;
  int64_t run_start = 0;
  for (const interpreter::NodeEvent& event : events) {
    const auto [entry, fresh] = index.try_emplace({event.subgraph, event.node}, ops.size());
    if (fresh) {
      ops.push_back({.subgraph = event.subgraph, .type = event.name, .name = NodeName(event)});
    }
    OpTime& op = ops[entry->second];
    if (entry->second == 0) run_start = event.start_ns;
    const double ms = static_cast<double>(event.duration_ns) / 1e6;
    if (fresh) {
      op.first_ms = op.min_ms = ms;
      op.start_ms = static_cast<double>(event.start_ns - run_start) / 1e6;
    }
    op.min_ms = std::min(op.min_ms, ms);
    op.max_ms = std::max(op.max_ms, ms);
    op.total_ms += ms;
    ++op.runs;
  }
  return ops;
}

// The nodes that stand for partitions, which run in the order of their first nodes, replaced by
// the partitions' steps.
std::vector<OpTime> WithSteps(const std::vector<OpTime>& nodes,
                              const partitioner::ProfiledPartitions& partitions) {
  std::vector<OpTime> ops;
  std::map<int, partitioner::ProfiledPartitions::const_iterator> next;  // of each subgraph
  for (const OpTime& node : nodes) {
    auto& partition =
        next.try_emplace(node.subgraph, partitions.lower_bound({node.subgraph, 0})).first->second;
    if (node.type.find(partitioner::kDelegateName) == std::string::npos ||
        partition == partitions.end() || partition->first.graph != node.subgraph) {
      ops.push_back(node);
      continue;
    }
    double start = node.start_ms;
    for (const StepTimes& step : partition->second) {
      OpTime op{.subgraph = node.subgraph,
                .type = step.ops,
                .name = step.name + " [" + step.kernel + "]",
                .kernel = step.kernel,
                .start_ms = start,
                .total_ms = static_cast<double>(step.wall_ns) / 1e6,
                .min_ms = static_cast<double>(step.min_wall_ns) / 1e6,
                .max_ms = static_cast<double>(step.max_wall_ns) / 1e6,
                .runs = step.runs};
      op.first_ms = op.average_ms();
      start += op.average_ms();
      ops.push_back(std::move(op));
    }
    ++partition;
  }
  return ops;
}

// A text as a field of RFC 4180: in quotes where it has what ends a field. A field in quotes
// follows the comma at once, others stand behind a blank, as in benchmark_model's lines.
std::string CsvField(std::string_view text) {
  std::string line = OneLine(text);
  if (line.find_first_of(",\"") == std::string::npos) return line;
  std::string quoted;
  for (const char c : line) quoted.append(c == '"' ? 2 : 1, c);
  return '"' + quoted + '"';
}

struct TypeTime {
  std::string type;
  int64_t count = 0;
  double average_ms = 0;
};

void PrintSummary(const std::vector<OpTime>& ops, std::ostream& out) {
  std::map<std::string, TypeTime> by_type;
  for (const OpTime& op : ops) {
    TypeTime& entry = by_type[op.type];
    entry.type = op.type;
    ++entry.count;
    entry.average_ms += op.average_ms();
  }
  std::vector<TypeTime> types;
  for (const auto& [type, entry] : by_type) types.push_back(entry);
  std::ranges::sort(types, std::greater(), &TypeTime::average_ms);
  const double total = Total(ops);
  TextTable table(
      {"[Node type]", "[count]", "[avg ms]", "[avg %]", "[cdf %]", "[mem KB]", "[times called]"});
  double sum = 0;
  for (const TypeTime& entry : types) {
    sum += entry.average_ms;
    table.AddRow({entry.type, std::to_string(entry.count), Fixed(entry.average_ms, 3),
                  Fixed(Percent(entry.average_ms, total), 3) + "%",
                  Fixed(Percent(sum, total), 3) + "%", "0.000", std::to_string(entry.count)});
  }
  out << "Number of nodes executed: " << ops.size() << '\n'
      << "============================== Summary by node type ==============================\n";
  table.Print(out);
  out << '\n';
}

}  // namespace

std::vector<OpTime> OpTimes(const std::vector<interpreter::NodeEvent>& events,
                            const partitioner::DelegateState* state) {
  std::vector<OpTime> ops = NodeTimes(events);
  return state == nullptr ? ops : WithSteps(ops, state->profile().Times());
}

void PrintOpProfile(const std::vector<OpTime>& ops, std::ostream& out) {
  PrintOps("Run Order", ops, out);
  std::vector<OpTime> sorted = ops;
  std::ranges::stable_sort(sorted, std::greater(),
                           [](const OpTime& op) { return op.average_ms(); });
  PrintOps("Top by Computation Time", sorted, out);
  PrintSummary(ops, out);
}

void PrintOpProfileCsv(const std::vector<OpTime>& ops, std::ostream& out) {
  const double total = Total(ops);
  out << "node type, start, first, avg_ms, %, cdf%, mem KB, times called, name\n";
  double sum = 0;
  for (const OpTime& op : ops) {
    sum += op.average_ms();
    const std::string name = CsvField(op.name);
    out << CsvField(op.type) << ", " << op.start_ms << ", " << op.first_ms << ", "
        << op.average_ms() << ", " << Percent(op.average_ms(), total) << "%, "
        << Percent(sum, total) << "%, 0, 1," << (name.starts_with('"') ? "" : " ") << name << '\n';
  }
}

}  // namespace fuselite::tools
