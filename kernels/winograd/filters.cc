#include <algorithm>

#include "kernels/winograd/algorithm.h"

namespace fuselite::kernels {
namespace {

using Row = double[kWinogradFilter];

// Row i: 1, p, p^2 of the i-th point over the product of its distances to the other finite ones;
// the last one is infinity's.
constexpr Row kTwo[] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};

constexpr double kP = 0.625, kQ = 1.5;
constexpr double kZeroScale = 1 / (kP * kP * kQ * kQ);
constexpr double kPScale = 1 / (2 * kP * kP * (kP * kP - kQ * kQ));
constexpr double kQScale = 1 / (2 * kQ * kQ * (kQ * kQ - kP * kP));
constexpr Row kFour[] = {{kZeroScale, 0, 0},
                         {kPScale, kPScale* kP, kPScale* kP* kP},
                         {kPScale, -kPScale* kP, kPScale* kP* kP},
                         {kQScale, kQScale* kQ, kQScale* kQ* kQ},
                         {kQScale, -kQScale* kQ, kQScale* kQ* kQ},
                         {0, 0, 1}};

constexpr int64_t kBlock = 16;  // channels that are transformed side by side, in vectors

// `channels` channels of one filter: tap t of channel c is from[t * pitch + c], term t goes to
// to[t * term_step + c].
template <int kInputs>
void TransformBlock(const Row* g, const float* from, int64_t pitch, int64_t channels, float* to,
                    int64_t term_step) {
  double taps[kWinogradFilter][kWinogradFilter][kBlock] = {};
  for (int y = 0; y < kWinogradFilter; ++y) {
    for (int x = 0; x < kWinogradFilter; ++x) {
      std::copy_n(from + (y * kWinogradFilter + x) * pitch, channels, taps[y][x]);
    }
  }
  for (int i = 0; i < kInputs; ++i) {
    double row[kWinogradFilter][kBlock];
    for (int x = 0; x < kWinogradFilter; ++x) {
      for (int64_t c = 0; c < kBlock; ++c) {
        row[x][c] = g[i][0] * taps[0][x][c] + g[i][1] * taps[1][x][c] + g[i][2] * taps[2][x][c];
      }
    }
    for (int j = 0; j < kInputs; ++j) {
      float term[kBlock];
      for (int64_t c = 0; c < kBlock; ++c) {
        term[c] =
            static_cast<float>(g[j][0] * row[0][c] + g[j][1] * row[1][c] + g[j][2] * row[2][c]);
      }
      std::copy_n(term, channels, to + (i * kInputs + j) * term_step);
    }
  }
}

}  // namespace

void TransformWinogradFilters(int outputs, const float* filters, int64_t count, int64_t channels,
                              float* to) {
  constexpr int64_t kTaps = int64_t{kWinogradFilter} * kWinogradFilter;
  for (int64_t n = 0; n < count; ++n) {
    for (int64_t c = 0; c < channels; c += kBlock) {
      const int64_t some = std::min(kBlock, channels - c);
      const float* from = filters + n * kTaps * channels + c;
      float* block = to + n * channels + c;
      if (outputs == 2) {
        TransformBlock<WinogradInputs(2)>(kTwo, from, channels, some, block, count * channels);
      } else {
        TransformBlock<WinogradInputs(4)>(kFour, from, channels, some, block, count * channels);
      }
    }
  }
}

}  // namespace fuselite::kernels
