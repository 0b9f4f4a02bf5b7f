// Rotary embedding as decoders write it, and the layers and caches around it.
#include <algorithm>

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;

struct Tables {
  ValueId cos, sin;
};

// The rotation of x [..., width], whose halves a SPLIT or two SLICEs give. The operands of products
// and sums stand in any order.
ValueId Rotary(GraphBuilder& b, ValueId x, Tables t, bool split = false, bool turned = false) {
  const Shape& shape = b.shape(x);
  const int last = shape.rank() - 1;
  std::vector<ValueId> halves;
  if (split) {
    halves = b.Op("SPLIT", {b.Ints(Shape(), {last}), x}, {{"num_splits", 2}}, 2);
  } else {
    std::vector<int32_t> begin(shape.rank()), size(shape.dims().begin(), shape.dims().end());
    size[last] /= 2;
    halves.push_back(b.Op("SLICE", {x, b.Ints(begin), b.Ints(size)}));
    begin[last] = size[last];
    halves.push_back(b.Op("SLICE", {x, b.Ints(begin), b.Ints(size)}));
  }
  const auto product = [&](ValueId a, ValueId c) {
    return turned ? b.Op("MUL", {c, a}) : b.Op("MUL", {a, c});
  };
  const ValueId first = b.Op("SUB", {product(halves[0], t.cos), product(halves[1], t.sin)});
  const ValueId p = product(halves[1], t.cos), q = product(halves[0], t.sin);
  const ValueId second = turned ? b.Op("ADD", {q, p}) : b.Op("ADD", {p, q});
  return b.Op("CONCATENATION", {first, second}, {{"axis", turned ? -1 : last}});
}

Tables TablesOf(GraphBuilder& b, const Shape& shape) { return {b.Input(shape), b.Input(shape)}; }

TEST(Rotary, FromItsParts) {
  for (const bool split : {false, true}) {
    for (const bool turned : {false, true}) {
      GraphBuilder b;
      const ValueId x = b.Op("NEG", {b.Input({1, 5, 3, 8})});
      b.Output(b.Op("NEG", {Rotary(b, x, TablesOf(b, {1, 5, 1, 4}), split, turned)}));
      EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
                  ElementsAre("NEG", "FUSELITE_ROTARY", "NEG"));
    }
  }
}

// As Hugging Face's models write it: x * cos + CONCATENATION(-x2, x1) * sin. What may be wrong with
// it is the sign, which half it stands before, which comes first, and whose halves they are.
struct WholeHeads {
  float sign = -1;
  bool sign_of_first = false, first_foremost = false;
  bool halves_of_another = false, cos_of_another = false;
  bool activation = false;
  bool packed = false;  // by PACK and RESHAPE instead
  int axis = -2;        // of PACK
};
ValueId RotaryOfWholeHeads(GraphBuilder& b, ValueId x, Tables t, WholeHeads form, bool neg = false,
                           bool turned = false) {
  const ValueId other = b.Input(b.shape(x));
  const int last = b.shape(x).rank() - 1;
  auto halves = b.Op("SPLIT", {b.Ints(Shape(), {last}), form.halves_of_another ? other : x},
                     {{"num_splits", 2}}, 2);
  ValueId& negative = halves[form.sign_of_first ? 0 : 1];
  negative = neg ? b.Op("NEG", {negative}) : b.Op("MUL", {negative, b.Scalar(form.sign)});
  if (!form.first_foremost) std::swap(halves[0], halves[1]);
  const std::vector<int32_t> whole(b.shape(x).dims().begin(), b.shape(x).dims().end());
  const ValueId rotated =
      form.packed
          ? b.Op("RESHAPE",
                 {b.Op("PACK", halves, {{"values_count", 2}, {"axis", form.axis}}), b.Ints(whole)})
          : b.Op("CONCATENATION", halves, {{"axis", last}});
  const ValueId factor = form.cos_of_another ? other : x;
  const ValueId straight = turned ? b.Op("MUL", {t.cos, factor}) : b.Op("MUL", {factor, t.cos});
  const ValueId crossed = turned ? b.Op("MUL", {t.sin, rotated}) : b.Op("MUL", {rotated, t.sin});
  return b.Op("ADD", {turned ? crossed : straight, turned ? straight : crossed},
              {{"fused_activation_function", form.activation ? kRelu : 0}});
}

