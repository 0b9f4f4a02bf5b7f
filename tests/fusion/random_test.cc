// Random graphs, with and without fusion.
#include "tests/fusion/random_bytes.h"
#include "tests/fusion/random_graph.h"
#include "tests/fusion/random_phrases.h"
#include "tests/fusion/random_rows.h"

namespace fuselite::fusion::testing {
namespace {

// `nodes(seed)`: how many, or how many phrases of them.
template <class Grower, class Nodes>
void CompareGraphs(uint64_t seeds, Nodes nodes) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Grower grower{Random(seed)};
    const Graph& graph = grower.Grow(nodes(static_cast<int>(seed)));
    if (graph.outputs.empty()) continue;
    ExpectSameFusedAtAnySize(graph, grower.tolerance());
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(RandomGraphs, OfImagesFusedEqualUnfused) {
  CompareGraphs<RandomGraph>(150, [](int seed) { return 4 + seed % 30; });
}

TEST(RandomGraphs, OfRowsFusedEqualUnfused) {
  CompareGraphs<RandomRows>(100, [](int seed) { return 1 + seed % 8; });
}

TEST(RandomGraphs, OfBytesFusedEqualUnfused) {
  CompareGraphs<RandomBytes>(150, [](int seed) { return 2 + seed % 25; });
}

TEST(RandomGraphs, OfPhrasesFusedEqualUnfused) {
  CompareGraphs<RandomPhrases>(150, [](int seed) { return 1 + seed % 8; });
}

// Strips of few rows give the bits of the whole.
template <class Grower>
void CompareStrips(uint64_t seeds, int nodes) {
  size_t strips = 0;
  for (uint64_t seed = 2000; seed < 2000 + seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Grower grower{Random(seed)};
    const Graph& graph = grower.Grow(nodes);
    if (graph.outputs.empty()) continue;
    CompileOptions options = Fused();
    options.threads = 2 + static_cast<int>(seed % 3);
    options.strips = {.least_of_strip = 1};
    const Outcome in_strips = RunGraph(graph, options);
    options.strips.most_weights = 0;
    options.strips.most_of_step = 0;
    ExpectClose(RunGraph(graph, options).outputs, in_strips.outputs, 0);
    if (::testing::Test::HasFailure()) return;
    for (const StepReport& step : in_strips.report.steps) strips += step.steps.empty() ? 0 : 1;
  }
  EXPECT_GT(strips, seeds / 4) << "too few graphs had any";
}

TEST(RandomGraphs, OfImagesHaveTheirBitsInStrips) { CompareStrips<RandomGraph>(150, 15); }
TEST(RandomGraphs, OfRowsHaveTheirBitsInStrips) { CompareStrips<RandomRows>(150, 8); }
TEST(RandomGraphs, OfBytesHaveTheirBitsInStrips) { CompareStrips<RandomBytes>(150, 20); }
TEST(RandomGraphs, OfPhrasesHaveTheirBitsInStrips) { CompareStrips<RandomPhrases>(150, 8); }

// After every rewrite the graph is valid; at the fixed point nothing is left to do.
template <class Grower>
void RewriteGraphs(uint64_t seeds, int nodes) {
  for (uint64_t seed = 1000; seed < 1000 + seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Grower grower{Random(seed)};
    Graph graph = grower.Grow(nodes);
    Planner planner = PlannerFor(Fused());
    std::vector<RewriteRecord> log;
    RewriteContext rewriting(planner, &log);
    for (RewriteFunction rewrite : AllRewrites()) {
      RunRewrite(rewrite, graph, rewriting);
      const Status status = Validate(graph);
      ASSERT_TRUE(status.ok()) << status.ToString()
                               << " after: " << (log.empty() ? "" : log.back().ToString());
    }
    RunRewrites(graph, rewriting);
    const size_t changes = log.size();
    RunRewrites(graph, rewriting);
    EXPECT_EQ(log.size(), changes) << log.back().ToString();
  }
}

TEST(RandomGraphs, OfImagesStayValidAfterEveryRewrite) { RewriteGraphs<RandomGraph>(60, 25); }
TEST(RandomGraphs, OfRowsStayValidAfterEveryRewrite) { RewriteGraphs<RandomRows>(60, 8); }
TEST(RandomGraphs, OfBytesStayValidAfterEveryRewrite) { RewriteGraphs<RandomBytes>(60, 25); }
TEST(RandomGraphs, OfPhrasesStayValidAfterEveryRewrite) { RewriteGraphs<RandomPhrases>(60, 8); }

}  // namespace
}  // namespace fuselite::fusion::testing
