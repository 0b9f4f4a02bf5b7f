// Products of rows that a loop takes one by one: which are taken, and that blocks of them with what
// remains give what the whole body gives.
#include "fusion/rows_ahead.h"

#include <algorithm>
#include <map>

#include "tests/fusion/graph_builder.h"

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

// The outputs for inputs that are bound by value.
std::vector<std::vector<float>> Run(Graph graph, std::map<ValueId, const void*> inputs) {
  const std::vector<ValueId> order = graph.inputs;
  std::vector<std::vector<float>> outputs;
  for (ValueId v : graph.outputs) outputs.emplace_back(graph.value(v).info.elements());
  Result<std::shared_ptr<const Executable>> executable =
      Compile(std::move(graph), Fused(), nullptr, nullptr);
  EXPECT_TRUE(executable.ok()) << executable.status().message();
  Execution execution(*executable);
  for (size_t i = 0; i < order.size(); ++i) {
    execution.BindInput(static_cast<int>(i), inputs.at(order[i]));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    execution.BindOutput(static_cast<int>(i), outputs[i].data());
  }
  EXPECT_TRUE(execution.Run().ok());
  return outputs;
}

std::vector<float> RandomFloats(Random& random, int64_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = random.Float(-1, 1);
  return values;
}

// Runs the body for each row, as it was and with the products taken out of it.
void ExpectSameResults(Body& body) {
  const Graph whole = body.graph();
  Graph rest = body.graph();
  const std::vector<RowsAhead> taken = TakeRowsAhead(rest);
  ASSERT_EQ(taken.size(), 1u);
  const RowsAhead& ahead = taken[0];
  EXPECT_EQ(ahead.from, body.x);
  EXPECT_EQ(ahead.index, body.index);
  const int64_t count = body.shape(body.x)[0], row_elements = body.shape(body.x).elements(1, 3);
  const std::vector<float> x = RandomFloats(body.random(), count * row_elements);
  const std::vector<float> state = RandomFloats(body.random(), body.shape(body.state).elements());
  for (int64_t i = 0; i < count; ++i) {  // whose first half is the number in 32 bits
    std::map<ValueId, const void*> inputs = {
        {body.x, x.data()}, {body.index, &i}, {body.state, state.data()}};
    const auto expected = Run(whole, inputs);
    const int64_t begin = std::min<int64_t>(i / ahead.rows * ahead.rows, count - ahead.rows);
    const auto block = Run(ahead.graph, {{ahead.graph.inputs[0], x.data() + begin * row_elements}});
    for (size_t k = 0; k < ahead.results.size(); ++k) {
      const int64_t size = rest.value(ahead.results[k]).info.elements();
      inputs[ahead.results[k]] = block[k].data() + (i - begin) * size;
    }
    ExpectClose(expected, Run(rest, inputs), 1e-5f);
  }
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
  Body beside;
  const ValueId below = beside.Op("CONCATENATION", {beside.row, beside.row}, {{"axis", 0}});
  beside.Output(beside.Op("ABS", {beside.Dense(below, kCells)}));
  EXPECT_THAT(taken(beside), IsEmpty());
}

}  // namespace
}  // namespace fuselite::fusion::testing
