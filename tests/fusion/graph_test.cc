// The order of nodes and the readers of values, against lists that are looked through.
#include "fusion/graph/graph.h"

#include <algorithm>
#include <map>

#include "fusion/graph/splice.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAreArray;

// A graph of sums, and what it should know.
class Model {
 public:
  explicit Model(Random& random) : random_(random) {
    for (int i = 0; i < 4; ++i) values_.push_back(graph_.AddValue({}));
  }

  void Change() {
    if (order_.empty() || random_.Chance(0.5)) return Insert();
    const auto at = static_cast<size_t>(random_.Int(0, static_cast<int64_t>(order_.size()) - 1));
    if (random_.Chance(0.3)) {
      graph_.Remove(order_[at]);
      order_.erase(order_.begin() + static_cast<int>(at));
    } else if (random_.Chance(0.5)) {
      graph_.Replace(order_[at], Sum());
    } else {
      const ValueId from = AnyValue(), to = AnyValue();
      if (from != to) graph_.ReplaceUses(from, to);
    }
  }

  void Check() const {
    ASSERT_THAT(graph_.order(), ElementsAreArray(order_));
    for (size_t i = 1; i < order_.size(); ++i) {
      ASSERT_TRUE(graph_.Precedes(order_[i - 1], order_[i]));
      ASSERT_FALSE(graph_.Precedes(order_[i], order_[i - 1]));
    }
    std::map<ValueId, std::map<NodeId, int>> readers;
    for (const NodeId id : order_) {
      for (const ValueId v : graph_.node(id).inputs) ++readers[v][id];
    }
    for (const ValueId v : values_) {
      const auto& expected = readers[v];
      ASSERT_EQ(graph_.consumers(v).size(), expected.size());
      ASSERT_TRUE(std::ranges::equal(
          graph_.consumers(v), expected,
          [](const auto& a, const auto& b) { return a.node == b.first && a.inputs == b.second; }));
    }
  }

 private:
  ValueId AnyValue() {
    return values_[static_cast<size_t>(random_.Int(0, static_cast<int64_t>(values_.size()) - 1))];
  }
  Node Sum() {
    Node node;
    node.op = kernels::FindOperator("ADD_N");
    for (int64_t i = random_.Int(1, 4); i > 0; --i) node.inputs.push_back(AnyValue());
    return node;
  }
  void Insert() {
    if (order_.empty() || random_.Chance(0.3)) {
      order_.push_back(graph_.AddNode(Sum()));
      return;
    }
    // Mostly before the same node, until there is no number left between it and its neighbour.
    const size_t at = random_.Chance(0.9) ? order_.size() - 1 : 0;
    order_.insert(order_.begin() + static_cast<int>(at), graph_.InsertBefore(order_[at], Sum()));
  }

  Random& random_;
  Graph graph_;
  std::vector<ValueId> values_;
  std::vector<NodeId> order_;
};

TEST(Graph, KnowsOrderAndReaders) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    Model model(random);
    for (int i = 0; i < 300; ++i) {
      model.Change();
      if (i % 10 == 0) model.Check();
      if (::testing::Test::HasFatalFailure()) return;
    }
    model.Check();
  }
}

TEST(Graph, HasRoomBeforeTheSameNodeForAnyNumber) {
  Graph graph;
  Node node;
  node.op = kernels::FindOperator("ADD_N");
  std::vector<NodeId> expected = {graph.AddNode(node)};
  const NodeId last = graph.AddNode(node);
  for (int i = 0; i < 200; ++i) expected.push_back(graph.InsertBefore(last, node));
  expected.push_back(last);
  EXPECT_THAT(graph.order(), ElementsAreArray(expected));
  for (size_t i = 1; i < expected.size(); ++i) {
    EXPECT_TRUE(graph.Precedes(expected[i - 1], expected[i]));
  }
}

// What stands for the body's values is used, the others are copied, once each.
TEST(Splice, PutsABodyBetweenItsCallersValues) {
  GraphBuilder body;
  const ValueId x = body.Input({2}), bias = body.Constant({2});
  const ValueId sum = body.Op("ADD", {x, bias});
  body.Output(body.Op("FULLY_CONNECTED",
                      {body.Op("MUL", {sum, bias}), body.Constant({3, 2}), kNone},
                      {{"keep_num_dims", 1}}));
  body.graph().value(sum).host_tensor = 7;
  GraphBuilder caller;
  const ValueId given = caller.Op("NEG", {caller.Input({2})});
  const ValueId result = caller.graph().AddValue(body.graph().value(body.graph().outputs[0]));
  Splice(body.graph(), {{x, given}, {body.graph().outputs[0], result}}, {5}, caller.graph());
  const std::vector<NodeId> order = caller.graph().order();
  ASSERT_EQ(order.size(), 4u);
  const auto node = [&](int i) -> const Node& { return caller.graph().node(order[i]); };
  EXPECT_EQ(node(1).inputs[0], given);
  EXPECT_EQ(node(2).inputs[0], node(1).outputs[0]);
  EXPECT_EQ(node(2).inputs[1], node(1).inputs[1]) << "a constant is copied once";
  EXPECT_EQ(node(3).inputs[2], kNone);
  EXPECT_EQ(node(3).outputs[0], result);
  for (int i = 1; i < 4; ++i) EXPECT_THAT(node(i).host_nodes, ElementsAreArray({5}));
  const Value& copied = caller.graph().value(node(1).outputs[0]);
  EXPECT_FALSE(copied.observed || copied.input || copied.variable);
  EXPECT_EQ(copied.host_tensor, kNone);
}

// A value that another node makes by now stays that one's when the first goes.
TEST(Graph, KeepsWhatWasGivenToAnotherNode) {
  GraphBuilder b;
  const ValueId x = b.Input({3}), y = b.Op("NEG", {x});
  b.Output(y);
  const NodeId first = b.graph().maker(y);
  const NodeId second = b.graph().InsertBefore(first, b.graph().node(first));
  b.graph().Remove(first);
  EXPECT_EQ(b.graph().maker(y), second);
  EXPECT_EQ(b.graph().producer(y), second);
}

TEST(Graph, TellsHowOftenANodeReadsAValue) {
  GraphBuilder b;
  const ValueId x = b.Input({3}), once = b.Op("NEG", {x}), twice = b.Op("ABS", {x});
  const ValueId sum = b.Op("ADD", {twice, twice});
  b.Output(b.Op("MUL", {once, sum}));
  const auto reader = [&](ValueId v) { return b.graph().maker(v); };
  EXPECT_EQ(b.graph().SingleUse(once), reader(b.graph().outputs[0]));
  EXPECT_EQ(b.graph().SingleUse(twice), kNone);
  EXPECT_EQ(b.graph().SingleConsumer(twice), reader(sum));
  EXPECT_EQ(b.graph().SingleUse(x), kNone);
  EXPECT_EQ(b.graph().SingleUse(b.graph().outputs[0]), kNone);
}

}  // namespace
}  // namespace fuselite::fusion::testing