TEST(Rotary, FromWholeHeads) {
  for (const bool neg : {false, true}) {
    for (const bool turned : {false, true}) {
      GraphBuilder b;
      const ValueId x = b.Op("NEG", {b.Input({1, 5, 3, 8})});
      const Tables t = TablesOf(b, {1, 5, 1, 8});
      const WholeHeads form = {.packed = neg, .axis = turned ? -2 : 3};
      b.Output(b.Op("NEG", {RotaryOfWholeHeads(b, x, t, form, neg, turned)}));
      EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
                  ElementsAre("NEG", "FUSELITE_ROTARY", "NEG"));
    }
  }
}

TEST(Rotary, NotOfOtherWholeHeads) {
  for (const WholeHeads form : {WholeHeads{.sign = 1.5f},
                                {.sign_of_first = true},
                                {.first_foremost = true},
                                {.sign_of_first = true, .first_foremost = true},
                                {.halves_of_another = true},
                                {.cos_of_another = true},
                                {.activation = true},
                                {.packed = true, .axis = -1},
                                {.packed = true, .axis = 0}}) {
    GraphBuilder b;
    const ValueId x = b.Input({5, 8});
    b.Output(b.Op("NEG", {RotaryOfWholeHeads(b, x, TablesOf(b, {5, 8}), form)}));
    for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 0).ops()) {
      EXPECT_EQ(ops.find("ROTARY"), std::string::npos) << ops;
    }
  }
}

// A table of halves beside one of whole heads, and one that has more rows than x.
TEST(Rotary, NotByOtherTables) {
  for (const bool wider : {false, true}) {
    GraphBuilder b;
    const ValueId x = b.Op("NEG", {b.Input({1, 2})});
    const Tables t = {b.Input({1, wider ? 2 : 1}), b.Input({wider ? 3 : 1, 2})};
    b.Output(b.Op("NEG", {RotaryOfWholeHeads(b, x, t, {})}));
    for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 0).ops()) {
      EXPECT_EQ(ops.find("ROTARY"), std::string::npos) << ops;
    }
  }
}

TEST(Rotary, NotWhereSomebodyReadsAPart) {
  GraphBuilder b;
  const Tables t = TablesOf(b, {4});
  const ValueId x = b.Input({5, 8});
  const ValueId half = b.Op("SLICE", {x, b.Ints({0, 4}), b.Ints({5, 4})});
  const ValueId other = b.Op("SLICE", {x, b.Ints({0, 0}), b.Ints({5, 4})});
  const ValueId difference = b.Op("SUB", {b.Op("MUL", {other, t.cos}), b.Op("MUL", {half, t.sin})});
  const ValueId sum = b.Op("ADD", {b.Op("MUL", {half, t.cos}), b.Op("MUL", {other, t.sin})});
  b.Output(difference);
  b.Output(b.Op("CONCATENATION", {difference, sum}, {{"axis", 1}}));
  for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 0).ops()) {
    EXPECT_EQ(ops.find("ROTARY"), std::string::npos) << ops;
  }
}

// Halves that overlap, that are exchanged, and those of another dimension.
TEST(Rotary, NotOfOtherHalves) {
  for (const auto& [first, second] : {std::pair{0, 3}, {4, 0}, {0, 0}, {1, 4}}) {
    GraphBuilder b;
    const Tables t = TablesOf(b, {4});
    const ValueId x = b.Input({5, 8});
    const ValueId x1 = b.Op("SLICE", {x, b.Ints({0, first}), b.Ints({5, 4})});
    const ValueId x2 = b.Op("SLICE", {x, b.Ints({0, second}), b.Ints({5, 4})});
    const ValueId difference = b.Op("SUB", {b.Op("MUL", {x1, t.cos}), b.Op("MUL", {x2, t.sin})});
    const ValueId sum = b.Op("ADD", {b.Op("MUL", {x2, t.cos}), b.Op("MUL", {x1, t.sin})});
    b.Output(b.Op("CONCATENATION", {difference, sum}, {{"axis", 1}}));
    for (const std::string& ops : ExpectFusedEqualsUnfused(b.graph(), 0).ops()) {
      EXPECT_EQ(ops.find("ROTARY"), std::string::npos) << ops;
    }
  }
}

