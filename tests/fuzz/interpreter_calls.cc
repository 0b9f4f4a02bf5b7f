// The interpreter's C interface: calls in any order, with arguments that fit or not.
#include <gtest/gtest.h>

#include <vector>

#include "fuselite/delegate.h"
#include "fuselite/interpreter.h"
#include "interpreter/writer.h"
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

// One interpreter, and the model and the delegate that it needs.
struct Handles {
  FuseliteModel* model = nullptr;
  TfLiteDelegate* delegate = nullptr;
  FuseliteInterpreter* interpreter = nullptr;

  void Close() {
    FuseliteInterpreterDelete(interpreter);
    FuseliteDelegateDelete(delegate);
    FuseliteModelDelete(model);
    *this = {};
  }
};

void Call(Handles& h, Random& random) {
  static const std::vector<std::byte> file = Model();
  const auto index = static_cast<int32_t>(random.Int(-1, 6));
  std::vector<float> values(32, 0.25f);
  FuseliteTensor tensor;
  switch (random.Int(0, 16)) {
    case 0:
      h.Close();
      h.model = FuseliteModelLoadMemory(file.data(), random.Chance(0.9) ? file.size() : 100);
      break;
    case 1:
    case 2: {
      FuseliteInterpreterDelete(h.interpreter);
      FuseliteInterpreterOptions options = FuseliteInterpreterOptionsDefault();
      options.num_threads = index;
      options.preserve_tensors = random.Chance(0.3);
      if (random.Chance(0.3)) options.signature = random.Chance(0.5) ? "serve" : "nonesuch";
      if (random.Chance(0.1)) options.struct_size = 3;
      if (random.Chance(0.2)) options.max_memory = 64;
      h.interpreter = FuseliteInterpreterCreate(h.model, random.Chance(0.2) ? nullptr : &options);
      break;
    }
    case 3:
      if (h.delegate == nullptr) h.delegate = FuseliteDelegateCreate(nullptr);
      FuseliteInterpreterApplyDelegate(h.interpreter, h.delegate);
      break;
    case 4: {
      const int32_t dims[] = {index, random.Chance(0.8) ? 6 : 5, 1};
      FuseliteInterpreterResizeInput(h.interpreter, random.Int(0, 1), dims, random.Int(0, 3));
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
        EXPECT_LE(tensor.rank, 8);
        EXPECT_NE(tensor.name, nullptr);
      }
      break;
    case 12:
      FuseliteInterpreterCopyIn(h.interpreter, random.Int(0, 1), values.data(),
                                static_cast<size_t>(random.Int(0, 16)) * 8);
      break;
    case 13:
      FuseliteInterpreterCopyOut(h.interpreter, random.Int(0, 2), values.data(),
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
      FuseliteModelSignatureInputName(h.model, random.Int(0, 1), random.Int(0, 1));
      EXPECT_NE(FuseliteLastError(), nullptr);
      break;
  }
}

}  // namespace

void FuzzOne(std::span<const uint8_t> bytes) {
  Random random(bytes);
  Handles handles;
  static const std::vector<std::byte> file = Model();
  handles.model = FuseliteModelLoadMemory(file.data(), file.size());
  handles.interpreter = FuseliteInterpreterCreate(handles.model, nullptr);
  const int64_t calls = random.Int(1, 40);
  for (int64_t i = 0; i < calls; ++i) Call(handles, random);
  handles.Close();
}

}  // namespace fuselite::fuzz
