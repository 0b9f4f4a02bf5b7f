// fuselite info: what a bug report needs to say of the machine and the build.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/operator.h"
#include "partitioner/options.h"
#include "runtime/cpu.h"
#include "runtime/isa.h"
#include "runtime/text_table.h"
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
  const int asked = CheckUsage(options).num_threads;
  return asked > 0 ? asked : cpu.physical_cores;
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
          {"operators", kernels::AllOperators().size()}};
}

std::string Join(const nlohmann::ordered_json& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : " ") + name.get<std::string>();
  return text;
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
}

}  // namespace

void AddInfoCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand("info", "Version, CPU, instruction sets and threads");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->callback([json] {
    if (*json) {
      std::cout << Describe().dump(2) << '\n';
    } else {
      PrintText(Describe());
    }
  });
}

}  // namespace fuselite::tools