// The heads of a group of queries lie side by side; TRANSPOSEs before and behind cancel.
TEST(Rotary, ReadsHeadsWhereALayerLeavesThem) {
  for (const int32_t rows : {1, 6}) {
    GraphBuilder b;
    ValueId x = b.Op("NEG", {b.Input({1, rows, 3, 24})});
    x = b.Op("SLICE", {x, b.Ints({0, 0, 0, 0}), b.Ints({1, rows, 3, 16})});
    x = b.Op("RESHAPE", {x, b.Ints({1, rows, 6, 8})});
    x = b.Op("TRANSPOSE", {x, b.Ints({0, 2, 1, 3})});
    x = Rotary(b, x, TablesOf(b, {1, rows, 4}));
    x = b.Op("TRANSPOSE", {x, b.Ints({0, 2, 1, 3})});
    b.Output(b.Op("NEG", {b.Op("RESHAPE", {x, b.Ints({rows, 48})})}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
                ElementsAre("NEG", "FUSELITE_ROTARY", "NEG"));
  }
}

// A layer gives rows, which a batch of one in front of them, or none, makes no others; a part of
// wider ones is read where it lies.
TEST(Rotary, ReadsRowsInFrontOfAReshape) {
  for (const std::vector<int32_t>& from :
       {std::vector<int32_t>{6, 24}, {1, 6, 24}, {1, 1, 6, 24}, {1, 6, 1, 24}}) {
    GraphBuilder b;
    Shape wider(from);
    wider.set(wider.rank() - 1, 40);
    std::vector<int32_t> begin(from.size());
    begin.back() = 8;
    const ValueId rows = b.Op("NEG", {b.Input(wider)});
    const ValueId x = b.Op("SLICE", {rows, b.Ints(begin), b.Ints(from)});
    const ValueId heads = b.Op("RESHAPE", {x, b.Ints({1, 6, 3, 8})});
    const ValueId turned = Rotary(b, heads, TablesOf(b, {6, 1, 4}));
    b.Output(b.Op("NEG", {b.Op("RESHAPE", {turned, b.Ints({6, 24})})}));
    EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
                ElementsAre("NEG", "FUSELITE_ROTARY", "NEG"));
  }
}

