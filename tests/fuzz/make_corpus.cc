// Writes a few small models for the fuzzer to start from: make_corpus FOLDER

#include <filesystem>
#include <fstream>
#include <iostream>

#include "interpreter/writer.h"
#include "runtime/tflite_builtin_codes.h"

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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "make_corpus FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  bool saved = Save(folder / "rarities.tflite", Rarities());
  for (const kernels::OperatorDef* op : kernels::AllOperators()) {
    if (op->builtin_code < 0) continue;
    saved = saved &&
            Save(folder / (std::string(op->name) + ".tflite"), OneOperator(*op, op->min_inputs));
  }
  return saved ? 0 : 1;
}
