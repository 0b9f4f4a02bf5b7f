// Elements written into lists, as TensorFlow's converter writes TensorListSetItem.
#include "partitioner/claim/list_writes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "kernels/concatenation/concatenation.h"
#include "kernels/elementwise/elementwise.h"
#include "tests/partitioner/fake_host.h"
#include "tests/partitioner/subgraph_models.h"

namespace fuselite::partitioner {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::FakeHost;
using ::testing::Lt;

constexpr DataType kInt32 = DataType::kInt32;

// What a write consists of; a test changes one part.
struct Parts {
  Shape list = {5, 2, 3}, element = {1, 2, 3}, result = {5, 2, 3};
  DataType type = DataType::kFloat32;
  std::vector<int32_t> head_begin = {0, 0, 0}, index_others = {-1, -1};
  std::vector<int32_t> next_others = {0, 0}, tail_size = {-1, -1, -1};
  int32_t step = 1;
  kernels::Activation activation = kernels::Activation::kNone;  // of the step
  int axis = 0;
  const char *reshape = "RESHAPE", *sum = "ADD", *joins_vector = "CONCATENATION";
  bool of_one_list = true, of_one_index = true;
  bool step_comes_first = false, bare_index = false;
};

// A host's graph with a write, and the partition of all its nodes.
class Written {
 public:
  explicit Written(const Parts& parts = {}) : parts_(parts) {
    list = host.AddTensor(parts.list, parts.type);
    element = host.AddTensor(parts.element, parts.type);
    index = host.AddTensor({}, kInt32);
    end = Vector(index, parts.index_others);
    const int first = parts.of_one_index ? index : host.AddTensor({}, kInt32);
    const int next = Next(first);
    head = host.AddTensor({2, 2, 3}, parts.type), tail = host.AddTensor({2, 2, 3}, parts.type);
    result = host.AddTensor(parts.result, parts.type);
    Add("SLICE", {list, Constant(parts.head_begin), end}, head);
    const int other = parts.of_one_list ? list : host.AddTensor(parts.list, parts.type);
    Add("SLICE", {other, Vector(next, parts.next_others), Constant(parts.tail_size)}, tail);
    kernels::Params params;
    params.as<kernels::ConcatenationParams>().axis = parts.axis;
    Add("CONCATENATION", {head, element, tail}, result, &params);
    partition.outputs = {result};
  }

  void Take() { TakeListWrites(host.context, partition); }
  // By their operators; "" where nothing is left.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const SharedNode& node : partition.nodes) {
      names.emplace_back(node->op != nullptr ? node->op->name : "");
    }
    return names;
  }

  FakeHost host;
  Partition partition;
  int list, element, index, end, head, tail, result;

 private:
  int Constant(const std::vector<int32_t>& values) {
    return host.AddConstant({static_cast<int>(values.size())}, values);
  }
  void Add(const char* op, std::vector<int> inputs, int output,
           const kernels::Params* params = nullptr) {
    const int node = host.AddNode(op, std::move(inputs), {output}, params);
    Result<ImportedNode> imported = ImportNode(&host.context, node, true);
    ASSERT_TRUE(imported.ok()) << imported.status().ToString();
    partition.nodes.push_back(std::make_shared<const ImportedNode>(*std::move(imported)));
  }
  int Next(int first) {
    const int step = host.AddConstant({}, std::vector{parts_.step});
    const int next = host.AddTensor({}, kInt32);
    kernels::Params params;
    params.as<kernels::ArithmeticParams>().activation = parts_.activation;
    Add(parts_.sum, parts_.step_comes_first ? std::vector{step, first} : std::vector{first, step},
        next, &params);
    return next;
  }
  int Vector(int first, const std::vector<int32_t>& others) {
    const bool packs = std::string_view(parts_.joins_vector) == "PACK";
    const int rank = static_cast<int>(others.size()) + 1;
    const int vector = host.AddTensor({rank}, kInt32);
    std::vector<int> inputs = {first};
    if (parts_.bare_index) {
      Add(parts_.reshape, {first, host.AddConstant({1}, std::vector{1})}, vector);
      return vector;
    }
    if (!packs) {
      inputs[0] = host.AddTensor({1}, kInt32);
      Add(parts_.reshape, {first, host.AddConstant({1}, std::vector{1})}, inputs[0]);
      inputs.push_back(Constant(others));
    } else {
      for (const int32_t value : others) inputs.push_back(host.AddConstant({}, std::vector{value}));
    }
    Add(parts_.joins_vector, inputs, vector);
    return vector;
  }

  const Parts parts_;
};

