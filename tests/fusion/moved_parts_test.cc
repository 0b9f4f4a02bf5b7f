// TRANSPOSE moved behind what takes values apart, joins them, or adds what was not transposed.
#include "fusion/rewrites/rewrites.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ValueId ToPlanes(GraphBuilder& b, ValueId v) {
  return b.Op("TRANSPOSE", {v, b.Ints({0, 3, 1, 2})});
}
ValueId ToRows(GraphBuilder& b, ValueId v) { return b.Op("TRANSPOSE", {v, b.Ints({0, 2, 3, 1})}); }

int Transposes(const Outcome& outcome) {
  int count = 0;
  for (const std::string& ops : outcome.ops()) count += ops.find("TRANSPOSE") == 0;
  return count;
}

// A gated linear unit over channels, as the PyTorch converter writes it for one dimension.
TEST(MovedParts, HalvesOfChannels) {
  GraphBuilder b;
  ValueId v = ToPlanes(b, b.Conv(b.Input({1, 1, 9, 4}), 8, 1));
  v = b.Op("RESHAPE", {v, b.Ints({1, 8, 9})});
  const ValueId x = b.Op("SLICE", {v, b.Ints({0, 0, 0}), b.Ints({1, 4, 9})});
  const ValueId gate = b.Op("SLICE", {v, b.Ints({0, 4, 0}), b.Ints({1, 4, 9})});
  v = b.Op("MUL", {x, b.Op("LOGISTIC", {gate})});
  v = b.Op("RESHAPE", {v, b.Ints({1, 4, 1, 9})});
  b.Output(b.Conv(ToRows(b, v), 3, 1));
  EXPECT_EQ(Transposes(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)), 0);
}

TEST(MovedParts, OfSplit) {
  for (const bool of_sizes : {false, true}) {
    GraphBuilder b;
    const ValueId v = ToPlanes(b, b.Conv(b.Input({1, 3, 5, 4}), 6, 1));
    const ValueId axis = b.Ints({}, {1});
    const auto parts = of_sizes ? b.Op("SPLIT_V", {v, b.Ints({3, 3}), axis}, {{"num_splits", 2}}, 2)
                                : b.Op("SPLIT", {axis, v}, {{"num_splits", 2}}, 2);
    const ValueId product = b.Op("MUL", {b.Op("TANH", {parts[0]}), parts[1]});
    b.Output(b.Conv(ToRows(b, product), 3, 1));
    EXPECT_EQ(Transposes(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)), 0);
  }
}

// One part goes on in planes: the other would be transposed for nothing.
TEST(MovedParts, StayWhereOneIsWantedAsItIs) {
  GraphBuilder b;
  const ValueId v = ToPlanes(b, b.Op("NEG", {b.Input({1, 3, 5, 6})}));
  const auto parts = b.Op("SPLIT", {b.Ints({}, {1}), v}, {{"num_splits", 2}}, 2);
  b.Output(b.Op("ABS", {parts[0]}));
  b.Output(b.Conv(ToRows(b, parts[1]), 3, 1));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              Contains(HasSubstr("TRANSPOSE")).Times(2));
}

// What takes parts of a value: SLICE, and all that MoveSliceAhead puts SLICEs in the place of.
std::vector<std::string_view> TakersOfParts() {
  std::vector<std::string_view> names;
  for (const kernels::OperatorDef* op : kernels::AllOperators()) {
    if (op->places && !op->places_inputs && !op->reshapes) names.push_back(op->name);
  }
  return names;
}

// [4, 3, 5] of `type`, moved to [3, 5, 4]; there `name` takes parts along the first dimension, each
// of which is moved back. Throws where an operator refuses.
void TakeMovedParts(GraphBuilder& b, std::string_view name, DataType type) {
  const ValueId v = b.Op("TRANSPOSE", {b.Input({4, 3, 5}, type), b.Ints({1, 2, 0})});
  const ValueId begin = b.Ints({1, 0, 0}), axis = b.Ints({}, {0});
  std::vector<ValueId> parts;
  if (name == "SLICE") parts = {b.Op(name, {v, begin, b.Ints({2, 5, 4})})};
  if (name == "STRIDED_SLICE") {
    parts = {b.Op(name, {v, begin, b.Ints({3, 5, 4}), b.Ints({1, 1, 1})})};
  }
  if (name == "SPLIT") parts = b.Op(name, {axis, v}, {{"num_splits", 3}}, 3, {.type = type});
  if (name == "SPLIT_V") {
    parts = b.Op(name, {v, b.Ints({1, 2}), axis}, {{"num_splits", 2}}, 2, {.type = type});
  }
  if (name == "UNPACK") parts = b.Op(name, {v}, {{"num", 3}, {"axis", 0}}, 3, {.type = type});
  for (const ValueId part : parts) {
    const bool dropped = b.shape(part).rank() == 2;
    b.Output(b.Op("TRANSPOSE", {part, dropped ? b.Ints({1, 0}) : b.Ints({2, 0, 1})}));
  }
}

