// What the words of rewrites say of values that patterns seldom have.
#include "fusion/match.h"

#include <optional>
#include <vector>

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

template <class T>
ValueId Constant(GraphBuilder& b, DataType type, const std::vector<T>& values) {
  const TensorInfo info{.type = type, .shape = {static_cast<int32_t>(values.size())}};
  return b.graph().AddConstant(info, std::as_bytes(std::span(values)), "constant");
}

TEST(Match, IntegersOfAnyWidth) {
  GraphBuilder b;
  const auto ints = [&](ValueId v) { return IntConstant(b.graph(), v); };
  EXPECT_THAT(ints(Constant<int8_t>(b, DataType::kInt8, {-128, 3})),
              Optional(ElementsAre(-128, 3)));
  EXPECT_THAT(ints(Constant<int16_t>(b, DataType::kInt16, {-300, 3})),
              Optional(ElementsAre(-300, 3)));
  EXPECT_THAT(ints(Constant<int32_t>(b, DataType::kInt32, {1 << 30})),
              Optional(ElementsAre(1 << 30)));
  EXPECT_THAT(ints(Constant<int64_t>(b, DataType::kInt64, {INT32_MIN, INT32_MAX})),
              Optional(ElementsAre(INT32_MIN, INT32_MAX)));
  EXPECT_EQ(ints(Constant<int64_t>(b, DataType::kInt64, {0, INT64_MAX})), std::nullopt);
  EXPECT_EQ(ints(Constant<int64_t>(b, DataType::kInt64, {INT64_MIN})), std::nullopt);
  EXPECT_EQ(ints(Constant<float>(b, DataType::kFloat32, {1})), std::nullopt);
  EXPECT_EQ(ints(kNone), std::nullopt);
  EXPECT_EQ(ints(b.Input({2}, DataType::kInt32)), std::nullopt);
  EXPECT_THAT(ints(b.Input({0}, DataType::kInt32)), Optional(ElementsAre()));
}

TEST(Match, NumbersThatAreKnown) {
  GraphBuilder b;
  const ValueId one = b.Scalar(2.5f), several = b.Constant({3}), given = b.Input({1}),
                integer = b.Ints({1});
  EXPECT_EQ(ScalarConstant(b.graph(), one), 2.5f);
  EXPECT_TRUE(IsScalar(b.graph(), one, 2.5f));
  EXPECT_EQ(FloatConstant(b.graph(), several)->size(), 3u);
  for (const ValueId v : {kNone, several, given, integer}) {
    EXPECT_EQ(ScalarConstant(b.graph(), v), std::nullopt) << v;
    EXPECT_FALSE(IsScalar(b.graph(), v, 0)) << v;
  }
  for (const ValueId v : {kNone, given, integer}) {
    EXPECT_EQ(FloatConstant(b.graph(), v), std::nullopt) << v;
  }
  EXPECT_FALSE(IsFloat(b.graph(), kNone));
  EXPECT_FALSE(IsFloat(b.graph(), integer));
  EXPECT_TRUE(IsFloat(b.graph(), given));
}

TEST(Match, ProducersOfNothing) {
  GraphBuilder b;
  const ValueId x = b.Input({3}), y = b.Op("NEG", {x});
  b.Output(b.Op("ABS", {y}));
  EXPECT_EQ(OwnProducerIs(b.graph(), kNone, "NEG"), kNone);
  EXPECT_EQ(OwnProducerIs(b.graph(), x, "NEG"), kNone);
  EXPECT_EQ(OwnProducerIs(b.graph(), y, "ABS"), kNone);
  EXPECT_EQ(OwnProducerIs(b.graph(), y, "NEG"), 0);
}

}  // namespace
}  // namespace fuselite::fusion::testing
