// Winograd's algorithm in whole numbers against the scalar reference, to the bit.
#include "jit/product/winograd.h"
#include "tests/jit/int8_cases.h"
#include "tests/jit/winograd_cases.h"
#include "tests/kernels/winograd_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::Candidate;
using kernels::Conv2DParams;
using kernels::testing::Activations;
using kernels::testing::QuantizedWeights;
using kernels::testing::RandomClampOrNone;
using kernels::testing::RandomDilation;
using kernels::testing::RandomQuantizedCase;
using kernels::testing::WeightsQuantization;

constexpr Candidate kAnyway = {"winograd", PlanWinogradS8Anyway};

OpTester RandomCase(Random& random, Shape image, int32_t channels_out) {
  OpTester tester("CONV_2D");
  auto& params = tester.params<Conv2DParams>();
  RandomWindow(random, params);
  params.activation = RandomClampOrNone(random);
  params.stride_h = params.stride_w = 1;
  params.dilation_h = RandomDilation(random, image[1]);
  params.dilation_w = RandomDilation(random, image[2]);
  const int32_t channels_in = image.dim(-1);
  const QuantizedCase c = RandomQuantizedCase(random, kBytes.types, int64_t{9} * channels_in);
  tester.Input(Activations(c, random, image))
      .Constant(QuantizedWeights(c, random, {channels_out, 3, 3, channels_in},
                                 WeightsQuantization(c, random, channels_out, 0, false)));
  AddIntegerBias(c, tester, random, channels_out);
  return tester.Output(c.type, c.output());
}

TEST(JitWinogradS8Test, IsExact) {
  ExpectExactLayers<uint8_t>(kAnyway, 19, RandomCase,
                             [](OpTester& tester, Random& random) { AddInt8Tail(tester, random); });
}

TEST(JitWinogradS8Test, IsForWhatItMakesFaster) {
  const auto build = [](Shape image, int32_t channels_out, Isa isa) {
    Random random(1);
    OpTester tester = RandomCase(random, image, channels_out);
    tester.params<Conv2DParams>().padding = kernels::Padding::kSame;
    tester.params<Conv2DParams>().dilation_h = 1;
    tester.params<Conv2DParams>().dilation_w = 1;
    tester.params<Conv2DParams>().extra_padding = {};
    EXPECT_TRUE(tester.Infer().ok());
    auto plan = PlanWinogradS8(tester.op, {.isa = isa});
    return plan.ok() ? std::string(plan->kernel().name()) : plan.status().ToString();
  };
  ExpectOnlyFasterLayers(build);
}

}  // namespace
}  // namespace fuselite::jit::testing
