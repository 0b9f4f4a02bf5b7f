#include "tools/measure/chrome_trace.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace fuselite::tools {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kProcess = 1;
constexpr int kInterpreterRow = 0;  // the delegate's threads follow

class Trace {
 public:
  explicit Trace(int64_t origin_ns) : origin_ns_(origin_ns) {
    events_.push_back(Metadata("process_name", kInterpreterRow, "fuselite"));
    NameRow(kInterpreterRow, "interpreter");
  }

  void NameRow(int row, const std::string& name) {
    events_.push_back(Metadata("thread_name", row, name));
  }
  void Add(int row, const std::string& name, int64_t start_ns, int64_t duration_ns, Json details) {
    events_.push_back({{"ph", "X"},
                       {"pid", kProcess},
                       {"tid", row},
                       {"ts", static_cast<double>(start_ns - origin_ns_) / 1e3},
                       {"dur", static_cast<double>(duration_ns) / 1e3},
                       {"name", name},
                       {"args", std::move(details)}});
  }
  std::string Text() const {
    const Json json = {{"traceEvents", events_}, {"displayTimeUnit", "ms"}};
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  static Json Metadata(const char* what, int row, const std::string& name) {
    return {
        {"ph", "M"}, {"pid", kProcess}, {"tid", row}, {"name", what}, {"args", {{"name", name}}}};
  }

  const int64_t origin_ns_;
  Json events_ = Json::array();
};

int64_t FirstStart(const std::vector<interpreter::NodeEvent>& nodes,
                   const std::vector<partitioner::PartitionEvents>& partitions) {
  int64_t first = std::numeric_limits<int64_t>::max();
  for (const interpreter::NodeEvent& node : nodes) first = std::min(first, node.start_ns);
  for (const partitioner::PartitionEvents& partition : partitions) {
    for (const ProfileEvent& event : partition.events) first = std::min(first, event.start_ns);
  }
  return first;
}

}  // namespace

std::string ChromeTrace(const std::vector<interpreter::NodeEvent>& nodes,
                        const std::vector<partitioner::PartitionEvents>& partitions) {
  Trace trace(FirstStart(nodes, partitions));
  for (const interpreter::NodeEvent& node : nodes) {
    trace.Add(kInterpreterRow, node.name, node.start_ns, node.duration_ns,
              {{"subgraph", node.subgraph}, {"node", node.node}});
  }
  int threads = 0;
  for (const partitioner::PartitionEvents& partition : partitions) {
    for (const ProfileEvent& event : partition.events) {
      const StepTimes& step = partition.steps[static_cast<size_t>(event.step)];
      threads = std::max(threads, event.thread + 1);
      trace.Add(kInterpreterRow + 1 + event.thread, step.ops, event.start_ns, event.duration_ns,
                {{"kernel", step.kernel},
                 {"step", event.step},
                 {"partition_from_node", partition.first_node},
                 {"run", event.run}});
    }
  }
  for (int i = 0; i < threads; ++i) {
    trace.NameRow(kInterpreterRow + 1 + i, "thread " + std::to_string(i));
  }
  return trace.Text();
}

}  // namespace fuselite::tools
