// Fourier transforms, and the spectrograms that they give: plain loops against the sum that defines
// them, vectors against plain loops.
#include "kernels/rfft2d/fourier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "kernels/audio/audio.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

using Complex = std::complex<double>;

std::vector<double> RandomReals(Random& random, int64_t n) {
  std::vector<double> x(n);
  for (double& value : x) value = random.Float(-1, 1);
  return x;
}

// Numbers side by side from parts that lie apart.
std::vector<Complex> Joined(const std::vector<double>& parts, int64_t count) {
  std::vector<Complex> x(count);
  for (int64_t i = 0; i < count; ++i) x[i] = {parts[i], parts[ImaginaryOffset(count) + i]};
  return x;
}

// The bins of `x`, filled up with zeros to n reals.
std::vector<Complex> RealBins(const std::vector<double>& x, int64_t n,
                              const FourierFunctions& functions) {
  const RealTransform transform(n, functions);
  const int64_t bins = transform.bins();
  // What is there before must not matter.
  std::vector<double> out(2 * ImaginaryOffset(bins), NAN),
      scratch(transform.scratch_doubles(), NAN);
  transform.Run([&](int64_t i) { return x[i]; }, static_cast<int64_t>(x.size()), scratch.data(),
                {out.data(), out.data() + ImaginaryOffset(bins)});
  return Joined(out, bins);
}

void ExpectClose(const std::vector<Complex>& expected, const std::vector<Complex>& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_LT(std::abs(expected[i] - actual[i]), 1e-11) << "number " << i;
  }
}

TEST(FourierTest, IsTheSumThatDefinesIt) {
  Random random(1);
  for (int64_t n = 1; n <= 128; n *= 2) {
    SCOPED_TRACE(n);
    std::vector<double> x = RandomReals(random, random.Int(0, n));
    std::vector<Complex> expected(n / 2 + 1);
    for (int64_t k = 0; k <= n / 2; ++k) {
      for (size_t j = 0; j < x.size(); ++j) {
        const double turn = static_cast<double>(k * static_cast<int64_t>(j) % n) / n;
        expected[k] += x[j] * std::polar(1.0, -2 * std::numbers::pi * turn);
      }
    }
    ExpectClose(expected, RealBins(x, n, kPlainFourier));
  }
}

class FourierIsaTest : public ::testing::TestWithParam<Isa> {};

TEST_P(FourierIsaTest, RealTransformsEqualPlainLoops) {
  const FourierFunctions* const functions = FindFourier(GetParam());
  ASSERT_EQ(functions != nullptr, GetParam().has_vectors());
  if (functions == nullptr) return;
  Random random(2);
  for (int64_t n = 1; n <= 4096; n *= 2) {
    SCOPED_TRACE(n);
    const std::vector<double> x = RandomReals(random, random.Int(0, n));
    ExpectClose(RealBins(x, n, kPlainFourier), RealBins(x, n, *functions));
  }
}

TEST_P(FourierIsaTest, ColumnsEqualPlainLoops) {
  const FourierFunctions* const functions = FindFourier(GetParam());
  if (functions == nullptr) return;
  Random random(3);
  for (int64_t n = 1; n <= 64; n *= 2) {
    for (const int64_t width : {1, 3, 8, 17}) {
      SCOPED_TRACE(::testing::Message() << n << " rows of " << width);
      const int64_t im = ImaginaryOffset(n * width);
      std::vector<double> plain = RandomReals(random, 2 * im), vectors = plain;
      ComplexTransform(n, kPlainFourier).RunRows({plain.data(), plain.data() + im}, width);
      ComplexTransform(n, *functions).RunRows({vectors.data(), vectors.data() + im}, width);
      ExpectClose(Joined(plain, n * width), Joined(vectors, n * width));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, FourierIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

TEST(AudioSpectrogramTest, VectorsAgreeWithTheReference) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("AudioSpectrogram");
    tester.params<SpectrogramParams>() = {
        .window = random.Int(2, 140), .stride = random.Int(1, 40), .squared = random.Chance(0.5)};
    TestTensor samples({.type = DataType::kFloat32,
                        .shape = {static_cast<int32_t>(random.Int(1, 300)),
                                  static_cast<int32_t>(random.Int(1, 3))}});
    samples.Fill(random, -1, 1);
    tester.Input(samples);
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar, seed);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    for (Isa isa : RunnableIsas()) {
      if (!isa.has_vectors()) continue;
      const auto actual = tester.Run("highway", isa, seed, random.Int(0, 3));
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      ExpectNear((*expected)[0], (*actual)[0], [](int64_t) { return 1e-4F; }, IsaName(isa));
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
