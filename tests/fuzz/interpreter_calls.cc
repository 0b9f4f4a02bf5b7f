// The interpreter's C interface: calls in any order, with arguments that fit or not.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "fuselite/delegate.h"
#include "fuselite/interpreter.h"
#include "interpreter/file/writer.h"
#include "runtime/tflite/builtin_codes.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/stranger.h"
#include "tests/fuzz/target.h"
#include "tests/kernels/random.h"

namespace fuselite::fuzz {
namespace {

using interpreter::ModelWriter;
using kernels::testing::Random;

// (x + 1) * w, of any batch, with a signature, and a running state beside it.
std::vector<std::byte> Model() {
  const auto op = [](std::string_view name) -> const kernels::OperatorDef& {
    return *kernels::FindOperator(name);
  };
  ModelWriter writer;
  const int x = writer.AddTensor({"x", DataType::kFloat32, {1, 6}, {}, {}, false, {-1, 6}});
  const int one = writer.AddConstant<float>("one", DataType::kFloat32, {1}, {1});
  const int sum = writer.AddTensor("sum", DataType::kFloat32, {1, 6});
  const int w =
      writer.AddConstant<float>("w", DataType::kFloat32, {4, 6}, std::vector<float>(24, 0.5f));
  const int y = writer.AddTensor("y", DataType::kFloat32, {1, 4});
  writer.SetInputs({x});
  writer.SetOutputs({y, sum});
  writer.AddOperator(op("ADD"), {x, one}, {sum});
  writer.AddOperator(op("FULLY_CONNECTED"), {sum, w, -1}, {y});
  writer.AddSignature("serve", {{"in", x}}, {{"out", y}});
  return writer.Finish();
}

// Two strings joined to one vector behind IF, which runs one of two subgraphs, and a shape that
// only the run knows.
std::vector<std::byte> Branches() {
  const auto op = [](std::string_view name) -> const kernels::OperatorDef& {
    return *kernels::FindOperator(name);
  };
  ModelWriter writer;
  const int x = writer.AddTensor({"x", DataType::kFloat32, {1, 6}, {}, {}, false, {-1, 6}});
  const int choice = writer.AddTensor("choice", DataType::kBool, {});
  const int dims = writer.AddTensor("dims", DataType::kInt32, {2});
  const int text = writer.AddTensor("text", DataType::kString, {2});
  const int state = writer.AddTensor({"state", DataType::kFloat32, {3}, {}, {}, true, {}});
  const int chosen = writer.AddTensor("chosen", DataType::kFloat32, {1, 6});
  const int filled = writer.AddTensor("filled", DataType::kFloat32, {1});
  const int flat = writer.AddTensor("flat", DataType::kString, {2, 1});
  const int sum = writer.AddTensor("sum", DataType::kFloat32, {3});
  const int zero = writer.AddConstant<float>("zero", DataType::kFloat32, {}, {0});
  const int column = writer.AddConstant<int32_t>("column", DataType::kInt32, {2}, {2, 1});
  writer.SetInputs({x, choice, dims, text});
  writer.SetOutputs({chosen, filled, flat, sum});
  writer.AddControlFlow(tflite::kTfLiteBuiltinIf, {1, 2}, {choice, x}, {chosen});
  writer.AddOperator(op("FILL"), {dims, zero}, {filled});
  writer.AddOperator(op("RESHAPE"), {text, column}, {flat});
  writer.AddOperator(op("ADD"), {state, zero}, {sum});
  writer.AddSignature("serve", {{"in", x}}, {{"out", chosen}});
  for (const char* name : {"RELU", "NEG"}) {
    writer.AddSubgraph(name);
    writer.AddTensor("in", DataType::kFloat32, {1, 6});
    writer.AddTensor("out", DataType::kFloat32, {1, 6});
    writer.AddOperator(op(name), {0}, {1});
    writer.SetInputs({0});
    writer.SetOutputs({1});
  }
  return writer.Finish();
}

// Two operators that a caller brings, one of fuselite's between them and one behind.
std::vector<std::byte> WithStrangers() {
  const auto op = [](std::string_view name) -> const kernels::OperatorDef& {
    return *kernels::FindOperator(name);
  };
  ModelWriter writer;
  int value = writer.AddTensor({"x", DataType::kFloat32, {1, 6}, {}, {}, false, {-1, 6}});
  writer.SetInputs({value});
  for (int i = 0; i < 2; ++i) {
    const int strange = writer.AddTensor("y", DataType::kFloat32, {1, 6});
    const int ours = writer.AddTensor("z", DataType::kFloat32, {1, 6});
    writer.AddCustomOperator("Stranger", {std::byte{1}, std::byte{2}}, {value}, {strange});
    writer.AddOperator(op("TANH"), {strange}, {ours});
    value = ours;
  }
  writer.SetOutputs({value});
  writer.AddMetadata("notes", {std::byte{4}});
  return writer.Finish();
}

const std::vector<std::byte>& AnyFile(Random& random) {
  static const std::array<std::vector<std::byte>, 3> kFiles = {Model(), Branches(),
                                                               WithStrangers()};
  return kFiles[random.Int(0, 2)];
}

// One interpreter, and the model and the delegate that it needs.
struct Handles {
  Stranger* stranger = nullptr;
  FuseliteModel* model = nullptr;
  TfLiteDelegate* delegate = nullptr;
  FuseliteInterpreter* interpreter = nullptr;

