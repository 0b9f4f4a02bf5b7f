#include "partitioner/report/profile_file.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/support/write_file.h"

namespace fuselite::partitioner {
namespace {

using Json = nlohmann::ordered_json;

std::string ToJson(const ProfiledPartitions& partitions) {
  Json json = {{"partitions", Json::array()}};
  for (const auto& [key, steps] : partitions) {
    Json entry = {{"graph", key.graph}, {"first_node", key.first_node}, {"steps", Json::array()}};
    for (const StepTimes& step : steps) {
      entry["steps"].push_back({{"name", step.name},
                                {"kernel", step.kernel},
                                {"ops", step.ops},
                                {"runs", step.runs},
                                {"wall_ns", step.wall_ns},
                                {"busy_ns", step.busy_ns},
                                {"min_wall_ns", step.min_wall_ns},
                                {"max_wall_ns", step.max_wall_ns}});
    }
    json["partitions"].push_back(std::move(entry));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ToText(const ProfiledPartitions& partitions) {
  std::ostringstream out;
  char line[512];
  for (const auto& [key, steps] : partitions) {
    int64_t total = 0;
    for (const StepTimes& step : steps) total += step.wall_ns;
    out << "graph " << key.graph << ", partition from node " << key.first_node << "\n"
        << "      avg us      min us      max us       %     runs  step\n";
    for (const StepTimes& step : steps) {
      const double runs = static_cast<double>(std::max<int64_t>(step.runs, 1));
      const double share = 100.0 * static_cast<double>(step.wall_ns) /
                           static_cast<double>(std::max<int64_t>(total, 1));
      std::snprintf(line, sizeof line, "%12.1f%12.1f%12.1f%8.1f%9lld  ",
                    static_cast<double>(step.wall_ns) / runs / 1e3,
                    static_cast<double>(step.min_wall_ns) / 1e3,
                    static_cast<double>(step.max_wall_ns) / 1e3, share,
                    static_cast<long long>(step.runs));
      out << line << step.name << "  " << step.ops << "  [" << step.kernel << "]\n";
    }
  }
  return std::move(out).str();
}

}  // namespace

void AddTimes(std::vector<StepTimes>& times, const std::vector<StepTimes>& more) {
  const auto same_step = [](const StepTimes& a, const StepTimes& b) {
    return a.name == b.name && a.kernel == b.kernel;
  };
  if (!std::ranges::equal(times, more, same_step)) {
    times = more;
    return;
  }
  for (size_t i = 0; i < times.size(); ++i) {
    StepTimes& sum = times[i];
    if (more[i].runs == 0) continue;
    sum.min_wall_ns =
        sum.runs == 0 ? more[i].min_wall_ns : std::min(sum.min_wall_ns, more[i].min_wall_ns);
    sum.max_wall_ns = std::max(sum.max_wall_ns, more[i].max_wall_ns);
    sum.runs += more[i].runs;
    sum.wall_ns += more[i].wall_ns;
    sum.busy_ns += more[i].busy_ns;
  }
}

Status WriteProfile(const ProfiledPartitions& partitions, const std::string& path) {
  return WriteFile(path, {path.ends_with(".json") ? ToJson(partitions) : ToText(partitions)});
}

}  // namespace fuselite::partitioner
