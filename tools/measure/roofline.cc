#include "tools/measure/roofline.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "kernels/operator.h"
#include "runtime/cpu/cpu.h"
#include "runtime/support/text_table.h"
#include "tools/measure/machine_peak.h"

namespace fuselite::tools {
namespace {

constexpr double kGiga = 1e9, kMicro = 1e6;
// What copying is measured with, of each thread and of all.
constexpr size_t kSmallestSet = size_t{1} << 14, kLargestSet = size_t{1} << 26;

// Whether the operator sums products: its cost is then in multiply-adds, else in elements.
bool IsProduct(std::string_view op) {
  constexpr std::array<std::string_view, 7> kParts = {
      "CONV", "FULLY_CONNECTED", "BATCH_MATMUL", "LSTM", "RNN", "SVDF", "ATTENTION"};
  return std::ranges::any_of(
      kParts, [&](std::string_view part) { return op.find(part) != std::string_view::npos; });
}

// Products are of the narrower operand's kind: float activations are quantized for 8-bit weights.
// Those of `precision=fast` have floats on both sides; the kernel's name says what it computes in.
Bound KindOf(const fusion::StepReport& step) {
  const std::vector<DataType>& types = step.input_types;
  const size_t operands = std::min<size_t>(types.size(), 2);
  const bool bytes = std::any_of(types.begin(), types.begin() + operands, [](DataType type) {
    return type != DataType::kNone && BitWidth(type) <= 8;
  });
  if (bytes) return Bound::kInt8;
  return step.kernel.find(" bf16 ") != std::string::npos ? Bound::kBf16 : Bound::kFloat;
}

// Bytes that a run of a step reads and writes.
struct Traffic {
  size_t constants, values;
};

// What looks rows of a table up reads no more of it than it gives.
Traffic TrafficOf(const fusion::StepReport& report, std::string_view op) {
  const kernels::OperatorDef* const def = kernels::FindOperator(op);
  const bool looks_up = def != nullptr && def->checks_indices;
  const size_t most = looks_up ? report.output_bytes : std::numeric_limits<size_t>::max();
  return {std::min(report.weight_bytes, most),
          std::min(report.input_bytes, most) + report.output_bytes};
}

// What the machine allows for a step.
RooflineStep LimitOf(const fusion::StepReport& report, const MachinePeaks& peaks,
                     double constants_rate) {
  RooflineStep step{.ops = report.ops, .kernel = report.kernel};
  // The steps of strips run one behind the other, on what is in the nearest cache.
  double longest = 0;
  for (const fusion::StepReport& part : report.steps) {
    const RooflineStep limit = LimitOf(part, peaks, constants_rate);
    step.operations += limit.operations;
    step.bytes += limit.bytes;
    step.least_seconds += limit.least_seconds;
    if (limit.least_seconds > longest) step.bound = limit.bound;
    longest = std::max(longest, limit.least_seconds);
  }
  if (!report.steps.empty()) return step;
  const std::string_view op = std::string_view(report.ops).substr(0, report.ops.find(' '));
  const Traffic traffic = TrafficOf(report, op);
  const double constants = static_cast<double>(traffic.constants);
  const double values = static_cast<double>(traffic.values);
  step.bytes = constants + values;
  const double rate = peaks.BandwidthFor(traffic.values);
  if (constants_rate > 0 && rate > 0) {
    step.bound = Bound::kMemory;
    step.least_seconds = constants / constants_rate + values / rate;
  }
  if (!IsProduct(op)) return step;
  step.operations = 2 * report.multiply_adds;
  const Bound kind = KindOf(report);
  const double peak = peaks.OperationsFor(kind);
  if (peak > 0 && step.operations / peak > step.least_seconds) {
    step.bound = kind;
    step.least_seconds = step.operations / peak;
  }
  return step;
}

RooflineStep MakeStep(const fusion::StepReport& report, const StepTimes& times,
                      const MachinePeaks& peaks, double constants_rate) {
  RooflineStep step = LimitOf(report, peaks, constants_rate);
  step.seconds = static_cast<double>(times.min_wall_ns) * 1e-9;
  return step;
}

std::string_view NameOf(Bound bound) {
  switch (bound) {
    case Bound::kFloat: return "float";
    case Bound::kBf16: return "bf16";
    case Bound::kInt8: return "int8";
    case Bound::kMemory: return "memory";
    case Bound::kUnknown: break;
  }
  return "unknown";
}

std::string Percent(double part, double whole) {
  return whole > 0 ? Fixed(100 * part / whole, 1) : "-";
}
std::string Rate(double amount, double seconds) {
  return amount > 0 && seconds > 0 ? Fixed(amount / seconds / kGiga, 1) : "-";
}

struct Sum {
  double seconds = 0, least = 0, lost = 0;
  void Add(const RooflineStep& step) {
    seconds += step.seconds;
    least += step.seconds - step.lost();
    lost += step.lost();
  }
};

Sum SumOf(const Roofline& roofline) {
  Sum sum;
  for (const RooflineStep& step : roofline.steps) sum.Add(step);
  return sum;
}

// Outside the steps: the host's call, and the way from one step to the next; and by how much the
// steps of one run take longer than each does in its fastest.
double SecondsBetween(const Roofline& roofline, const Sum& steps) {
  return std::max(roofline.run_seconds - steps.seconds, 0.0);
}

void PrintPeaks(const Roofline& roofline, std::ostream& out) {
  out << "Measured peaks of " << roofline.threads
      << (roofline.threads == 1 ? " thread: " : " threads: ");
  const auto operations = [](double rate) {
    return rate > 0 ? Fixed(rate / kGiga, 1) : std::string("unknown");
  };
  out << "float " << operations(roofline.peaks.float_operations) << " GFLOP/s, ";
  if (roofline.peaks.bf16_operations > 0) {
    out << "bf16 " << operations(roofline.peaks.bf16_operations) << " GFLOP/s, ";
  }
  out << "int8 " << operations(roofline.peaks.int8_operations) << " GOP/s; copying";
  const char* separator = " ";
  for (const MachinePeaks::Bandwidth& level : roofline.peaks.bandwidths) {
    out << separator << Fixed(level.rate / kGiga, 1) << " GB/s within "
        << Bytes(static_cast<double>(level.bytes));
    separator = ", ";
  }
  out << '\n';
}

void PrintSteps(const Roofline& roofline, std::ostream& out) {
  TextTable table(
      {"us", "%", "GOP/s", "GB/s", "bound by", "% of peak", "lost us", "operators", "kernel"});
  for (const RooflineStep& step : roofline.steps) {
    table.AddRow({Fixed(step.seconds * kMicro, 1), Percent(step.seconds, roofline.run_seconds),
                  Rate(step.operations, step.seconds), Rate(step.bytes, step.seconds),
                  std::string(NameOf(step.bound)), Percent(step.least_seconds, step.seconds),
                  Fixed(step.lost() * kMicro, 1), step.ops, step.kernel});
  }
  table.Print(out);
}

// Prints losses by operator, the largest first; then what no step has, and all together.
void PrintLosses(const Roofline& roofline, std::ostream& out) {
  std::map<std::string, Sum> by_operator;
  for (const RooflineStep& step : roofline.steps) {
    by_operator[step.ops.substr(0, step.ops.find(' ')) + ", " + std::string(NameOf(step.bound))]
        .Add(step);
  }
  std::vector<std::pair<std::string, Sum>> sums(by_operator.begin(), by_operator.end());
  std::ranges::stable_sort(sums, std::greater(),
                           [](const auto& entry) { return entry.second.lost; });
  const Sum steps = SumOf(roofline);
  const double between = SecondsBetween(roofline, steps);
  const double run = roofline.run_seconds;
  TextTable table({"us", "least us", "% of peak", "lost us", "lost %", "where"});
  const auto add = [&](const Sum& sum, const std::string& where) {
    table.AddRow({Fixed(sum.seconds * kMicro, 1), Fixed(sum.least * kMicro, 1),
                  Percent(sum.least, sum.seconds), Fixed(sum.lost * kMicro, 1),
                  Percent(sum.lost, run), where});
  };
  for (const auto& [name, sum] : sums) add(sum, name);
  add({between, 0, between}, "between the steps");
  add({run, steps.least, steps.lost + between}, "the run");
  table.Print(out);
}

}  // namespace

double MachinePeaks::BandwidthFor(size_t bytes) const {
  const auto level = std::ranges::lower_bound(bandwidths, bytes, {}, &Bandwidth::bytes);
  if (level != bandwidths.end()) return level->rate;
  return bandwidths.empty() ? 0 : bandwidths.back().rate;
}

double MachinePeaks::OperationsFor(Bound kind) const {
  switch (kind) {
    case Bound::kFloat: return float_operations;
    case Bound::kBf16: return bf16_operations > 0 ? bf16_operations : float_operations;
    case Bound::kInt8: return int8_operations;
    case Bound::kUnknown:
    case Bound::kMemory: break;
  }
  return 0;
}

MachinePeaks MeasurePeaks(Isa isa, int threads) {
  MachinePeaks peaks;
  peaks.float_operations = MeasureFloatPeak(isa, threads);
  peaks.bf16_operations = MeasureBf16Peak(isa, threads);
  peaks.int8_operations = MeasureInt8Peak(isa, threads);
  // Caches share their room with other data, so it is what lies between their sizes that tells.
  const auto no_cache_holds = 2 * static_cast<size_t>(std::max(ReadCpuInfo().l3_bytes, 0L));
  const auto count = static_cast<size_t>(threads);
  size_t bytes = kSmallestSet;
  do {
    peaks.bandwidths.push_back({bytes * count, MeasureCopyBandwidth(bytes, threads)});
    bytes *= 4;
  } while (peaks.bandwidths.back().bytes < std::max(no_cache_holds, kLargestSet));
  return peaks;
}

Roofline MakeRoofline(const partitioner::DelegateState& state, double run_seconds) {
  Roofline roofline;
  roofline.run_seconds = run_seconds;
  const partitioner::Explanation explanation = state.Explain();
  size_t constants = 0;
  for (const partitioner::GraphReport& graph : explanation.graphs) {
    for (const partitioner::PartitionReport& partition : graph.partitions) {
      roofline.threads = std::max(roofline.threads, partition.threads);
      for (const fusion::StepReport& step : partition.report.steps) constants += step.weight_bytes;
    }
  }
  roofline.threads = std::max(roofline.threads, 1);
  roofline.peaks = MeasurePeaks(explanation.options.isa, roofline.threads);
  // Between two uses of a constant the others are read: they are where all of them fit.
  const double constants_rate = roofline.peaks.BandwidthFor(constants);
  for (const auto& [key, times] : state.profile().Times()) {
    const partitioner::GraphReport* const graph = explanation.Find(key.graph);
    if (graph == nullptr) continue;
    const auto partition = std::ranges::find(
        graph->partitions, key.first_node,
        [](const auto& report) { return report.nodes.empty() ? -1 : report.nodes.front(); });
    if (partition == graph->partitions.end()) continue;
    const auto& reports = partition->report.steps;
    for (size_t i = 0; i < std::min(times.size(), reports.size()); ++i) {
      roofline.steps.push_back(MakeStep(reports[i], times[i], roofline.peaks, constants_rate));
    }
  }
  return roofline;
}

void PrintRoofline(const Roofline& roofline, std::ostream& out) {
  PrintPeaks(roofline, out);
  out << '\n';
  PrintSteps(roofline, out);
  out << '\n';
  PrintLosses(roofline, out);
}

nlohmann::ordered_json ToJson(const Roofline& roofline) {
  using Json = nlohmann::ordered_json;
  const Sum steps = SumOf(roofline);
  Json json = {{"threads", roofline.threads},
               {"float_gflops", roofline.peaks.float_operations / kGiga},
               {"bf16_gflops", roofline.peaks.bf16_operations / kGiga},
               {"int8_gops", roofline.peaks.int8_operations / kGiga},
               {"bandwidths", Json::array()},
               {"run_us", roofline.run_seconds * kMicro},
               {"least_us", steps.least * kMicro},
               {"between_us", SecondsBetween(roofline, steps) * kMicro},
               {"steps", Json::array()}};
  for (const MachinePeaks::Bandwidth& level : roofline.peaks.bandwidths) {
    json["bandwidths"].push_back({{"bytes", level.bytes}, {"gb_s", level.rate / kGiga}});
  }
  for (const RooflineStep& step : roofline.steps) {
    json["steps"].push_back({{"ops", step.ops},
                             {"kernel", step.kernel},
                             {"us", step.seconds * kMicro},
                             {"operations", step.operations},
                             {"bytes", step.bytes},
                             {"bound", NameOf(step.bound)},
                             {"least_us", step.least_seconds * kMicro}});
  }
  return json;
}

}  // namespace fuselite::tools
