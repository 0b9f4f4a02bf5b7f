// fuselite info: what a bug report needs to say of the machine and the build.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/operator.h"
#include "partitioner/options.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/isa.h"
#include "runtime/support/environment.h"
#include "runtime/support/text_table.h"
#include "runtime/version.h"
#include "tools/commands/commands.h"

namespace fuselite::tools {
namespace {

std::string CompilerName() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

// The threads of one run, where neither the program nor the host asks for a number.
int ThreadsByDefault(const CpuInfo& cpu) {
  const Result<partitioner::Options> options = partitioner::ParseOptions({});
  const int asked = options.ok() ? options->num_threads : 0;
  return asked > 0 ? asked : cpu.physical_cores;
}

// What is read from the environment beside the delegate's options: by the log, the emitters, the
// tools, the Python package and the tests.
constexpr std::string_view kOtherSettings[] = {
    "LOG",  "JIT_DUMP", "JIT_PROFILE", "PROGRESS", "ENABLE",      "LIBRARY", "LITERT",
    "TOOL", "MODELS",   "EVAL",        "MATRIX",   "CONFORMANCE", "DELEGATE"};

// Each variable of the environment whose name begins as ours do. What nothing reads is probably
// misspelt: `nearest` is the variable that was meant, or empty.
nlohmann::ordered_json DescribeSettings() {
  std::vector<std::string_view> known(std::begin(kOtherSettings), std::end(kOtherSettings));
  for (const partitioner::OptionRow& row : partitioner::OptionTable()) known.push_back(row.name);
  const std::string prefix = EnvironmentName("");
  nlohmann::ordered_json settings = nlohmann::json::array();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const size_t end = text.find('=');
    if (!text.starts_with(prefix) || end == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, end);
    const bool is_read = std::ranges::any_of(
        known, [&](std::string_view setting) { return EnvironmentName(setting) == name; });
    settings.push_back({{"name", name}, {"value", text.substr(end + 1)}, {"read", is_read}});
    if (is_read) continue;
    const std::string_view nearest = partitioner::Nearest(name.substr(prefix.size()), known);
    settings.back()["nearest"] = nearest.empty() ? "" : EnvironmentName(nearest);
  }
  return settings;
}

nlohmann::ordered_json Describe() {
  const CpuInfo cpu = ReadCpuInfo();
  nlohmann::ordered_json isas = nlohmann::json::array();
  for (Isa isa : RunnableIsas()) isas.push_back(IsaName(isa));
  return {{"version", kVersion},
          {"compiler", CompilerName()},
          {"cpu", cpu.model.empty() ? "unknown" : cpu.model},
          {"isa", IsaName(DetectIsa())},
          {"runnable_isas", isas},
          {"logical_cores", cpu.logical_cores},
          {"physical_cores", cpu.physical_cores},
          {"threads", ThreadsByDefault(cpu)},
          {"l1d_bytes", cpu.l1d_bytes},
          {"l2_bytes", cpu.l2_bytes},
          {"l3_bytes", cpu.l3_bytes},
          {"operators", kernels::AllOperators().size()},
          {"settings", DescribeSettings()}};
}

std::string Join(const nlohmann::ordered_json& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : " ") + name.get<std::string>();
  return text;
}

void PrintSetting(const nlohmann::ordered_json& setting) {
  std::cout << "setting   " << setting["name"].get<std::string>() << "="
            << setting["value"].get<std::string>();
  if (!setting["read"].get<bool>()) {
    const auto nearest = setting["nearest"].get<std::string>();
    std::cout << ", which nothing reads";
    if (!nearest.empty()) std::cout << "; the nearest valid one is " << nearest;
  }
  std::cout << "\n";
}

void PrintText(const nlohmann::ordered_json& info) {
  const auto cache = [&](const char* key) { return Bytes(info[key].get<double>()); };
  std::cout << "fuselite  " << info["version"].get<std::string>() << " ("
            << info["compiler"].get<std::string>() << ")\n"
            << "cpu       " << info["cpu"].get<std::string>() << "\n"
            << "isa       " << info["isa"].get<std::string>() << " (of "
            << Join(info["runnable_isas"]) << ")\n"
            << "cores     " << info["physical_cores"] << " physical, " << info["logical_cores"]
            << " logical, allowed to this process\n"
            << "threads   " << info["threads"]
            << " for a run, where nobody asks for another number\n"
            << "caches    L1d " << cache("l1d_bytes") << ", L2 " << cache("l2_bytes") << ", L3 "
            << cache("l3_bytes") << "\n"
            << "operators " << info["operators"] << "\n";
  for (const auto& setting : info["settings"]) PrintSetting(setting);
}

}  // namespace

void AddInfoCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand("info", "Version, CPU, instruction sets and threads");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->callback([json] {
    if (*json) {
      std::cout << Describe().dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    } else {
      PrintText(Describe());
    }
    // Told behind all else, which is what somebody with a wrong setting wants to see.
    (void)CheckUsage(partitioner::ParseOptions({}));
  });
}

}  // namespace fuselite::tools
