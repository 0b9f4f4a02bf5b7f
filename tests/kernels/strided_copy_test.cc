// Strided copies against their definition, with every set of inner loops: matrices of all sizes
// around the vectors' widths, rows, fills, and boxes with any strides.
#include "kernels/movement/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

constexpr int kElementBytes[] = {1, 2, 4, 8, 16};

// Calls function(in_offset, out_offset) for each element of the box.
template <class Function>
void ForEachElement(const StridedCopy& copy, const Function& function) {
  for (int64_t i = 0; i < copy.elements(); ++i) {
    int64_t rest = i, in = copy.in_offset, out = copy.out_offset;
    for (int d = copy.rank() - 1; d >= 0; --d) {
      in += rest % copy.dims[d].size * copy.dims[d].in_stride;
      out += rest % copy.dims[d].size * copy.dims[d].out_stride;
      rest /= copy.dims[d].size;
    }
    function(in, out);
  }
}

// The bytes that a copy touches on one side: offsets are moved so that the first is 0.
int64_t Extend(StridedCopy* copy, int64_t CopyDim::*stride, int64_t StridedCopy::*offset) {
  int64_t low = 0, high = copy->element_bytes;
  for (int d = 0; d < copy->rank(); ++d) {
    const int64_t reach = (copy->dims[d].size - 1) * (copy->dims[d].*stride);
    (reach < 0 ? low : high) += reach;
  }
  copy->*offset = -low;
  return high - low;
}

// Runs the plan in ranges of random size and order between guards, and compares all bytes.
void ExpectCopied(StridedCopy copy, const CopyLoops& loops, Random& random) {
  constexpr int64_t kGuard = 80;
  const int64_t in_bytes = Extend(&copy, &CopyDim::in_stride, &StridedCopy::in_offset);
  const int64_t out_bytes = Extend(&copy, &CopyDim::out_stride, &StridedCopy::out_offset);
  // The input ends where its allocation does, so that a sanitizer sees what reads behind it.
  std::vector<std::byte> input(in_bytes);
  for (std::byte& b : input) b = static_cast<std::byte>(random.Int(0, 255));
  std::vector<std::byte> expected(out_bytes + 2 * kGuard, std::byte{0xA5});
  std::vector<std::byte> actual = expected;
  ForEachElement(copy, [&](int64_t in, int64_t out) {
    std::copy_n(&input[in], copy.element_bytes, &expected[kGuard + out]);
  });
  const CopyPlan plan(copy, loops);
  std::vector<int64_t> cuts = {0, plan.units()};
  for (int i = 0; i < 3; ++i) cuts.push_back(random.Int(0, plan.units()));
  std::sort(cuts.begin(), cuts.end());
  for (size_t i = cuts.size() - 1; i > 0; --i) {
    plan.Run(input.data(), &actual[kGuard], cuts[i - 1], cuts[i]);
  }
  const auto [e, a] = std::mismatch(expected.begin(), expected.end(), actual.begin());
  ASSERT_TRUE(e == expected.end()) << "byte " << (e - expected.begin()) - kGuard;
}

