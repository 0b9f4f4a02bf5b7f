// Writes a few small models for the fuzzer to start from: make_corpus FOLDER

#include <filesystem>
#include <fstream>
#include <iostream>

#include "interpreter/writer.h"

using fuselite::DataType;
using fuselite::interpreter::ModelWriter;

namespace {

// One operator on `inputs` float tensors, with a constant, a quantized tensor and a signature
// beside it.
std::vector<std::byte> OneOperator(const fuselite::kernels::OperatorDef& op, int inputs) {
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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "make_corpus FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  for (const fuselite::kernels::OperatorDef* op : fuselite::kernels::AllOperators()) {
    if (op->builtin_code < 0) continue;
    const auto bytes = OneOperator(*op, op->min_inputs);
    std::ofstream file(folder / (std::string(op->name) + ".tflite"), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    if (!file) {
      std::cerr << "make_corpus: cannot write to " << folder << "\n";
      return 1;
    }
  }
  return 0;
}