TEST(Rotary, OfWholeHeadsReadsThemWhereALayerLeavesThem) {
  GraphBuilder b;
  ValueId x = b.Op("RESHAPE", {b.Op("NEG", {b.Input({1, 6, 24})}), b.Ints({1, 6, 3, 8})});
  x = b.Op("TRANSPOSE", {x, b.Ints({0, 2, 1, 3})});
  const Tables t = {b.Constant({1, 1, 6, 8}), b.Constant({1, 1, 6, 8})};
  x = b.Op("TRANSPOSE", {RotaryOfWholeHeads(b, x, t, {}), b.Ints({0, 2, 1, 3})});
  b.Output(b.Op("NEG", {b.Op("RESHAPE", {x, b.Ints({6, 24})})}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(),
              ElementsAre("NEG", "FUSELITE_ROTARY", "NEG"));
}

// A table that differs by head, one that differs by batch and row, a TRANSPOSE of the channels.
TEST(Rotary, StaysWhereItsTablesWouldHaveToMove) {
  GraphBuilder b;
  const ValueId x = b.Op("NEG", {b.Input({5, 24})});
  const ValueId heads = b.Op("RESHAPE", {x, b.Ints({5, 3, 8})});
  b.Output(b.Op("NEG", {Rotary(b, heads, TablesOf(b, {3, 4}))}));
  const ValueId y = b.Op("NEG", {b.Input({2, 5, 3, 8})});
  const ValueId moved = b.Op("TRANSPOSE", {y, b.Ints({0, 2, 1, 3})});
  b.Output(b.Op("NEG", {Rotary(b, moved, TablesOf(b, {1, 3, 5, 4}))}));
  const ValueId z = b.Op("NEG", {b.Input({8, 5})});
  b.Output(b.Op("NEG", {Rotary(b, b.Op("TRANSPOSE", {z, b.Ints({1, 0})}), TablesOf(b, {5, 4}))}));
  const Outcome outcome = ExpectFusedEqualsUnfused(b.graph(), 0);
  const std::vector<std::string> ops = outcome.ops();
  EXPECT_EQ(std::ranges::count(ops, "FUSELITE_ROTARY"), 3);
  EXPECT_EQ(std::ranges::count(ops, "TRANSPOSE"), 2);
}

// Reshapes of many kinds in front of it, by tables of all that may stand over the result.
TEST(Rotary, ComputesTheSameBeforeRandomReshapes) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    GraphBuilder b(seed);
    SCOPED_TRACE(b.random().Trace());
    const auto size = [&] { return static_cast<int32_t>(b.random().Pick({1, 2, 3})); };
    const int32_t s0 = size(), s1 = size(), s2 = size();
    const std::vector<std::vector<int32_t>> shapes = {
        {s0 * s1 * s2, 4},       {s0, s1, s2, 4},   {s0, s1 * s2, 4},     {s0, s1, s2 * 4},
        {1, s0, 1, s1 * s2 * 4}, {s0 * s1, s2 * 4}, {s0, 1, s1, 1, s2, 4}};
    const auto& from = shapes[b.random().Int(0, 6)];
    const auto& to = shapes[b.random().Int(0, 2)];
    const ValueId x = b.Op("NEG", {b.Input(Shape(from))});
    const ValueId reshaped = b.Op("RESHAPE", {x, b.Ints(to)});
    Shape table = b.shape(reshaped);
    table.set(table.rank() - 1, 2);
    for (int d = 0; d + 1 < table.rank(); ++d) {
      if (b.random().Chance(0.5)) table.set(d, 1);
    }
    b.Output(b.Op("NEG", {Rotary(b, reshaped, TablesOf(b, table))}));
    ExpectSameFused(b.graph(), 0);
  }
}

// Grouped queries and a cache: three layers become one, and nothing is copied but the values.
TEST(Rotary, ReadsPartsOfJoinedProjections) {
  for (const int32_t rows : {1, 5}) {
    GraphBuilder b;
    const ValueId x = b.Op("NEG", {b.Input({1, rows, 32})});
    const auto layer = [&](int32_t heads) {
      const ValueId flat = b.Op("FULLY_CONNECTED", {x, b.Int8Constant({heads * 8, 32}, 0.01f)},
                                {{"keep_num_dims", 1}, {"asymmetric_quantize_inputs", 1}});
      return b.Op("RESHAPE", {flat, b.Ints({1, rows, heads, 8})});
    };
    const Tables t = TablesOf(b, {1, rows, 1, 4});
    const ValueId q = Rotary(b, layer(4), t), k = Rotary(b, layer(2), t), v = layer(2);
    const ValueId start = b.Ints({0, 3, 0, 0});
    b.Output(b.Op("DYNAMIC_UPDATE_SLICE", {b.Input({1, 16, 2, 8}), k, start}));
    b.Output(b.Op("DYNAMIC_UPDATE_SLICE", {b.Input({1, 16, 2, 8}), v, start}));
    b.Output(b.Op("NEG", {q}));
    const std::vector<std::string> ops = ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops();
    EXPECT_EQ(std::ranges::count(ops, "FULLY_CONNECTED"), 1) << rows;
    EXPECT_EQ(std::ranges::count(ops, "FUSELITE_ROTARY"), 2);
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
