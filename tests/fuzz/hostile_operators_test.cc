// Operators whose parameters mean harm.
#include <algorithm>

#include "runtime/tflite/builtin_codes.h"
#include "tests/fuzz/hostile.h"

namespace fuselite::fuzz {
namespace {

using interpreter::ModelWriter;

struct Odd {
  const char* error;
  const char* op;
  std::vector<std::pair<const char*, double>> fields;
  std::vector<Shape> shapes = {{1, 8, 8, 2}, {2, 3, 3, 2}, {2}};
};
std::ostream& operator<<(std::ostream& out, const Odd& odd) {
  out << odd.op;
  for (const auto& [name, value] : odd.fields) out << " " << name << "=" << value;
  return out;
}

void SetField(const kernels::OperatorDef& op, std::string_view name, double value,
              kernels::Params& params) {
  const auto field = std::ranges::find(op.fields, name, &kernels::Field::name);
  ASSERT_NE(field, op.fields.end()) << op.name << " " << name;
  const auto number = static_cast<int32_t>(value);
  std::memcpy(static_cast<std::byte*>(params.data()) + field->offset, &number, sizeof(number));
}

const Odd kOdd[] = {
    {"stride", "CONV_2D", {{"stride_h", 0}}},
    {"stride", "CONV_2D", {{"stride_w", -1}}},
    {"dilation", "CONV_2D", {{"dilation_h_factor", 0}}},
    {"dilation", "CONV_2D", {{"dilation_w_factor", INT32_MIN}}},
};

class OddOperator : public ::testing::TestWithParam<Odd> {};

TEST_P(OddOperator, IsRefusedInOneLine) {
  const Odd& odd = GetParam();
  const kernels::OperatorDef& op = Op(odd.op);
  kernels::Params params;
  kernels::SetDefaults(op.fields, params.data());
  for (const auto& [name, value] : odd.fields) SetField(op, name, value, params);
  ModelWriter writer;
  std::vector<int> inputs;
  for (const Shape& shape : odd.shapes) {
    inputs.push_back(writer.AddTensor("in", DataType::kFloat32, shape));
  }
  const int out = writer.AddTensor("out", DataType::kFloat32, {1});
  writer.AddOperator(op, params, inputs, {out});
  writer.SetInputs(inputs);
  writer.SetOutputs({out});
  ExpectRefused(writer.Finish(), odd.error);
}

INSTANTIATE_TEST_SUITE_P(HostileOperators, OddOperator, ::testing::ValuesIn(kOdd));

struct Greedy {
  const char* error;
  const char* op;
  Shape shape;  // of the constant
  std::vector<int32_t> values;
  bool first = false;  // the constant is the first operand, a value the second
};
std::ostream& operator<<(std::ostream& out, const Greedy& greedy) {
  out << greedy.op;
  for (int32_t value : greedy.values) out << " " << value;
  return out;
}

constexpr int32_t kMany = INT32_MAX;
const Greedy kGreedy[] = {
    {"a dimension of 4294967294", "TILE", {4}, {kMany, kMany, kMany, kMany}},
    {"max_memory allows", "TILE", {4}, {1, 1, 1 << 28, 1}},
    {"a multiple of -1", "TILE", {4}, {1, -1, 1, 1}},
    {"2 multiples for rank 4", "TILE", {2}, {1, 1}},
    {"too many elements", "BROADCAST_TO", {5}, {kMany, kMany, 2, 2, 1}},
    {"max_memory allows", "BROADCAST_TO", {5}, {1 << 28, 1, 2, 2, 1}},
    {"rank 17 exceeds 16", "BROADCAST_TO", {17}, std::vector<int32_t>(17, 1)},
    {"a dimension of -1", "BROADCAST_TO", {1}, {-1}},
    {"a dimension of 4294967296", "PAD", {4, 2}, {0, 0, kMany, kMany, kMany, kMany, kMany, kMany}},
    {"a padding of -3", "PAD", {4, 2}, {0, 0, -3, 0, 0, 0, 0, 0}},
    {"max_memory allows", "PAD", {4, 2}, {1 << 28, 0, 0, 0, 0, 0, 0, 0}},
    {"a padding of 5 has only 1 elements", "MIRROR_PAD", {4, 2}, {0, 0, 5, 5, 0, 0, 0, 0}},
    {"memory", "RESIZE_BILINEAR", {2}, {kMany, kMany}},
    {"cannot resize [1,2,2,1] to -1 x 0", "RESIZE_BILINEAR", {2}, {-1, 0}},
    {"max_memory allows", "RESIZE_NEAREST_NEIGHBOR", {2}, {1 << 14, 1 << 14}},
    {"too many elements", "RESHAPE", {4}, {kMany, kMany, kMany, kMany}},
    {"more than one -1", "RESHAPE", {2}, {-1, -1}},
    {"rank 17 exceeds 16", "RESHAPE", {17}, std::vector<int32_t>(17, 1)},
    {"axis 2147483647 is out of range", "EXPAND_DIMS", {1}, {kMany}},
    {"names axis 0 twice", "TRANSPOSE", {4}, {0, 0, 1, 9}},
    {"axis -9 is out of range", "MEAN", {2}, {0, -9}},
    {"axis 2147483647 is out of range", "SUM", {1}, {kMany}},
    {"axis -2147483648 is out of range", "REVERSE_V2", {1}, {INT32_MIN}},
    {"are out of [1,2,2,1]", "GATHER_ND", {1, 4}, {0, 5, 0, 0}},
    {"index -2147483648 is not in [0, 1)", "GATHER", {1}, {INT32_MIN}},
    {"axis 4 is out of range", "CUMSUM", {}, {4}},
    {"machine", "FILL", {2}, {kMany, kMany}, true},
    {"a dimension of -1", "FILL", {1}, {-1}, true},
    {"max_memory allows", "FILL", {2}, {1 << 28, 4}, true},
    {"splits into 0 parts", "SPLIT", {1}, {kMany}, true},
};

class GreedyOperator : public ::testing::TestWithParam<Greedy> {};

TEST_P(GreedyOperator, IsRefusedInOneLine) {
  const Greedy& greedy = GetParam();
  if (kAddressSanitizer && std::string_view(greedy.error) == "memory") {
    GTEST_SKIP() << "AddressSanitizer ends a program that is refused memory";
  }
  // Once known from the file, once only when the model runs.
  for (const bool constant : {true, false}) {
    SCOPED_TRACE(constant ? "constant" : "computed");
    ModelWriter writer;
    const int x =
        writer.AddTensor("x", DataType::kFloat32,
                         std::string_view(greedy.op) == "FILL" ? Shape{} : Shape{1, 2, 2, 1});
    int values =
        writer.AddConstant<int32_t>("values", DataType::kInt32, greedy.shape, greedy.values);
    writer.SetInputs({x});
    if (!constant) {
      // What is added is 0, but only the run says so.
      const int zero = writer.AddTensor("zero", DataType::kInt32, {});
      const int sum = writer.AddTensor("sum", DataType::kInt32, greedy.shape);
      writer.AddOperator(Op("ADD"), {values, zero}, {sum});
      writer.SetInputs({x, zero});
      values = sum;
    }
    const int out = writer.AddTensor("out", DataType::kFloat32, {1});
    writer.AddOperator(Op(greedy.op),
                       greedy.first ? std::vector{values, x} : std::vector{x, values}, {out});
    writer.SetOutputs({out});
    ExpectRefused(writer.Finish(), greedy.error);
  }
}

INSTANTIATE_TEST_SUITE_P(HostileOperators, GreedyOperator, ::testing::ValuesIn(kGreedy));

// Whoever writes the input writes a byte, which chose the 190th branch.
TEST(HostileOperators, ConditionsThatAreNoBools) {
  ModelWriter writer;
  const int choice = writer.AddTensor("choice", DataType::kBool, {});
  const int x = writer.AddTensor("x", DataType::kFloat32, {2});
  const int out = writer.AddTensor("out", DataType::kFloat32, {2});
  writer.AddControlFlow(tflite::kTfLiteBuiltinIf, {1, 2}, {choice, x}, {out});
  writer.SetInputs({choice, x});
  writer.SetOutputs({out});
  for (const char* name : {"NEG", "ABS"}) {
    writer.AddSubgraph(name);
    writer.AddTensor("in", DataType::kFloat32, {2});
    writer.AddTensor("out", DataType::kFloat32, {2});
    writer.AddOperator(Op(name), {0}, {1});
    writer.SetInputs({0});
    writer.SetOutputs({1});
  }
  const Bytes file = writer.Finish();
  const auto model = interpreter::LoadModelFromMemory(file, nullptr);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  for (const bool delegated : {false, true}) {
    partitioner::Delegate delegate({});
    auto interpreter = interpreter::Interpreter::Create(*model);
    ASSERT_TRUE(interpreter.ok());
    if (delegated) {
      ASSERT_TRUE((*interpreter)->ApplyDelegate(delegate.c_struct()).ok());
    }
    ASSERT_TRUE((*interpreter)->AllocateTensors().ok());
    for (const uint8_t byte : {0, 1, 2, 190, 255}) {
      SCOPED_TRACE(testing::Message() << int{byte} << (delegated ? " delegated" : " alone"));
      *static_cast<uint8_t*>((*interpreter)->input(0).data) = byte;
      const std::array<float, 2> values = {-3, 4};
      std::memcpy((*interpreter)->input(1).data, values.data(), sizeof(values));
      ASSERT_TRUE((*interpreter)->Invoke().ok());
      EXPECT_EQ(static_cast<const float*>((*interpreter)->output(0).data)[1], byte != 0 ? -4 : 4);
    }
  }
}

// The interpreter's own operators have no C struct, and so no version beside those they know.
TEST(Hashtable, OfAnotherVersionIsRefused) {
  for (const int version : {2, 3}) {
    ModelWriter writer;
    const int table = writer.AddTensor("table", DataType::kResource, {1});
    writer.AddOperator(Op("HASHTABLE"), {}, {table}, version);
    writer.SetInputs({});
    writer.SetOutputs({table});
    ExpectRefused(writer.Finish(), ("HASHTABLE version " + std::to_string(version)).c_str());
  }
}

// Images of 2^30 columns, as many as `batch`.
Bytes ManyColumns(int32_t batch) {
  constexpr int32_t kColumns = 1 << 30;
  ModelWriter writer;
  const Quantization q{.scales = {0.5f}, .zero_points = {0}};
  const int in = writer.AddTensor("in", DataType::kInt8, {batch, 2, 2, 1}, q);
  const int size = writer.AddConstant<int32_t>("size", DataType::kInt32, {2}, {1, kColumns});
  const int out = writer.AddTensor("out", DataType::kInt8, {batch, 1, kColumns, 1}, q);
  writer.AddOperator(Op("RESIZE_BILINEAR"), {in, size}, {out});
  writer.SetInputs({in});
  writer.SetOutputs({out});
  return writer.Finish();
}

TEST(Resize, OfNoImagesHoldsNoTable) {
  for (const bool delegated : {false, true}) {
    EXPECT_EQ(Outcome(ManyColumns(0), delegated), Status().ToString());
  }
}

TEST(Resize, BeyondTheBudgetIsNotEvenPlanned) { ExpectRefused(ManyColumns(1), "max_memory"); }

// What depends on constants alone is computed when the model is prepared.
TEST(Constants, OfGigabytesAreNotComputed) {
  ModelWriter writer;
  const int in = writer.AddTensor("in", DataType::kFloat32, {1 << 10});
  const int dims = writer.AddConstant<int32_t>("dims", DataType::kInt32, {2}, {1 << 17, 1 << 17});
  const int one = writer.AddConstant<float>("one", DataType::kFloat32, {}, {1});
  const int filled = writer.AddTensor("filled", DataType::kFloat32, {1 << 17, 1 << 17});
  const int out = writer.AddTensor("out", DataType::kFloat32, {1 << 10});
  writer.AddOperator(Op("FILL"), {dims, one}, {filled});
  writer.AddOperator(Op("NEG"), {in}, {out});
  writer.SetInputs({in});
  writer.SetOutputs({filled, out});
  ExpectRefused(writer.Finish(), "asks for 68.7 GB of memory");
}

}  // namespace
}  // namespace fuselite::fuzz
