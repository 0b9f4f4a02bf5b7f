// GELU by erf, which TFLite has no operator for: converters from ONNX leave TensorFlow's between
// products in any order, JAX spells erfc out, as polynomials of x^2 and 1/x^2 between which SELECTs
// choose, 64 nodes in all, and others may spell it in other ways. So nodes that compute one value
// from one other are taken for GELU if they give its values.
#include <algorithm>
#include <cmath>

#include "fusion/graph/region.h"
#include "fusion/match.h"
#include "fusion/rewrites/replace.h"
#include "fusion/rewrites/rewrites.h"

namespace fuselite::fusion {
namespace {

// JAX's has 65 nodes, one by five terms of a polynomial two dozen. The question takes 0.2 ms
// for 64.
constexpr size_t kLeastSpelledOut = 16, kMostNodes = 96;
// x / sqrt 2, erf, and a sum and two products in any order.
constexpr size_t kLeastByErf = 4;

// What `value` is a product of by a number; `value` where it is none.
ValueId WithoutNumber(const Graph& graph, ValueId value) {
  const NodeId mul = ProducerIs(graph, value, "MUL");
  if (mul == kNone) return value;
  const std::vector<ValueId>& in = graph.node(mul).inputs;
  for (int i : {0, 1}) {
    if (ScalarConstant(graph, in[i])) return in[1 - i];
  }
  return value;
}

// The values of which the product can be GELU: a factor of it, or what one is a multiple of, which
// the other factor is made of, too. If the product is only a multiple, that of what it multiplies.
std::vector<ValueId> Arguments(const Graph& graph, NodeId product) {
  std::vector<ValueId> arguments;
  const NodeId inner =
      ProducerIs(graph, WithoutNumber(graph, graph.node(product).outputs[0]), "MUL");
  if (inner != kNone) product = inner;
  for (const ValueId factor : graph.node(product).inputs) {
    for (const ValueId x : {factor, WithoutNumber(graph, factor)}) {
      if (graph.consumers(x).size() > 1) arguments.push_back(x);
    }
  }
  return arguments;
}

// What falls off as erfc does is an exponential somewhere, if it is not erf itself. A chain of 400
// other functions would be asked about 80 times, and open in 28 ms instead of 10.
bool MayBeGelu(const Graph& graph, const Region& region) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(region.nodes, [&](NodeId id) { return Is(graph, id, name); });
  };
  const size_t nodes = region.nodes.size();
  return (nodes >= kLeastSpelledOut && has("EXP")) || (nodes >= kLeastByErf && has("FlexErf"));
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
  static const std::vector<float> samples = Samples();
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
  // x erfc(-x / sqrt 2) / 2 ends with a product by x, a multiple of it, or a number.
  if (!IsBare(graph, id, "MUL") || !NothingFollows(graph.node(id))) return false;
  if (!IsFloat(graph, graph.node(id).outputs[0])) return false;
  const std::vector<ValueId> arguments = Arguments(graph, id);
  if (arguments.empty()) return false;
  RegionFinder finder(graph, id);
  while (finder.Next(kMostNodes)) {
    Region region = finder.region();
    if (!IsFloat(graph, region.root)) continue;
    if (std::ranges::find(arguments, region.root) == arguments.end()) continue;
    if (!MayBeGelu(graph, region)) continue;
    SortRegion(graph, &region);
    if (!GivesGelu(graph, region)) continue;
    return ReplacePattern(graph, id, DyingNodes(graph, region), MakeNode("GELU", {region.root}),
                          "recognize GELU", context);
  }
  return false;
}

}  // namespace fuselite::fusion