  void Close() {
    FuseliteInterpreterDelete(interpreter);
    FuseliteDelegateDelete(delegate);
    FuseliteModelDelete(model);
    *this = {.stranger = stranger};
  }
};

// Floats, one byte for a bool, two sizes, two strings: to any input, seldom to one that they are
// not for.
void CopyIn(Handles& h, Random& random) {
  const auto input = static_cast<size_t>(random.Int(0, 4));
  const auto copy = [&](const auto& values, size_t bytes) {
    FuseliteInterpreterCopyIn(h.interpreter, random.Chance(0.9) ? input : 0, values.data(), bytes);
  };
  const auto size = static_cast<int32_t>(random.Int(-1, 5));
  switch (input) {
    case 0: return copy(std::vector<float>(32, 0.25f), static_cast<size_t>(random.Int(0, 5)) * 24);
    case 1: return copy(std::vector<uint8_t>{static_cast<uint8_t>(random.Int(0, 255))}, 1);
    case 2: return copy(std::vector<int32_t>{size, 2}, 8);
    default: return copy(std::vector<int32_t>{2, 16, 18, 16 + size, 0x64636261}, 20);
  }
}

void Load(Handles& h, Random& random) {
  const std::vector<std::byte>& file = AnyFile(random);
  const size_t size = random.Chance(0.9) ? file.size() : 100;
  if (random.Chance(0.7)) {
    h.model = FuseliteModelLoadMemory(random.Chance(0.95) ? file.data() : nullptr, size);
    return;
  }
  const MemoryFile on_disk(std::as_bytes(std::span(file)).first(size));
  const std::string path = random.Chance(0.8) ? on_disk.path() : "/none";
  h.model = FuseliteModelLoadFile(random.Chance(0.95) ? path.c_str() : nullptr);
}

void Create(Handles& h, int32_t threads, Random& random) {
  FuseliteInterpreterDelete(h.interpreter);
  FuseliteInterpreterOptions options = FuseliteInterpreterOptionsDefault();
  options.num_threads = threads;
  options.preserve_tensors = random.Chance(0.3);
  if (random.Chance(0.3)) options.signature = random.Chance(0.5) ? "serve" : "nonesuch";
  if (random.Chance(0.1)) options.struct_size = 3;
  // Sizes are what an input says, which may be what its memory held before.
  options.max_memory = random.Chance(0.2) ? 64 : 1 << 20;
  options.max_multiply_adds = 1 << 20;
  // The interface knows the operator by its name alone.
  const ::TfLiteOperator* operators[] = {
      reinterpret_cast<const ::TfLiteOperator*>(&h.stranger->op()), nullptr};
  options.operator_count = random.Chance(0.9) ? 1 : static_cast<size_t>(random.Int(0, 2));
  if (random.Chance(0.95)) options.operators = operators;
  h.interpreter = FuseliteInterpreterCreate(h.model, &options);
  if (random.Chance(0.1)) FuseliteInterpreterDelete(FuseliteInterpreterCreate(h.model, nullptr));
}

void ApplyDelegate(Handles& h, Random& random) {
  if (random.Chance(0.4)) {
    FuseliteInterpreterApplyDelegate(h.interpreter, h.stranger->delegate());
    return;
  }
  FuseliteDelegateOptions options = FuseliteDelegateOptionsDefault();
  options.max_memory = "1M";
  options.max_multiply_adds = "1M";
  if (h.delegate == nullptr) h.delegate = FuseliteDelegateCreate(&options);
  FuseliteInterpreterApplyDelegate(h.interpreter, h.delegate);
}

void Call(Handles& h, Random& random) {
  const auto index = static_cast<int32_t>(random.Int(-1, 6));
  std::vector<float> values(32, 0.25f);
  FuseliteTensor tensor;
  switch (random.Int(0, 16)) {
    case 0: h.Close(); return Load(h, random);
    case 1:
    case 2: return Create(h, index, random);
    case 3: return ApplyDelegate(h, random);
    case 4: {
      const int32_t dims[] = {index, random.Chance(0.8) ? 6 : 5, 1};
      FuseliteInterpreterResizeInput(h.interpreter, random.Int(0, 4), dims, random.Int(0, 3));
      break;
    }
    case 5:
    case 6: FuseliteInterpreterAllocate(h.interpreter); break;
    case 7:
    case 8: FuseliteInterpreterInvoke(h.interpreter); break;
    case 9: FuseliteInterpreterCancel(h.interpreter); break;
    case 10: FuseliteInterpreterResetVariables(h.interpreter); break;
    case 11:
      if (FuseliteInterpreterTensor(h.interpreter, index, &tensor) == kFuseliteOk) {
        EXPECT_LE(tensor.rank, kFuseliteMaxRank);
        EXPECT_NE(tensor.name, nullptr);
      }
      break;
    case 12: CopyIn(h, random); break;
    case 13:
      FuseliteInterpreterCopyOut(h.interpreter, random.Int(0, 4), values.data(),
                                 static_cast<size_t>(random.Int(0, 16)) * 8);
      break;
    case 14: FuseliteInterpreterSetProfiling(h.interpreter, index); break;
    case 15: {
      FuseliteProfileEvent events[3];
      EXPECT_LE(FuseliteInterpreterTakeEvents(h.interpreter, events, 3), 3u);
      break;
    }
    default:
      FuseliteInterpreterFindTensor(h.interpreter, random.Chance(0.5) ? "y" : "z");
      FuseliteInterpreterSignatureInput(h.interpreter, random.Chance(0.5) ? "serve" : nullptr,
                                        "in");
      FuseliteInterpreterSignatureOutput(h.interpreter, random.Chance(0.5) ? "serve" : nullptr,
                                         random.Chance(0.5) ? "out" : "in");
      FuseliteModelSignatureInputName(h.model, random.Int(0, 1), random.Int(0, 1));
      FuseliteModelSignatureOutputName(h.model, random.Int(0, 1), random.Int(0, 1));
      FuseliteModelSignatureKey(h.model, random.Int(0, 1));
      EXPECT_LE(FuseliteModelSignatureCount(h.model), 1u);
      FuseliteInterpreterInput(h.interpreter, random.Int(0, 4));
      FuseliteInterpreterOutput(h.interpreter, random.Int(0, 4));
      EXPECT_LE(FuseliteInterpreterInputCount(h.interpreter), 4u);
      EXPECT_LE(FuseliteInterpreterOutputCount(h.interpreter), 4u);
      EXPECT_LE(FuseliteInterpreterTensorCount(h.interpreter), 4096u);  // strangers add some
      FuseliteLastStatus();
      EXPECT_NE(FuseliteLastError(), nullptr);
      break;
  }
}

}  // namespace

void FuzzOne(std::span<const uint8_t> bytes) {
  Random random(bytes);
  Stranger stranger(random);
  Handles handles{.stranger = &stranger};
  const std::vector<std::byte>& file = AnyFile(random);
  handles.model = FuseliteModelLoadMemory(file.data(), file.size());
  Create(handles, 1, random);
  const int64_t calls = random.Int(1, 40);
  for (int64_t i = 0; i < calls; ++i) Call(handles, random);
  handles.Close();
}

}  // namespace fuselite::fuzz
