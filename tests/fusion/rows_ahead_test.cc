// Products of rows that a loop takes one by one: which are taken, and that blocks of them with what
// remains give what the whole body gives.
#include "fusion/rows_ahead.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "tests/fusion/graph_builder.h"
#include "tests/fusion/neighbours.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::IsEmpty;

constexpr int32_t kCount = 21, kWidth = 5, kCells = 7;

// A body that reads row `index` of `x`, and `state`.
struct Body : GraphBuilder {
  explicit Body(int32_t batch = 1, int32_t count = kCount, DataType counts = DataType::kInt32)
      : x(Input({count, batch, kWidth})),
        index(Input({}, counts)),
        state(Input({batch, kCells})),
        row(Op("GATHER", {x, index})) {}

  ValueId x, index, state, row;
};

using Bytes = std::vector<std::byte>;
using Bound = std::map<ValueId, const void*>;

// The outputs for inputs that are bound by value; none where the run fails.
std::vector<std::vector<float>> Run(const Graph& graph, const Bound& inputs) {
  Result<std::shared_ptr<const Executable>> executable = Compile(graph, Fused(), nullptr);
  EXPECT_TRUE(executable.ok()) << executable.status().message();
  if (!executable.ok()) return {};
  Execution execution(*executable);
  std::vector<std::vector<float>> outputs;
  for (ValueId v : graph.outputs) {
    outputs.emplace_back(graph.value(v).info.bytes() / sizeof(float));
  }
  std::vector<Bytes> variables;  // of this run
  variables.reserve(graph.inputs.size());
  int bound = 0;
  for (ValueId v : graph.inputs) {
    if (!graph.value(v).variable) {
      execution.BindInput(bound++, inputs.at(v));
      continue;
    }
    const auto* const bytes = static_cast<const std::byte*>(inputs.at(v));
    variables.emplace_back(bytes, bytes + graph.value(v).info.bytes());
    execution.BindVariable(static_cast<int>(variables.size()) - 1, variables.back().data());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    execution.BindOutput(static_cast<int>(i), outputs[i].data());
  }
  return execution.Run().ok() ? outputs : std::vector<std::vector<float>>();
}

// Random floats; integers are zeros.
std::map<ValueId, Bytes> RandomInputs(const Graph& graph) {
  Random random(1);
  std::map<ValueId, Bytes> inputs;
  for (ValueId v : graph.inputs) {
    const TensorInfo& info = graph.value(v).info;
    Bytes& bytes = inputs[v];
    bytes.resize(info.bytes());
    if (info.type != DataType::kFloat32) continue;
    for (size_t i = 0; i < bytes.size(); i += sizeof(float)) {
      const float value = random.Float(-1, 1);
      std::memcpy(bytes.data() + i, &value, sizeof value);
    }
  }
  return inputs;
}

// The results of row `i` among those of a block of rows that holds it.
void BindResults(const Graph& rest, const RowsAhead& ahead, int64_t i, Bound* inputs,
                 std::vector<std::vector<float>>* block) {
  const TensorInfo& from = rest.value(ahead.from).info;
  const int64_t count = from.shape[0];
  const int64_t begin = std::min<int64_t>(i / ahead.rows * ahead.rows, count - ahead.rows);
  const auto* const x = static_cast<const std::byte*>(inputs->at(ahead.from));
  const auto row = static_cast<int64_t>(from.bytes()) / count;
  *block = Run(ahead.graph, {{ahead.graph.inputs[0], x + begin * row}});
  ASSERT_EQ(block->size(), ahead.results.size());
  for (size_t k = 0; k < block->size(); ++k) {
    const int64_t size = rest.value(ahead.results[k]).info.elements();
    (*inputs)[ahead.results[k]] = (*block)[k].data() + (i - begin) * size;
  }
}

// Runs the graph for some rows, as it was and with the products taken out of it.
void ExpectSameResults(const Graph& whole, const std::vector<int64_t>& rows) {
  Graph rest = whole;
  const std::vector<RowsAhead> taken = TakeRowsAhead(rest);
  if (taken.empty()) return;
  std::map<ValueId, Bytes> given = RandomInputs(whole);
  for (const int64_t i : rows) {
    for (const RowsAhead& ahead : taken) {  // the first half of 64 bits is the number in 32
      std::memcpy(given[ahead.index].data(), &i, given[ahead.index].size());
    }
    Bound inputs;
    for (const auto& [v, bytes] : given) inputs[v] = bytes.data();
    const auto expected = Run(whole, inputs);
    if (expected.empty()) return;
    std::vector<std::vector<std::vector<float>>> blocks(taken.size());
    for (size_t k = 0; k < taken.size(); ++k) BindResults(rest, taken[k], i, &inputs, &blocks[k]);
    ExpectClose(expected, Run(rest, inputs), 1e-5f);
  }
}

// Compares every row of the body, and graphs that differ from it in one place.
void ExpectSameResults(Body& body) {
  Graph rest = body.graph();
  const std::vector<RowsAhead> taken = TakeRowsAhead(rest);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].from, body.x);
  EXPECT_EQ(taken[0].index, body.index);
  std::vector<int64_t> rows(body.shape(body.x)[0]);
  std::iota(rows.begin(), rows.end(), 0);
  ExpectSameResults(body.graph(), rows);
  ForEachNeighbour(body.graph(), [&](const std::string& what, const Graph& neighbour) {
    if (::testing::Test::HasFailure() || !Compile(neighbour, Unfused(), nullptr).ok()) return;
    SCOPED_TRACE(what);
    ExpectSameResults(neighbour, {0, 1});
  });
}

