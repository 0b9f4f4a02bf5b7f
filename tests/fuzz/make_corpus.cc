// Writes a few small models and input files for fuzzers to start from: make_corpus FOLDER fills
// FOLDER/TARGET.

#include <filesystem>
#include <fstream>
#include <iostream>

#include "interpreter/file/writer.h"
#include "runtime/tflite/builtin_codes.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#include <stb_image_write.h>

#include "tests/fuzz/random_operation.h"
#include "tests/fuzz/text_phrases.h"
#include "tools/inputs/npy.h"

namespace kernels = fuselite::kernels;
namespace tflite = fuselite::tflite;
using fuselite::DataType;
using fuselite::interpreter::ModelWriter;

namespace {

// One operator on `inputs` float tensors, with a constant, a quantized tensor and a signature
// beside it.
std::vector<std::byte> OneOperator(const kernels::OperatorDef& op, int inputs) {
  ModelWriter writer;
  std::vector<int> operands;
  for (int i = 0; i < inputs; ++i) {
    operands.push_back(writer.AddTensor("in", DataType::kFloat32, {1, 2, 2, 2}));
  }
  const int out = writer.AddTensor("out", DataType::kFloat32, {1, 2, 2, 2});
  writer.AddConstant<int32_t>("c", DataType::kInt32, {2}, {0, 1});
  writer.AddTensor("q", DataType::kInt8, {2}, {{0.5f, 0.25f}, {0, 0}, 0});
  writer.SetInputs(operands);
  writer.SetOutputs({out});
  writer.AddOperator(op, operands, {out});
  writer.AddSignature("serve", {{"x", operands.empty() ? out : operands[0]}}, {{"y", out}});
  return writer.Finish();
}

// One operator with options and operands that are drawn, mostly such as fit.
std::vector<std::byte> DrawnOperator(const kernels::OperatorDef& op, uint64_t seed) {
  kernels::testing::Random random(seed);
  const fuselite::fuzz::RandomOperation drawn = fuselite::fuzz::DrawOperation(op, random);
  ModelWriter writer;
  std::vector<int> operands, given, results;
  for (size_t i = 0; i < drawn.inputs.size(); ++i) {
    const fuselite::TensorInfo& info = drawn.inputs[i];
    operands.push_back(-1);
    if (info.absent()) continue;
    const auto data = drawn.constant[i] ? drawn.DrawValuesOf(i, random) : std::vector<std::byte>();
    operands.back() = writer.AddTensor({.name = "operand",
                                        .type = info.type,
                                        .shape = info.shape,
                                        .quantization = info.quantization,
                                        .data = data});
    if (data.empty()) given.push_back(operands.back());
  }
  for (const fuselite::TensorInfo& info : drawn.outputs) {
    results.push_back(writer.AddTensor("result", info.type, info.shape, info.quantization));
  }
  writer.AddOperator(op, drawn.params, operands, results);
  writer.SetInputs(given);
  writer.SetOutputs(results);
  return writer.Finish();
}

// What files have besides operators on tensors: subgraphs that operators run, operators with names
// and options of their own, strings, a constant that several read, a variable, an unknown size,
// metadata.
std::vector<std::byte> Rarities() {
  constexpr DataType kFloat = DataType::kFloat32;
  ModelWriter writer;
  writer.set_description("rarities");
  const auto condition = writer.AddConstant<uint8_t>("condition", DataType::kBool, {}, {1});
  writer.AddTensor({"in", kFloat, {1, 2}, {}, {}, false, {-1, 2}});
  for (int i = 0; i < 6; ++i) writer.AddTensor("made", kFloat, {1, 2});
  const int state = writer.AddTensor({"state", kFloat, {1, 2}, {}, {}, true, {}});
  // One string, "ab", behind its number and its ends.
  writer.AddConstant<int32_t>("text", DataType::kString, {1}, {1, 12, 14, 0x6261});
  const int handle = writer.AddTensor("handle", DataType::kResource, {1});
  writer.AddControlFlow(tflite::kTfLiteBuiltinIf, {1, 2}, {condition, 1}, {2});
  writer.AddControlFlow(tflite::kTfLiteBuiltinWhile, {3, 1}, {2}, {3});
  writer.AddControlFlow(tflite::kTfLiteBuiltinCallOnce, {4}, {}, {});
  writer.AddComposite("stranger.relu", {std::byte{1}, std::byte{2}}, 1, {3}, {4});
  writer.AddCustomOperator("Stranger", {std::byte{3}}, {4, state}, {5});
  writer.AddOperator(tflite::kTfLiteBuiltinVarHandle, {}, {handle});
  writer.SetInputs({1});
  writer.SetOutputs({5});
  writer.AddSignature("serve", {{"x", 1}}, {{"y", 5}});
  writer.AddMetadata("notes", {std::byte{4}});
  const auto* relu = kernels::FindOperator("RELU");
  for (const char* name : {"then", "else"}) {
    writer.AddSubgraph(name);
    writer.AddTensor("in", kFloat, {1, 2});
    writer.AddTensor("out", kFloat, {1, 2});
    if (relu != nullptr) writer.AddOperator(*relu, {0}, {1});
    writer.SetInputs({0});
    writer.SetOutputs({1});
  }
  writer.AddSubgraph("goes on");
  writer.AddTensor("in", kFloat, {1, 2});
  writer.ShareConstant(0, condition);
  writer.SetInputs({0});
  writer.SetOutputs({1});
  writer.AddSubgraph("once");
  return writer.Finish();
}

// A custom operator.
std::vector<std::byte> Stranger() {
  ModelWriter writer;
  const int x = writer.AddTensor("x", DataType::kFloat32, {2, 3});
  const int y = writer.AddTensor("y", DataType::kFloat32, {2, 3});
  writer.AddCustomOperator("Stranger", {std::byte{3}}, {x}, {y});
  writer.AddMetadata("notes", {std::byte{4}});
  writer.SetInputs({x});
  writer.SetOutputs({y});
  return writer.Finish();
}

// One of the operators of strings.
std::vector<std::byte> Texts(uint64_t seed) {
  ModelWriter writer;
  fuselite::kernels::testing::Random random(seed);
  std::vector<int> inputs;
  const std::vector<int> outputs = fuselite::fuzz::AddTextPhrase(writer, random, inputs);
  writer.SetInputs(inputs);
  writer.SetOutputs(outputs);
  return writer.Finish();
}

bool Save(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file) std::cerr << "make_corpus: cannot write " << path << "\n";
  return static_cast<bool>(file);
}

