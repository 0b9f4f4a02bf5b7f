// Random graphs, fused against unfused.
#include "tests/fusion/random_bytes.h"
#include "tests/fusion/random_graph.h"
#include "tests/fusion/random_phrases.h"
#include "tests/fusion/random_rows.h"
#include "tests/fuzz/target.h"

namespace fuselite::fuzz {
namespace {

template <class Grower>
void Compare(kernels::testing::Random random, int nodes) {
  Grower grower(random);
  const fusion::Graph& grown = grower.Grow(nodes);
  if (!grown.outputs.empty()) {
    fusion::testing::ExpectSameFusedAtAnySize(grown, grower.tolerance());
  };
}

}  // namespace

void FuzzOne(std::span<const uint8_t> bytes) {
  kernels::testing::Random random(bytes);
  const int nodes = static_cast<int>(3 + bytes.size() / 8 % 38);
  switch (random.Int(0, 3)) {
    case 0: return Compare<fusion::testing::RandomGraph>(random, nodes);
    case 1: return Compare<fusion::testing::RandomRows>(random, 1 + nodes / 4);
    case 2: return Compare<fusion::testing::RandomBytes>(random, nodes);
    default: return Compare<fusion::testing::RandomPhrases>(random, 1 + nodes / 4);
  }
}

}  // namespace fuselite::fuzz
