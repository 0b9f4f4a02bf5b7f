#include "tools/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace fuselite::tools {

Summary Summarize(std::span<const double> samples) {
  if (samples.empty()) return {};
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  const auto n = static_cast<double>(sorted.size());
  const auto rank = [&](double share) {
    return sorted[static_cast<size_t>(std::lround(share * (n - 1)))];
  };
  const double mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / n;
  double squares = 0;
  for (double x : sorted) squares += (x - mean) * (x - mean);
  return {.count = sorted.size(),
          .first = samples.front(),
          .current = samples.back(),
          .min = sorted.front(),
          .max = sorted.back(),
          .mean = mean,
          .deviation = std::sqrt(squares / n),
          .p5 = rank(0.05),
          .median = rank(0.5),
          .p95 = rank(0.95)};
}

}  // namespace fuselite::tools
