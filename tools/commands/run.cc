// fuselite run: one inference, from .npy files or random inputs to .npy files.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <set>

#include "runtime/support/text_table.h"
#include "tools/commands/commands.h"
#include "tools/common/session.h"
#include "tools/common/validators.h"
#include "tools/inputs/tensors.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

struct Arguments {
  std::string model, signature;
  std::vector<std::string> inputs;
  InputLayerFlags layer_flags;
  std::string output_dir;
  uint64_t seed = 0;
  bool use_delegate = true;
  DelegateFlags delegate;
};

// The name of output `index` as a file's, which becomes one of `taken`: what a path must not
// contain is replaced, and the index stands behind a name that another output has. At most 100
// bytes of the name, since file systems take no more than 255 for a file's.
std::string FileName(std::string_view name, size_t index, std::set<std::string>& taken) {
  constexpr size_t kLongest = 100;
  const std::string number = std::to_string(index);
  std::string file = name.empty() ? "output_" + number : std::string(name.substr(0, kLongest));
  for (char& c : file) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.') c = '_';
  }
  while (!taken.insert(file).second) file += "_" + number;
  return file + ".npy";
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

struct Range {
  std::string low, high, mean;
};

// The range of numbers; strings have none.
Range RangeOf(const Array& array) {
  if (array.type == DataType::kString) return {"-", "-", "-"};
  const std::vector<double> values = ToDoubles(array);
  if (values.empty()) return {Number(0), Number(0), Number(0)};
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {Number(*std::ranges::min_element(values)), Number(*std::ranges::max_element(values)),
          Number(sum / static_cast<double>(values.size()))};
}

// Prints a row for each output, and writes those that can be written. An error names the others.
void PrintOutputs(const interpreter::Interpreter& interpreter, const std::string& output_dir) {
  std::set<std::string> taken;
  std::string unwritten;
  TextTable table({"output", "type", "shape", "min", "max", "mean", "file"});
  for (size_t i = 0; i < interpreter.outputs().size(); ++i) {
    const interpreter::TensorView tensor = interpreter.output(static_cast<int>(i));
    const Array array = Check(CopyTensor(tensor));
    const std::string name = ShortName(tensor.name), type(DataTypeName(tensor.type));
    std::string path;
    if (!output_dir.empty() && HasNpyType(tensor.type)) {
      path = (std::filesystem::path(output_dir) / FileName(tensor.name, i, taken)).string();
      Check(WriteNpy(path, array));
    } else if (!output_dir.empty()) {
      unwritten += (unwritten.empty() ? "'" : ", '") + name + "' (" + type + ")";
    }
    const Range range = RangeOf(array);
    table.AddRow({name, type, tensor.shape.ToString(), range.low, range.high, range.mean, path});
  }
  table.Print(std::cout);
  if (!unwritten.empty()) {
    throw CommandError("outputs that no .npy file can hold were not written: " + unwritten);
  }
}

void Run(const Arguments& arguments) {
  const partitioner::Options options = CheckUsage(arguments.delegate.Parse());
  const InputRequest inputs{CheckUsage(ParseInputLayers(arguments.layer_flags)), arguments.inputs};
  if (!arguments.output_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(arguments.output_dir, error);
    if (error) {
      throw CommandError(arguments.output_dir +
                         ": the folder for the outputs cannot be made: " + error.message());
    }
  }
  const auto model = Check(OpenModel(arguments.model));
  SessionDelegates delegates;
  if (arguments.use_delegate) delegates = CheckUsage(arguments.delegate.Create(options));
  const Session session =
      Check(OpenSession(model, HostOf(options), std::move(delegates), inputs, arguments.signature),
            arguments.model);
  Check(session.inputs.Fill(*session.interpreter, arguments.seed));
  Check(session.interpreter->Invoke());
  PrintOutputs(*session.interpreter, arguments.output_dir);
}

}  // namespace

void AddRunCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "Run a model once");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("model", arguments->model, "A .tflite file, or zoo:NAME")->required();
  command->add_option("--signature", arguments->signature,
                      "Key of the signature to run; else the first subgraph");
  command->add_option("-i,--input", arguments->inputs, kInputHelp);
  command
      ->add_option("-o,--output-dir", arguments->output_dir,
                   "Where to write each output as a .npy file")
      ->check(Names("folder"));
  command->add_option("--seed", arguments->seed, "Of random inputs")
      ->check(WholeNumber())
      ->capture_default_str();
  command->add_flag("--delegate,!--no-delegate", arguments->use_delegate,
                    "With the delegates, or with the reference kernels alone");
  arguments->layer_flags.AddTo(*command);
  arguments->delegate.AddTo(*command);
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace fuselite::tools