TEST(RowsAhead, AProductOfARow) {
  Body body;
  const ValueId product = body.Dense(body.row, kCells);
  body.Output(body.Op("ADD", {product, body.state}));
  ExpectSameResults(body);
}

TEST(RowsAhead, CountedBy64Bits) {
  Body body(1, kCount, DataType::kInt64);
  body.Output(body.Op("ADD", {body.Dense(body.row, kCells), body.state}));
  ExpectSameResults(body);
}

TEST(RowsAhead, FewerRowsThanABlock) {
  Body body(2, 3);
  const ValueId product = body.Dense(body.row, kCells, {{"fused_activation_function", kRelu}});
  body.Output(body.Op("ADD", {product, body.state}));
  ExpectSameResults(body);
}

TEST(RowsAhead, ProductsOfARowAndAState) {
  Body body;
  const ValueId both = body.Op("CONCATENATION", {body.row, body.state}, {{"axis", 1}});
  body.Output(body.Dense(both, 2 * kCells, {{"fused_activation_function", kRelu6}}));
  const ValueId product = body.Dense(body.row, kCells);
  body.Output(body.Op("MUL", {product, body.Dense(body.state, kCells)}));
  ExpectSameResults(body);
}

TEST(RowsAhead, ARowBetweenOthers) {
  Body body;
  const ValueId tanh = body.Op("TANH", {body.state});
  const ValueId all = body.Op("CONCATENATION", {body.state, body.row, tanh}, {{"axis", -1}});
  body.Output(body.Dense(all, 3));
  body.Output(body.Op("NEG", {body.row}));
  ExpectSameResults(body);
}

TEST(RowsAhead, ARowOfAnotherShape) {
  Body body;
  const ValueId flat = body.Op("RESHAPE", {body.row, body.Ints({kWidth})});
  const ValueId product = body.Dense(body.Op("EXPAND_DIMS", {flat, body.Ints({}, {0})}), kCells);
  body.Output(body.Op("ADD", {product, body.state}));
  ExpectSameResults(body);
}

TEST(RowsAhead, TakesNothingElse) {
  const auto taken = [](Body& body) { return TakeRowsAhead(body.graph()); };
  Body seen;
  seen.Output(seen.Dense(seen.row, kCells));
  EXPECT_THAT(taken(seen), IsEmpty());
  Body many(4);
  many.Output(many.Op("ADD", {many.Dense(many.row, kCells), many.state}));
  EXPECT_THAT(taken(many), IsEmpty());
  Body alone(1, 1);
  alone.Output(alone.Op("ADD", {alone.Dense(alone.row, kCells), alone.state}));
  EXPECT_THAT(taken(alone), IsEmpty());
  Body computed;
  const ValueId next = computed.Op("ABS", {computed.index});
  const ValueId row = computed.Op("GATHER", {computed.x, next});
  computed.Output(computed.Op("ADD", {computed.Dense(row, kCells), computed.state}));
  EXPECT_THAT(taken(computed), IsEmpty());
  Body below_state;
  const ValueId others = below_state.Input({1, kWidth});
  const ValueId rows = below_state.Op("CONCATENATION", {below_state.row, others}, {{"axis", 0}});
  below_state.Output(below_state.Op("ABS", {below_state.Dense(rows, kCells)}));
  EXPECT_THAT(taken(below_state), IsEmpty());
  Body one;
  const ValueId same = one.Op("CONCATENATION", {one.row}, {{"axis", 1}});
  one.Output(one.Op("ABS", {one.Dense(same, kCells)}));
  EXPECT_THAT(taken(one), IsEmpty());
  Body beside;
  const ValueId below = beside.Op("CONCATENATION", {beside.row, beside.row}, {{"axis", 0}});
  beside.Output(beside.Op("ABS", {beside.Dense(below, kCells)}));
  EXPECT_THAT(taken(beside), IsEmpty());
  Body twice;
  const ValueId doubled = twice.Op("CONCATENATION", {twice.row, twice.row}, {{"axis", 1}});
  twice.Output(twice.Op("ABS", {twice.Dense(doubled, kCells)}));
  EXPECT_THAT(taken(twice), IsEmpty());
  Body counted_by_16_bits(1, kCount, DataType::kInt16);
  counted_by_16_bits.Output(
      counted_by_16_bits.Op("ABS", {counted_by_16_bits.Dense(counted_by_16_bits.row, kCells)}));
  EXPECT_THAT(taken(counted_by_16_bits), IsEmpty());
  GraphBuilder several;
  const ValueId from = several.Input({kCount, 1, kWidth});
  const ValueId of_several = several.Op("GATHER", {from, several.Input({2}, DataType::kInt32)});
  several.Output(several.Op("ABS", {several.Dense(of_several, kCells)}));
  EXPECT_THAT(TakeRowsAhead(several.graph()), IsEmpty());
}

// Weights are cut by columns where they are floats, and have one for each element of a row.
TEST(RowsAhead, SplitsNoOtherWeights) {
  for (const bool bytes : {false, true}) {
    Body body(2);
    const ValueId both = body.Op("CONCATENATION", {body.row, body.state}, {{"axis", 1}});
    constexpr int32_t kBoth = kWidth + kCells;
    const ValueId weights =
        bytes ? body.Int8Constant({3, kBoth}, 0.01f) : body.Constant({3, 2 * kBoth});
    body.Output(body.Op("ABS", {body.Op("FULLY_CONNECTED", {both, weights, kNone})}));
    EXPECT_THAT(TakeRowsAhead(body.graph()), IsEmpty());
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