// Serves the target of kernels: each of its ways to an operation (kernels.cc), then any bytes.
bool SaveDraws(const std::filesystem::path& folder) {
  constexpr int kSeeds = 6, kBytes = 120, kFittingWays = 16;
  const auto operators = static_cast<int>(fuselite::fuzz::DrawableOperators().size());
  fuselite::kernels::testing::Random random(uint64_t{1});
  bool saved = true;
  const auto save = [&](int fitting, int way, int seed) {
    // A byte below a fifth of 256 draws a case that is made to fit.
    std::vector<std::byte> bytes = {std::byte(fitting != 0 ? 0 : 255), std::byte(way)};
    for (int i = 0; i < kBytes; ++i) bytes.push_back(std::byte(random.Int(0, 255)));
    const std::string name = std::to_string(fitting) + "-" + std::to_string(way);
    saved = saved && Save(folder / (name + "-" + std::to_string(seed)), bytes);
  };
  for (int seed = 0; seed < kSeeds; ++seed) {
    for (int way = 0; way < operators; ++way) save(0, way, seed);
    for (int way = 0; way < kFittingWays; ++way) {
      for (int more = 0; more < 4; ++more) save(1, way, 4 * seed + more);
    }
  }
  return saved;
}

// Arrays of every type.
bool SaveArrays(const std::filesystem::path& folder) {
  for (int i = 0; i < 32; ++i) {
    if (!fuselite::IsKnownDataType(i)) continue;
    const auto type = static_cast<DataType>(i);
    if (fuselite::BitWidth(type) < 8) continue;
    fuselite::tools::Array array{type, {2, 3}, {}};
    array.bytes.resize(static_cast<size_t>(6 * fuselite::BitWidth(type) / 8));
    const std::string name = std::string(fuselite::DataTypeName(type)) + ".npy";
    // Some have no type there.
    if (!WriteNpy((folder / name).string(), array).ok()) std::filesystem::remove(folder / name);
  }
  return !std::filesystem::is_empty(folder);
}

// A small picture of each format and number of channels.
bool SaveImages(const std::filesystem::path& folder) {
  constexpr int kHeight = 9, kWidth = 11;
  bool saved = true;
  for (int channels = 1; channels <= 4; ++channels) {
    std::vector<uint8_t> pixels(static_cast<size_t>(kHeight * kWidth * channels));
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * i);
    std::vector<std::byte> file;
    const auto write = [](void* to, void* data, int size) {
      const auto* bytes = static_cast<const std::byte*>(data);
      auto& all = *static_cast<std::vector<std::byte>*>(to);
      all.insert(all.end(), bytes, bytes + size);
    };
    const auto keep = [&](const std::string& ending) {
      saved = saved && Save(folder / (std::to_string(channels) + ending), file);
      file.clear();
    };
    stbi_write_png_to_func(write, &file, kWidth, kHeight, channels, pixels.data(), 0);
    keep(".png");
    stbi_write_bmp_to_func(write, &file, kWidth, kHeight, channels, pixels.data());
    keep(".bmp");
    stbi_write_jpg_to_func(write, &file, kWidth, kHeight, channels, pixels.data(), 40);
    keep(".jpg");
  }
  return saved;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "make_corpus FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = std::filesystem::path(argv[1]) / "loader";
  const std::filesystem::path inputs = std::filesystem::path(argv[1]) / "inputs";
  const std::filesystem::path draws = std::filesystem::path(argv[1]) / "kernels";
  std::filesystem::create_directories(folder);
  std::filesystem::create_directories(inputs);
  std::filesystem::create_directories(draws);
  bool saved = Save(folder / "rarities.tflite", Rarities());
  saved = saved && Save(folder / "stranger.tflite", Stranger());
  for (uint64_t seed = 1; saved && seed <= 24; ++seed) {
    saved = Save(folder / ("texts" + std::to_string(seed) + ".tflite"), Texts(seed));
  }
  for (const kernels::OperatorDef* op : kernels::AllOperators()) {
    if (op->builtin_code < 0) continue;
    saved = saved &&
            Save(folder / (std::string(op->name) + ".tflite"), OneOperator(*op, op->min_inputs));
  }
  for (const kernels::OperatorDef* op : fuselite::fuzz::DrawableOperators()) {
    for (uint64_t seed = 1; saved && seed <= 3; ++seed) {
      const std::string name = "drawn-" + std::string(op->name) + std::to_string(seed);
      saved = Save(folder / (name + ".tflite"), DrawnOperator(*op, seed));
    }
  }
  saved = saved && SaveArrays(inputs) && SaveImages(inputs) && SaveDraws(draws);
  return saved ? 0 : 1;
}
