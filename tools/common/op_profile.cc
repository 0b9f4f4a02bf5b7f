#include "tools/common/op_profile.h"

#include <algorithm>
#include <map>
#include <ostream>

#include "runtime/text_table.h"

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
    out << op.type << ", " << op.start_ms << ", " << op.first_ms << ", " << op.average_ms() << ", "
        << Percent(op.average_ms(), total) << "%, " << Percent(sum, total) << "%, 0, 1, " << op.name
        << '\n';
  }
}

}  // namespace fuselite::tools
