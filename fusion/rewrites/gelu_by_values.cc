// GELU by erf, which TFLite has no operator for: JAX spells erfc out, as polynomials of x^2 and
// 1/x^2 between which SELECTs choose, 64 nodes in all, and others may spell it in other ways. So
// nodes that compute one value from one other are taken for GELU if they give its values.
#include <algorithm>
#include <cmath>

#include "fusion/match.h"
#include "fusion/region.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// JAX's has 65 nodes, one by five terms of a polynomial two dozen. The question takes 0.2 ms
// for 64.
constexpr size_t kLeastNodes = 16, kMostNodes = 96;

// Whether `factor` is x, or a number of times x.
bool IsMultipleOf(const Graph& graph, ValueId factor, ValueId x) {
  if (factor == x) return true;
  const NodeId mul = ProducerIs(graph, factor, "MUL");
  if (mul == kNone) return false;
  const std::vector<ValueId>& in = graph.node(mul).inputs;
  const auto is_number = [&](ValueId v) { return ScalarConstant(graph, v).has_value(); };
  return (in[0] == x && is_number(in[1])) || (in[1] == x && is_number(in[0]));
}

// From -8 to 8 in steps that no polynomial changes at, and further with growing steps: GELU is x or
// 0 there, and what spells it out must be, too.
std::vector<float> Samples() {
  constexpr int kInner = 384, kOuter = 64;
  std::vector<float> samples;
  for (int i = 0; i < kInner; ++i) samples.push_back(-8.0f + 16.0f * (i + 0.37f) / kInner);
  for (int i = 0; i < kOuter; ++i) {
    const float size = std::pow(10.0f, -6.0f + 10.0f * (i + 0.5f) / kOuter);
    samples.push_back(size);
    samples.push_back(-size);
  }
  samples.push_back(0);
  return samples;
}

// Polynomials of single precision are within a few roundings of it. By tanh GELU is up to 5e-4 off.
bool IsGelu(float x, float y) {
  const double expected = 0.5 * x * std::erfc(-x * std::sqrt(0.5));
  return std::abs(y - expected) <= 1e-6 * std::max(1.0, std::abs(expected));
}

bool GivesGelu(const Graph& graph, const Region& region) {
  const std::vector<float> samples = Samples();
  const Result<Value> result = EvaluateRegion(graph, region, std::as_bytes(std::span(samples)),
                                              static_cast<int32_t>(samples.size()));
  if (!result.ok()) return false;
  const auto* values = static_cast<const float*>(result->info.data);
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!IsGelu(samples[i], values[i])) return false;
  }
  return true;
}

}  // namespace

bool RecognizeGeluByValues(Graph& graph, NodeId id, RewriteContext& context) {
  // x erfc(-x / sqrt 2) / 2 ends with a product by x, or by a multiple of it.
  if (!IsBare(graph, id, "MUL") || !NothingFollows(graph.node(id))) return false;
  if (!IsFloat(graph, graph.node(id).outputs[0])) return false;
  RegionFinder finder(graph, id);
  while (finder.Next(kMostNodes)) {
    Region region = finder.region();
    const std::vector<ValueId>& factors = graph.node(id).inputs;
    if (region.nodes.size() < kLeastNodes || !IsFloat(graph, region.root)) continue;
    if (std::ranges::none_of(factors,
                             [&](ValueId v) { return IsMultipleOf(graph, v, region.root); })) {
      continue;
    }
    SortRegion(graph, &region);
    if (!GivesGelu(graph, region)) continue;
    return ReplacePattern(graph, id, DyingNodes(graph, region), MakeNode("GELU", {region.root}),
                          "recognize GELU", context);
  }
  return false;
}

}  // namespace fuselite::fusion
