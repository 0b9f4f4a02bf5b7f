// What tests of Winograd's algorithm in whole numbers have in common.
#pragma once

#include <string>

#include "tests/jit/jit_cases.h"

namespace fuselite::jit::testing {

// Random layers, the images of which are up to `widest` pixels wide, have the bits of the
// reference. make(random, image, channels_out) gives one, add_tail(tester, random) what follows it;
// T is as wide as a value of the output.
template <class T, class Make, class AddTail>
void ExpectExactLayers(const kernels::Candidate& candidate, int32_t widest, Make make,
                       AddTail add_tail) {
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto size = [&](int64_t low, int64_t high) {
      return static_cast<int32_t>(random.Int(low, high));
    };
    const Shape image = {size(1, 3), size(3, 19), size(3, widest),
                         random.Pick({1, 2, 3, 7, 8, 15, 16, 17, 31, 40, 100})};
    OpTester tester = make(random, image, random.Pick({1, 3, 7, 8, 9, 16, 24, 63, 65, 70, 130}));
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    add_tail(tester, random);
    kernels::testing::PitchOutput(tester, random);
    const auto expected = tester.Run("reference", Isa::kScalar, random.Int(1, 99));
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    for (const Isa isa : EmittedIsas()) {
      tester.threads = size(1, 9);
      const auto actual = tester.RunCandidate(candidate, isa, random.Int(1, 99), random.Int(0, 3));
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      kernels::testing::ExpectSame<T>((*expected)[0], (*actual)[0], IsaName(isa));
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// build(image, channels_out, isa) gives the name of the kernel, or why there is none.
template <class Build>
void ExpectOnlyFasterLayers(Build build) {
  using ::testing::HasSubstr;
  EXPECT_THAT(build({1, 56, 56, 64}, 64, Isa::kAvx2), HasSubstr("winograd 2x2"));
  EXPECT_THAT(build({1, 14, 14, 512}, 512, Isa::kAvx512), HasSubstr("winograd 2x2"));
  EXPECT_THAT(build({1, 56, 56, 64}, 64, Isa::kAvxVnni), HasSubstr("dot products"));
  EXPECT_THAT(build({1, 56, 56, 3}, 8, Isa::kAvx2), HasSubstr("longer than a plain"));
  EXPECT_THAT(build({1, 5, 5, 1900}, 8, Isa::kAvx2), HasSubstr("beyond 32 bits"));
}

}  // namespace fuselite::jit::testing