void ForEachLoops(const std::function<void(const CopyLoops&)>& function) {
  for (const Isa isa : RunnableIsas()) {
    SCOPED_TRACE(IsaName(isa));
    function(CopyLoopsFor(isa));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

int64_t Gap(Random& random, int64_t bytes) {
  return random.Chance(0.5) ? 0 : bytes * random.Int(1, 5);
}

TEST(StridedCopyTest, TransposesMatricesOfAllSizes) {
  ForEachLoops([](const CopyLoops& loops) {
    for (int seed = 1; seed <= 400; ++seed) {
      Random random(seed);
      SCOPED_TRACE(random.Trace());
      const int bytes = kElementBytes[seed % 5];
      const int64_t x = random.Int(1, random.Chance(0.3) ? 5 : 200);
      const int64_t y = random.Int(1, random.Chance(0.3) ? 5 : 200);
      SCOPED_TRACE(::testing::Message() << y << " x " << x << " of " << bytes);
      StridedCopy copy{.element_bytes = bytes};
      copy.Add(y, x * bytes + Gap(random, bytes), bytes);
      copy.Add(x, bytes, y * bytes + Gap(random, bytes));
      ExpectCopied(copy, loops, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(StridedCopyTest, TransposesPixelsOfThreeBytes) {
  ForEachLoops([](const CopyLoops& loops) {
    for (int seed = 1; seed <= 200; ++seed) {
      Random random(seed);
      SCOPED_TRACE(random.Trace());
      const int64_t x = random.Int(1, random.Chance(0.5) ? 12 : 150);
      const int64_t y = random.Int(1, random.Chance(0.5) ? 24 : 150);
      SCOPED_TRACE(::testing::Message() << y << " x " << x);
      const int64_t down = random.Chance(0.2) ? -1 : 1;
      StridedCopy copy;
      copy.Add(y, down * (x * 3 + Gap(random, 1)), 3);
      copy.Add(x, 3, y * 3 + Gap(random, 1));
      copy.Add(3, 1, 1);
      ExpectCopied(copy, loops, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

// Channel shuffles and what takes them back: small matrices side by side.
TEST(StridedCopyTest, ShufflesAllNumbersOfChannels) {
  ForEachLoops([](const CopyLoops& loops) {
    for (int64_t channels = 1; channels <= 150; ++channels) {
      Random random(channels);
      SCOPED_TRACE(random.Trace());
      const int bytes = kElementBytes[random.Int(0, 4)];
      const int64_t groups = random.Int(2, 5), pixels = random.Int(1, 5);
      const int64_t tuple = groups * bytes, row = channels * bytes, pixel = groups * row;
      SCOPED_TRACE(::testing::Message() << groups << " groups of " << channels << " of " << bytes);
      StridedCopy shuffle{.element_bytes = bytes}, back{.element_bytes = bytes};
      for (StridedCopy* copy : {&shuffle, &back}) copy->Add(pixels, pixel, pixel);
      shuffle.Add(channels, bytes, tuple);
      shuffle.Add(groups, row, bytes);
      back.Add(groups, bytes, row);
      back.Add(channels, tuple, bytes);
      for (const StridedCopy& copy : {shuffle, back}) ExpectCopied(copy, loops, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(StridedCopyTest, TransposesLargeMatricesInPieces) {
  ForEachLoops([](const CopyLoops& loops) {
    for (const auto& [x, y] :
         {std::pair(3, 30000), std::pair(30000, 3), std::pair(777, 259), std::pair(40000, 7),
          std::pair(7, 40000), std::pair(4096, 101), std::pair(1000, 1024)}) {
      for (const int bytes : {1, 4}) {
        Random random(x);
        StridedCopy copy{.element_bytes = bytes};
        copy.Add(y, int64_t{x} * bytes, bytes);
        copy.Add(x, bytes, int64_t{y} * bytes);
        EXPECT_GT(CopyPlan(copy, loops).units(), 1);
        ExpectCopied(copy, loops, random);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

TEST(StridedCopyTest, CopiesRunsOfAllLengths) {
  ForEachLoops([](const CopyLoops& loops) {
    for (int64_t run = 1; run <= 300; ++run) {
      Random random(run);
      SCOPED_TRACE(random.Trace());
      StridedCopy copy;
      copy.Add(random.Int(2, 9), run + random.Int(1, 70), run + random.Int(1, 70));
      copy.Add(run, 1, 1);
      ExpectCopied(copy, loops, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(StridedCopyTest, ReversesRowsOfAllLengths) {
  ForEachLoops([](const CopyLoops& loops) {
    for (int64_t size = 1; size <= 150; ++size) {
      for (const int bytes : kElementBytes) {
        Random random(size);
        SCOPED_TRACE(::testing::Message() << size << " of " << bytes);
        StridedCopy copy{.element_bytes = bytes};
        copy.Add(3, bytes * (size + 1), bytes * (size + 2));
        copy.Add(size, -bytes, bytes);
        ExpectCopied(copy, loops, random);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// Dimensions in any order, with gaps, repeated (a stride of 0) or reversed.
TEST(StridedCopyTest, MovesAnyBox) {
  ForEachLoops([](const CopyLoops& loops) {
    for (int seed = 1; seed <= 600; ++seed) {
      Random random(seed);
      SCOPED_TRACE(random.Trace());
      const int rank = static_cast<int>(random.Int(0, 5));
      std::vector<int64_t> sizes, in(rank), out(rank);
      for (int d = 0; d < rank; ++d)
        sizes.push_back(random.Int(1, d < 2 && random.Chance(0.5) ? 70 : 5));
      StridedCopy copy{.element_bytes = kElementBytes[seed % 5]};
      for (auto* strides : {&in, &out}) {
        std::vector<int> order(rank);
        std::iota(order.begin(), order.end(), 0);
        if (random.Chance(0.8)) {
          for (int i = rank; i > 1; --i) std::swap(order[i - 1], order[random.Int(0, i - 1)]);
        }
        int64_t stride = copy.element_bytes;
        for (const int d : order) {
          const bool repeated = strides == &in && random.Chance(0.15);
          (*strides)[d] = repeated ? 0 : random.Chance(0.15) ? -stride : stride;
          stride *= sizes[d];
          if (random.Chance(0.2)) stride += copy.element_bytes * random.Int(1, 3);
        }
      }
      for (int d = 0; d < rank; ++d) copy.Add(sizes[d], in[d], out[d]);
      ExpectCopied(copy, loops, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

}  // namespace
}  // namespace fuselite::kernels::testing
