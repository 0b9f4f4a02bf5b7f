// SLICE and STRIDED_SLICE: against their definitions, and as Python slices.
#include "kernels/slice/slice.h"

#include "tests/kernels/movement_tester.h"

namespace fuselite::kernels::testing {
namespace {

TEST(SliceTest, MatchesItsDefinition) {
  for (int i = 0; i < kCases; ++i) {
    Random random(800 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(1, 5));
    const Shape shape = RandomShape(random, rank, 8);
    std::vector<int32_t> begin, size;
    for (int d = 0; d < rank; ++d) {
      begin.push_back(static_cast<int32_t>(random.Int(0, shape[d])));
      size.push_back(static_cast<int32_t>(random.Int(-1, shape[d] - begin[d])));
    }
    const auto tensor = RandomTensor(random, kWidths[i % 4], shape);
    OpTester tester("SLICE");
    tester.Input(tensor).Constant(Ints(begin)).Constant(Ints(size));
    ExpectMoved(tester, random, [&](int, Index o) {
      for (int d = 0; d < rank; ++d) o[d] += begin[d];
      return ElementOf(tensor, Flatten(shape, o));
    });
  }
}

TEST(SliceTest, Refuses) {
  const auto code = [](std::vector<int32_t> begin, std::vector<int32_t> size) {
    OpTester tester("SLICE");
    tester.Input(Iota({2, 3})).Constant(Ints(begin)).Constant(Ints(size));
    return tester.Infer().code();
  };
  EXPECT_EQ(code({0, 1}, {2, 3}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({-1, 0}, {1, 1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, 0}, {-2, 1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0}, {1}), StatusCode::kInvalidArgument);
}

std::vector<int32_t> StridedSlice(const Shape& shape, std::vector<int32_t> begin,
                                  std::vector<int32_t> end, std::vector<int32_t> strides,
                                  StridedSliceParams params, const Shape& expected) {
  OpTester tester("STRIDED_SLICE");
  tester.params<StridedSliceParams>() = params;
  tester.Input(Iota(shape)).Constant(Ints(begin)).Constant(Ints(end)).Constant(Ints(strides));
  EXPECT_EQ(InferredShape(tester), expected);
  const auto outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? (*outputs)[0].values<int32_t>() : std::vector<int32_t>();
}

TEST(StridedSliceTest, SlicesAsPython) {
  using ::testing::ElementsAre;
  EXPECT_THAT(StridedSlice({6}, {1}, {5}, {2}, {}, {2}), ElementsAre(1, 3));
  EXPECT_THAT(StridedSlice({6}, {-1}, {-7}, {-2}, {}, {3}), ElementsAre(5, 3, 1));
  EXPECT_THAT(StridedSlice({6}, {4}, {1}, {-1}, {}, {3}), ElementsAre(4, 3, 2));
  EXPECT_THAT(StridedSlice({6}, {4}, {1}, {1}, {}, {0}), ElementsAre());
  EXPECT_THAT(StridedSlice({6}, {-9}, {99}, {4}, {}, {2}), ElementsAre(0, 4));
  EXPECT_THAT(StridedSlice({6}, {3}, {3}, {-3}, {.begin_mask = 1, .end_mask = 1}, {2}),
              ElementsAre(5, 2));
  EXPECT_THAT(StridedSlice({2, 3}, {1}, {2}, {1}, {}, {1, 3}), ElementsAre(3, 4, 5));
}

TEST(StridedSliceTest, Masks) {
  using ::testing::ElementsAre;
  EXPECT_THAT(StridedSlice({2, 3}, {-1, 1}, {0, 0}, {1, 1}, {.shrink_axis_mask = 3}, {}),
              ElementsAre(4));
  EXPECT_THAT(StridedSlice({2, 3}, {0, 1}, {0, 2}, {1, 1}, {.ellipsis_mask = 1}, {2, 1}),
              ElementsAre(1, 4));
  EXPECT_THAT(StridedSlice({2, 2, 2}, {0, 1}, {0, 2}, {1, 1}, {.ellipsis_mask = 1}, {2, 2, 1}),
              ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(StridedSlice({4}, {0, 1}, {0, 3}, {1, 1}, {.new_axis_mask = 1}, {1, 2}),
              ElementsAre(1, 2));
  EXPECT_THAT(StridedSlice({2, 3}, {0, 0, 1}, {0, 0, 2}, {1, 1, 1},
                           {.ellipsis_mask = 1, .new_axis_mask = 2, .shrink_axis_mask = 4}, {2, 1}),
              ElementsAre(1, 4));
  EXPECT_THAT(StridedSlice({6}, {2}, {3}, {1}, {.offset = true}, {3}), ElementsAre(2, 3, 4));
}

TEST(StridedSliceTest, Refuses) {
  const auto code = [](std::vector<int32_t> begin, std::vector<int32_t> strides, int32_t shrink) {
    OpTester tester("STRIDED_SLICE");
    tester.params<StridedSliceParams>().shrink_axis_mask = shrink;
    tester.Input(Iota({3})).Constant(Ints(begin)).Constant(Ints(begin)).Constant(Ints(strides));
    return tester.Infer().code();
  };
  EXPECT_EQ(code({0}, {0}, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({3}, {1}, 1), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0}, {std::numeric_limits<int32_t>::min()}, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, 0}, {1, 1}, 0), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0}, {1, 1}, 0), StatusCode::kInvalidArgument);
}