// How often MoveSliceAhead changes the graph, which stays valid.
int MovedAhead(Graph& graph, CompileOptions options) {
  Planner planner = PlannerFor(options);
  RewriteContext rewriting(planner, nullptr);
  const int changes = RunRewrite(MoveSliceAhead, graph, rewriting);
  const Status status = Validate(graph);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return changes;
}

// Every type that they take and that is moved as whole bytes is one of SLICE's.
TEST(MovedParts, OfEveryTypeBecomeSlices) {
  EXPECT_THAT(TakersOfParts(), ::testing::UnorderedElementsAre("SLICE", "STRIDED_SLICE", "SPLIT",
                                                               "SPLIT_V", "UNPACK"));
  for (const std::string_view name : TakersOfParts()) {
    int taken = 0;
    for (int type = 1; type < kDataTypeCount; ++type) {
      SCOPED_TRACE(std::string(name) + " of " +
                   std::string(DataTypeName(static_cast<DataType>(type))));
      for (const Isa isa : {Fused().isa, Isa::kScalar}) {
        GraphBuilder b;
        try {
          TakeMovedParts(b, name, static_cast<DataType>(type));
        } catch (const std::runtime_error&) {
          break;  // no graph of this type to rewrite
        }
        ++taken;
        CompileOptions options = Fused();
        options.isa = isa;
        const bool whole_bytes = BitWidth(static_cast<DataType>(type)) >= 8;
        EXPECT_EQ(MovedAhead(b.graph(), options), whole_bytes ? 1 : 0);
      }
    }
    EXPECT_GE(taken, 2 * 6) << name;
  }
}

// Of a type that SLICE lacks: as if TRANSPOSE and UNPACK moved complex128, as they move complex64.
TEST(MovedParts, StayWhereNoKernelTakesTheSlices) {
  static constexpr kernels::TypeRow kWide[] = {{{DataType::kComplex128}, DataType::kComplex128}};
  kernels::OperatorDef transpose = *kernels::FindOperator("TRANSPOSE");
  transpose.infer = [](kernels::OpDescription& op) {
    for (TensorInfo* info : {&op.inputs[0], &op.outputs[0]}) info->type = DataType::kComplex64;
    Status status = kernels::FindOperator("TRANSPOSE")->infer(op);
    for (TensorInfo* info : {&op.inputs[0], &op.outputs[0]}) info->type = DataType::kComplex128;
    return status;
  };
  kernels::OperatorDef unpack = *kernels::FindOperator("UNPACK");
  unpack.types = kWide;
  GraphBuilder b;
  TakeMovedParts(b, "UNPACK", DataType::kFloat32);
  Graph& graph = b.graph();
  for (const NodeId id : graph.order()) {
    Node node = graph.node(id);
    for (const ValueId v : {node.inputs[0], node.outputs[0]}) {
      graph.value(v).info.type = DataType::kComplex128;
    }
    for (const ValueId v : node.outputs) graph.value(v).info.type = DataType::kComplex128;
    node.op = node.op->name == "UNPACK" ? &unpack : &transpose;
    graph.Replace(id, std::move(node));
  }
  EXPECT_EQ(MovedAhead(graph, Fused()), 0);
}

// A U-Net over time: the two ways to a layer are joined by channels.
TEST(JoinBeforeTranspose, OfSkippedLayers) {
  GraphBuilder b;
  const ValueId first = ToPlanes(b, b.Conv(b.Input({1, 1, 9, 4}), 8, 1));
  const ValueId second = ToPlanes(b, b.Conv(b.Input({1, 1, 9, 2}), 5, 1));
  const ValueId joined = b.Op("CONCATENATION", {b.Op("TANH", {first}), second}, {{"axis", 1}});
  b.Output(b.Conv(ToRows(b, joined), 3, 1));
  EXPECT_EQ(Transposes(ExpectFusedEqualsUnfused(b.graph(), 1e-5f)), 0);
}

TEST(JoinBeforeTranspose, OfBytes) {
  Int8Builder b;
  const auto planes = [&](ValueId v) {
    return b.Int8Op("TRANSPOSE", {v, b.Ints({0, 3, 1, 2})}, 0.04f, 3);
  };
  const ValueId first = planes(b.Conv8(b.In({1, 3, 5, 4}), 8, 1, 0.04f, 3));
  const ValueId second = planes(b.Conv8(b.In({1, 3, 5, 2}), 8, 1, 0.04f, 3));
  ValueId v = b.Int8Op("CONCATENATION", {first, second, first}, 0.04f, 3, {{"axis", -1}});
  v = b.Int8Op("TRANSPOSE", {v, b.Ints({0, 2, 3, 1})}, 0.04f, 3);
  b.Out(b.Conv8(v, 3, 1, 0.06f, 0));
  EXPECT_EQ(Transposes(ExpectFusedEqualsUnfused(b.graph(), 0)), 0);
}

