// Nodes whose shapes the run finds, and what is made for the values and shapes behind them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/partitioner/subgraph_models.h"

namespace fuselite::partitioner {
namespace {

using namespace testing;
using ::testing::ElementsAre;

// The places of the positive values of [1, 8].
int Places(Builder& b, int x) {
  const int zero = b.AddConstant("zero", kFloat, Shape(), std::vector{0.0f});
  return b.Op("WHERE", {b.Op("GREATER", {x, zero}, {1, 8}, kBool)}, {8, 2}, DataType::kInt64);
}

// What is known before the run, but of another part of it, tells parts apart: in each run the
// second node gives as many places, and the first one others.
TEST(WaitingNodes, AreToldApartByValuesThatPartsBeforeHaveMade) {
  Builder b;
  const int x = b.In({1, 8}), y = b.In({1, 8}), z = b.In({1, 2});
  const int size = b.ShapeOf(Places(b, x), 2);
  const int always = Places(b, b.Op("EXP", {y}, {1, 8}));
  b.End({b.Op("NEG", {b.Op("CAST", {always}, {8, 2})}, {8, 2}),
         b.Op("BROADCAST_TO", {b.Op("ABS", {z}, {1, 2}), size}, {8, 2})});
  EXPECT_TRUE(ExpectDelegateAgrees(b, BestOptions(), 12).whole());
}

// Values that are read as sizes, few and many of them, with others of constants beside them.
TEST(WaitingNodes, AreMadeForTheirValues) {
  Builder b;
  const int x = b.In({2, 4}), times = b.In({2}, kInt), many = b.In({100}, kBool);
  const int tiled = b.Op("TILE", {x, times}, {2, 4});
  const int places = b.Op("WHERE", {many}, {100, 1}, DataType::kInt64);
  const int zeros =
      b.Op("FILL", {times, b.AddConstant("two", kFloat, Shape(), std::vector{2.f})}, {2, 4});
  b.End({b.Op("NEG", {tiled}, {2, 4}), b.Op("CAST", {places}, {100, 1}),
         b.Op("ABS", {zeros}, {2, 4})});
  EXPECT_TRUE(ExpectDelegateAgrees(b, BestOptions(), 20).whole());
}

// What no run has yet shown the shapes of is compiled later, as the explanation says.
TEST(WaitingNodes, AreExplainedBeforeARunAndBehindIt) {
  Builder b;
  const int x = b.In({1, 8});
  const int places = Places(b, b.Op("EXP", {x}, {1, 8}));
  b.End({b.Op("NEG", {b.Op("CAST", {places}, {8, 2})}, {8, 2})});
  const std::vector<std::byte> file = b.Finish();
  const auto model = interpreter::LoadModelFromMemory(file, nullptr);
  ASSERT_TRUE(model.ok());
  Delegate delegate(BestOptions());
  const std::unique_ptr<interpreter::Interpreter> host = *interpreter::Interpreter::Create(*model);
  ASSERT_TRUE(host->ApplyDelegate(delegate.c_struct()).ok());
  ASSERT_TRUE(host->AllocateTensors().ok());
  const auto report = [&] { return delegate.Explain().graphs.at(0).partitions.at(0); };
  EXPECT_THAT(report().waiting_nodes, ElementsAre(2));
  EXPECT_THAT(report().later_nodes, ElementsAre(2, 3, 4));
  ASSERT_TRUE(host->Invoke().ok());
  EXPECT_THAT(report().waiting_nodes, ElementsAre(2));
  EXPECT_THAT(report().later_nodes, ElementsAre());
}

TEST(WaitingNodes, MayReadAValueTwice) {
  Builder b;
  const int times = b.In({1}, kInt);
  b.End({b.Op("NEG", {b.Op("TILE", {times, times}, {1}, kInt)}, {1}, kInt)});
  EXPECT_TRUE(ExpectDelegateAgrees(b, BestOptions(), 6).whole());
}

// Those used last are kept: what was made before is made again.
TEST(WaitingNodes, OfMoreShapesThanAreKept) {
  Builder b;
  const int many = b.In({200}, kBool);
  const int places = b.Op("WHERE", {many}, {200, 1}, DataType::kInt64);
  b.End({b.Op("NEG", {b.Op("CAST", {places}, {200, 1})}, {200, 1})});
  EXPECT_TRUE(ExpectDelegateAgrees(b, BestOptions(), 60).whole());
}

}  // namespace
}  // namespace fuselite::partitioner