void ExpectTaken(const Parts& parts) {
  Written written(parts);
  written.Take();
  const ImportedNode& update = *written.partition.nodes.back();
  EXPECT_EQ(update.op, kernels::FindOperator("DYNAMIC_UPDATE_SLICE"));
  EXPECT_THAT(update.inputs, ElementsAre(written.list, written.element, written.end));
  EXPECT_THAT(update.outputs, ElementsAre(written.result));
  EXPECT_EQ(std::ranges::count(written.Names(), "SLICE"), 0);
}

TEST(ListWrite, IsAnUpdate) { ExpectTaken({}); }

TEST(ListWrite, IsAnUpdateInOtherWords) {
  ExpectTaken({.reshape = "EXPAND_DIMS"});
  ExpectTaken({.joins_vector = "PACK"});
  ExpectTaken({.step_comes_first = true});
  for (const bool bare : {false, true}) {
    ExpectTaken({.list = {5},
                 .element = {1},
                 .result = {5},
                 .head_begin = {0},
                 .index_others = {},
                 .next_others = {},
                 .tail_size = {-1},
                 .bare_index = bare});
  }
}

// Each of these differs in one place from a write.
TEST(ListWrite, IsNoOtherConcatenation) {
  const Parts others[] = {
      {.element = {2, 2, 3}},
      {.element = {1, 1, 3}},
      {.element = {1, 6}},
      {.head_begin = {1, 0, 0}},
      {.head_begin = {0, 0, 1}},
      {.index_others = {1, -1}},
      {.next_others = {0, 1}},
      {.tail_size = {1, -1, -1}},
      {.step = 2},
      {.activation = kernels::Activation::kRelu6},
      {.axis = 1},
      {.sum = "SUB"},
      {.of_one_list = false},
      {.of_one_index = false},
  };
  for (const Parts& parts : others) {
    Written written(parts);
    const std::vector<std::string> names = written.Names();
    written.Take();
    EXPECT_EQ(written.Names(), names) << "other " << &parts - others;
  }
}

TEST(ListWrite, HasOneQuantization) {
  for (const bool differs : {false, true}) {
    Written written({.type = DataType::kInt8});
    for (int tensor : {written.list, written.element, written.result}) {
      written.host.context.tensors[tensor].params = {0.5f, 3};
    }
    if (differs) written.host.context.tensors[written.element].params.zero_point = 4;
    written.Take();
    EXPECT_EQ(std::ranges::count(written.Names(), "DYNAMIC_UPDATE_SLICE"), differs ? 0 : 1);
  }
}

// The host gives a partition what its own nodes read: not the list, where it has no SLICE of it.
TEST(ListWrite, IsMadeInOnePartition) {
  Written written;
  std::erase_if(written.partition.nodes,
                [&](const SharedNode& node) { return node->outputs[0] == written.head; });
  written.Take();
  EXPECT_EQ(written.Names().back(), "CONCATENATION");
}

TEST(ListWrite, LeavesWhatOthersRead) {
  Written outside;
  outside.partition.outputs.push_back(outside.tail);
  outside.Take();
  EXPECT_EQ(std::ranges::count(outside.Names(), "SLICE"), 1);
  EXPECT_EQ(outside.Names().back(), "DYNAMIC_UPDATE_SLICE");

  Written inside;
  ImportedNode reader = *inside.partition.nodes.back();
  reader.op = kernels::FindOperator("NEG");
  reader.inputs = {inside.head};
  reader.outputs = {inside.host.AddTensor({2, 2, 3})};
  inside.partition.nodes.push_back(std::make_shared<const ImportedNode>(std::move(reader)));
  inside.Take();
  EXPECT_EQ(std::ranges::count(inside.Names(), "SLICE"), 1);
}

// What a file leaves out is told when the model runs.
TEST(ListWrite, OfNodesWithoutOperands) {
  for (const size_t broken : {0, 1, 2, 3, 4, 5, 6}) {
    Written written;
    ASSERT_LT(broken, written.partition.nodes.size());
    ImportedNode node = *written.partition.nodes[broken];
    node.inputs.clear();
    written.partition.nodes[broken] = std::make_shared<const ImportedNode>(std::move(node));
    written.Take();
    EXPECT_EQ(std::ranges::count(written.Names(), "DYNAMIC_UPDATE_SLICE"), 0) << broken;
  }
}