// Turned differently, or joined where no dimension of the source is.
TEST(JoinBeforeTranspose, StaysWhereTheSourcesDiffer) {
  GraphBuilder b;
  const ValueId first = ToPlanes(b, b.Op("NEG", {b.Input({1, 4, 4, 4})}));
  const ValueId second =
      b.Op("TRANSPOSE", {b.Op("ABS", {b.Input({1, 4, 4, 4})}), b.Ints({0, 3, 2, 1})});
  b.Output(ToRows(b, b.Op("CONCATENATION", {first, second}, {{"axis", 1}})));
  EXPECT_EQ(Transposes(ExpectFusedEqualsUnfused(b.graph(), 0)), 3);
}

// A residual that comes in planes beside a layer that was brought there: one TRANSPOSE of the
// residual in front of the sum instead of one on each side.
TEST(SinkTranspose, ASumTakesTheOtherOperandAlong) {
  GraphBuilder b;
  const ValueId planes = b.Input({1, 6, 3, 5});
  const ValueId layer = ToPlanes(b, b.Conv(b.Input({1, 3, 5, 4}), 6, 1));
  b.Output(b.Conv(ToRows(b, b.Op("ADD", {planes, layer})), 3, 1));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-5f).ops(),
              ElementsAre("TRANSPOSE", "CONV_2D + add", "CONV_2D"));
}

// What follows is another order: as many TRANSPOSEs either way.
TEST(SinkTranspose, ButNotForAnotherOrder) {
  GraphBuilder b;
  const ValueId planes = b.Input({1, 6, 3, 5});
  const ValueId layer = ToPlanes(b, b.Op("NEG", {b.Input({1, 3, 5, 6})}));
  const ValueId sum = b.Op("ADD", {planes, layer});
  b.Output(b.Op("TRANSPOSE", {sum, b.Ints({0, 2, 1, 3})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("NEG", "TRANSPOSE", "ADD", "TRANSPOSE"));
}

// Two operands would be transposed in front of it for one TRANSPOSE behind it.
TEST(SinkTranspose, ButNotForTwoOtherOperands) {
  GraphBuilder b;
  const ValueId planes = b.Input({1, 6, 3, 5});
  const ValueId layer = ToPlanes(b, b.Op("NEG", {b.Input({1, 3, 5, 6})}));
  const ValueId chosen = b.Op("GREATER", {planes, b.Input({1, 6, 3, 5})});
  b.Output(ToRows(b, b.Op("SELECT_V2", {chosen, layer, planes})));
  EXPECT_EQ(Transposes(ExpectFusedEqualsUnfused(b.graph(), 0)), 2);
}

// The sources have the same dimensions in the same order, but not of the same sizes.
TEST(JoinBeforeTranspose, StaysWhereTheSourcesDoNotFit) {
  GraphBuilder b;
  const auto turned = [&](int32_t rows, int32_t columns) {
    const ValueId x = b.Op("NEG", {b.Input({rows, columns, 5})});
    const ValueId v = b.Op("TRANSPOSE", {x, b.Ints({1, 0, 2})});
    return b.Op("RESHAPE", {v, b.Ints({6, 5})});
  };
  const ValueId both = b.Op("CONCATENATION", {turned(2, 3), turned(3, 2)}, {{"axis", 1}});
  b.Output(b.Op("TRANSPOSE", {both, b.Ints({1, 0})}));
  EXPECT_EQ(Transposes(ExpectFusedEqualsUnfused(b.graph(), 0)), 3);
}

TEST(MovedParts, ComputeTheSameForRandomGraphs) {
  for (int seed = 1; seed <= 60; ++seed) {
    GraphBuilder b(seed);
    SCOPED_TRACE(b.random().Trace());
    const auto planes = [&](Shape shape) { return ToPlanes(b, b.Op("NEG", {b.Input(shape)})); };
    ValueId v = planes({1, 3, 2, 6});
    if (b.random().Chance(0.5)) {
      const auto axis = static_cast<int32_t>(b.random().Chance(0.5) ? 1 : 2);
      const int parts = axis == 1 ? static_cast<int>(b.random().Int(2, 3)) : 3;
      const auto split = b.Op("SPLIT", {b.Ints({}, {axis}), v}, {{"num_splits", parts}}, parts);
      v = b.Op("MUL", {split[0], b.Op("ABS", {split[1]})});
    }
    if (b.random().Chance(0.5)) {
      const ValueId other = b.random().Chance(0.7) ? b.Op("ABS", {v}) : planes({1, 3, 2, 6});
      if (b.shape(other)[2] == b.shape(v)[2]) {
        v = b.Op("CONCATENATION", {v, other}, {{"axis", 1}});
      }
    }
    if (b.random().Chance(0.5)) v = b.Op("ADD", {v, b.Input(b.shape(v))});
    if (b.random().Chance(0.3)) b.Output(v);
    b.Output(b.Op("EXP", {ToRows(b, v)}));
    ExpectFusedEqualsUnfused(b.graph(), 1e-5f);
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
