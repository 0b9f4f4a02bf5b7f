#include "tests/jit/int8_cases.h"

namespace fuselite::jit::testing {
namespace {

TEST(JitDepthwiseInt8Test, EqualsTheReference) {
  CompareInt8Cases(200, kernels::testing::RandomQuantizedDepthwise);
}

TEST(JitDepthwiseInt8Test, ExtremeChannelsEqualTheReference) {
  CompareExtremeCases(200, false, kernels::testing::RandomQuantizedDepthwise);
}

}  // namespace
}  // namespace fuselite::jit::testing