using testing::Builder;
using testing::kFloat;
using testing::kInt;

// Writes an element into `list` at `turn`, and gives the list.
int WriteElement(Builder& b, int list, int turn, int next, int element) {
  const auto vector = [&](int first, int32_t others) {
    const int whole =
        b.Op("RESHAPE", {first, b.AddConstant("one", kInt, {1}, std::vector{1})}, {1}, kInt);
    const int rest = b.AddConstant("rest", kInt, {2}, std::vector{others, others});
    return b.Op("CONCATENATION", {whole, rest}, {3}, kInt);
  };
  const auto all = [&](int32_t value) {
    return b.AddConstant("all", kInt, {3}, std::vector{value, value, value});
  };
  const int head = b.Op("SLICE", {list, all(0), vector(turn, -1)}, {0, 1, 8});
  const int tail = b.Op("SLICE", {list, vector(next, 0), all(-1)}, {0, 1, 8});
  return b.Op("CONCATENATION", {head, element, tail}, {20, 1, 8});
}

enum class Reads { kNothing, kBefore, kAfter, kTwice };

// A recurrent layer that gives all turns' results. Its body may read the list, before it writes
// into it or afterwards, or hand it on as two values.
void WriteLayer(Builder& b, Reads reads) {
  const Shape list_shape = {20, 1, 8}, row_shape = {1, 8};
  const std::vector<Shape> shapes = {{20, 1, 6}, list_shape, row_shape, list_shape};
  const int sequence = b.In(shapes[0]), zero = b.Number(0);
  const int list = b.AddConstant("list", kFloat, list_shape, std::vector<float>(160));
  const int state = b.AddConstant("state", kFloat, row_shape, std::vector<float>(8));
  std::vector<int> last = {b.AddTensor("count", kInt, Shape())};
  for (const Shape& shape : shapes) last.push_back(b.AddTensor("last", kFloat, shape));
  b.AddControlFlow(tflite::kTfLiteBuiltinWhile, {1, 2}, {zero, sequence, list, state, list}, last);
  b.End({last[2], last[3], last[4]});
  b.Below(20, shapes);
  b.AddSubgraph("body");
  const int turn = b.In(Shape(), kInt), rows = b.In(shapes[0]), results = b.In(list_shape);
  const int before = b.In(row_shape), others = b.In(list_shape);
  int row = b.Dense(b.Op("GATHER", {rows, turn}, {1, 6}), {1, 6}, 8);
  if (reads == Reads::kBefore) {
    row = b.Op("ADD", {row, b.Op("GATHER", {results, turn}, row_shape)}, row_shape);
  }
  const int sum = b.Op("ADD", {row, b.Dense(before, row_shape, 8)}, row_shape);
  int now = b.Op("TANH", {sum}, row_shape);
  const int next = b.Next(turn);
  const int shape = b.AddConstant("shape", kInt, {3}, std::vector{1, 1, 8});
  const int element = b.Op("RESHAPE", {now, shape}, {1, 1, 8});
  const int written = WriteElement(b, results, turn, next, element);
  // As two values, the one is read at the element that the turn writes into the other.
  const int read = reads == Reads::kAfter ? written : reads == Reads::kTwice ? others : -1;
  if (read >= 0) now = b.Op("ADD", {now, b.Op("GATHER", {read, turn}, row_shape)}, row_shape);
  b.End({next, rows, written, now, reads == Reads::kTwice ? written : others});
}

// Its turns are computed in few calls of the body.
TEST(ListWrite, OfALoopsTurns) {
  for (const Reads reads : {Reads::kNothing, Reads::kBefore, Reads::kAfter, Reads::kTwice}) {
    SCOPED_TRACE(static_cast<int>(reads));
    Builder b;
    WriteLayer(b, reads);
    const testing::Delegated delegated = testing::ExpectDelegateAgrees(b);
    EXPECT_TRUE(delegated.whole());
    EXPECT_THAT(delegated.calls.at(2), Each(Lt(20)));
  }
}

}  // namespace
}  // namespace fuselite::partitioner
