// State of a model that lasts from run to run, until it is reset.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "tests/interpreter/test_graph.h"

namespace fuselite::interpreter {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

const kernels::OperatorDef& Op(std::string_view name) { return *kernels::FindOperator(name); }

// h = w x + r h of one unit, with w = r = 1: the sum of all inputs.
TEST(InterpreterState, LastsUntilItIsReset) {
  ModelWriter writer;
  const int in = writer.AddTensor("in", DataType::kFloat32, {1, 1});
  const int out = writer.AddTensor("out", DataType::kFloat32, {1, 1});
  const int w = writer.AddConstant<float>("w", DataType::kFloat32, {1, 1}, {1});
  const int r = writer.AddConstant<float>("r", DataType::kFloat32, {1, 1}, {1});
  const int bias = writer.AddConstant<float>("bias", DataType::kFloat32, {1}, {0});
  const int state = writer.AddTensor({"h", DataType::kFloat32, {1, 1}, {}, {}, true, {}});
  writer.AddOperator(Op("RNN"), {in, w, r, bias, state}, {out});
  writer.SetInputs({in});
  writer.SetOutputs({out});
  const auto interpreter = OpenBuiltin(writer);
  interpreter->ResetVariables();  // which have no memory yet
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(RunOn(*interpreter, {1}), ElementsAre(1));
  EXPECT_THAT(RunOn(*interpreter, {2}), ElementsAre(3));
  ASSERT_OK(interpreter->AllocateTensors());  // which has nothing to do, as in LiteRT
  ASSERT_OK(interpreter->ResizeInput(0, std::vector<int32_t>{1, 1}));
  ASSERT_OK(interpreter->AllocateTensors());
  EXPECT_THAT(RunOn(*interpreter, {1}), ElementsAre(4));
  interpreter->ResetVariables();
  EXPECT_THAT(RunOn(*interpreter, {2}), ElementsAre(2));
}

// As in LiteRT, which sets int8 to its zero point, and others to bytes of 0.
TEST(InterpreterState, OfBytesIsResetToZero) {
  ModelWriter writer;
  const Quantization scale{.scales = {0.5f}, .zero_points = {7}};
  const int in = writer.AddTensor("in", DataType::kFloat32, {1});
  const int s8 = writer.AddTensor({"s8", DataType::kInt8, {3}, scale, {}, true, {}});
  const int u8 = writer.AddTensor({"u8", DataType::kUInt8, {3}, scale, {}, true, {}});
  writer.SetInputs({in});
  writer.SetOutputs({in});
  const auto interpreter = OpenBuiltin(writer);
  ASSERT_OK(interpreter->AllocateTensors());
  const auto bytes = [&](int tensor) {
    return std::span(static_cast<uint8_t*>(interpreter->tensor(tensor).data), 3);
  };
  for (const int tensor : {s8, u8}) std::memset(bytes(tensor).data(), 99, 3);
  interpreter->ResetVariables();
  EXPECT_THAT(bytes(s8), Each(7));
  EXPECT_THAT(bytes(u8), Each(0));
}

}  // namespace
}  // namespace fuselite::interpreter
