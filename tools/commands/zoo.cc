// fuselite zoo: writes well-known networks with seeded weights.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "runtime/support/text_table.h"
#include "runtime/support/write_file.h"
#include "tools/commands/commands.h"
#include "tools/common/validators.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

struct Arguments {
  std::string name;
  std::string output;
  uint64_t seed = 1;
};

void List() {
  TextTable table({"name", "what it is"});
  for (const ZooModel& model : Zoo()) {
    table.AddRow({std::string(model.name), std::string(model.description)});
  }
  table.Print(std::cout);
}

void Write(const Arguments& arguments) {
  const std::vector<std::byte> bytes = Check(BuildZooModel(arguments.name, arguments.seed));
  const std::string path = arguments.output.empty() ? arguments.name + ".tflite" : arguments.output;
  Check(WriteFile(path, {AsText(bytes)}));
  std::cout << path << ": " << Bytes(static_cast<double>(bytes.size())) << '\n';
}

}  // namespace

void AddZooCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand("zoo", "Write a well-known network with seeded weights");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("name", arguments->name, "The network; without a name: a list of them");
  command->add_option("-o,--output", arguments->output, "The file to write (NAME.tflite)")
      ->check(Names("file"));
  command->add_option("--seed", arguments->seed, "Of the weights")
      ->check(WholeNumber())
      ->capture_default_str();
  command->callback([arguments] { arguments->name.empty() ? List() : Write(*arguments); });
}

}  // namespace fuselite::tools
