// Random graphs, fused against unfused.
#include "tests/fusion/random_graph.h"
#include "tests/fuzz/target.h"

namespace fuselite::fuzz {

void FuzzOne(std::span<const uint8_t> bytes) {
  fusion::testing::RandomGraph graph{kernels::testing::Random(bytes)};
  const fusion::Graph& grown = graph.Grow(static_cast<int>(3 + bytes.size() / 8 % 38));
  if (grown.outputs.empty()) return;
  fusion::testing::ExpectSameFused(grown, 1e-3f);
}

}  // namespace fuselite::fuzz
