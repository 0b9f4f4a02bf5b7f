// Writes a few small models and input files for fuzzers to start from: make_corpus FOLDER fills
// FOLDER/TARGET.

#include <filesystem>
#include <fstream>
#include <iostream>

#include "interpreter/writer.h"
#include "runtime/tflite_builtin_codes.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#include <stb_image_write.h>

#include "tools/common/npy.h"

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

bool Save(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  if (!file) std::cerr << "make_corpus: cannot write " << path << "\n";
  return static_cast<bool>(file);
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
  std::filesystem::create_directories(folder);
  std::filesystem::create_directories(inputs);
  bool saved = Save(folder / "rarities.tflite", Rarities());
  for (const kernels::OperatorDef* op : kernels::AllOperators()) {
    if (op->builtin_code < 0) continue;
    saved = saved &&
            Save(folder / (std::string(op->name) + ".tflite"), OneOperator(*op, op->min_inputs));
  }
  saved = saved && SaveArrays(inputs) && SaveImages(inputs);
  return saved ? 0 : 1;
}
