// Summaries of samples.
#pragma once

#include <cstddef>
#include <span>

namespace fuselite::tools {

struct Summary {
  size_t count = 0;
  double first = 0, current = 0;  // in order of time
  double min = 0, max = 0, mean = 0, deviation = 0;
  double p5 = 0, median = 0, p95 = 0;
};

// All zero for no samples. The deviation is the population's; percentiles are nearest ranks.
Summary Summarize(std::span<const double> samples);

}  // namespace fuselite::tools