TEST(StridedSliceTest, RefusesWhatHostsDoOtherwise) {
  const auto code = [](StridedSliceParams params, std::vector<int32_t> end) {
    OpTester tester("STRIDED_SLICE");
    tester.params<StridedSliceParams>() = params;
    tester.Input(Iota({3})).Constant(Ints(std::vector<int32_t>(end.size(), 1)));
    tester.Constant(Ints(end)).Constant(Ints(std::vector<int32_t>(end.size(), 1)));
    return tester.Infer().code();
  };
  EXPECT_EQ(code({.ellipsis_mask = 1}, {0, 2}), StatusCode::kUnsupported);
  EXPECT_EQ(code({.offset = true}, {2}), StatusCode::kOk);
  EXPECT_EQ(code({.offset = true}, {3}), StatusCode::kUnsupported);
  EXPECT_EQ(code({.end_mask = 1, .offset = true}, {2}), StatusCode::kUnsupported);
}

// Whoever imports a node must not take it for one that the run decides.
TEST(StridedSliceTest, RefusesMasksBeforeItsEntriesAreKnown) {
  OpTester tester("STRIDED_SLICE");
  tester.params<StridedSliceParams>().ellipsis_mask = 2;
  tester.Input(Iota({4, 6})).Input(Ints({0, 0, 0}));
  tester.Constant(Ints({3, 0, 4})).Constant(Ints({1, 1, 1}));
  EXPECT_EQ(tester.Infer().code(), StatusCode::kUnsupported);
}

TEST(StridedSliceTest, MatchesItsDefinition) {
  for (int i = 0; i < 2 * kCases; ++i) {
    Random random(900 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(1, 5));
    const Shape shape = RandomShape(random, rank, 9);
    std::vector<int32_t> begin, end, strides;
    for (int d = 0; d < rank; ++d) {
      begin.push_back(static_cast<int32_t>(random.Int(0, shape[d] - 1)));
      end.push_back(static_cast<int32_t>(random.Int(0, shape[d])));
      strides.push_back(static_cast<int32_t>(random.Pick<int64_t>({-3, -1, 1, 1, 1, 2})));
    }
    const auto tensor = RandomTensor(random, kWidths[i % 4], shape);
    OpTester tester("STRIDED_SLICE");
    tester.Input(tensor).Constant(Ints(begin)).Constant(Ints(end)).Constant(Ints(strides));
    ExpectMoved(tester, random, [&](int, Index o) {
      for (int d = 0; d < rank; ++d) o[d] = begin[d] + o[d] * strides[d];
      return ElementOf(tensor, Flatten(shape, o));
    });
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
