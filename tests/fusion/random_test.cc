// Random graphs, with and without fusion.
#include "tests/fusion/random_graph.h"

namespace fuselite::fusion::testing {
namespace {

TEST(RandomGraphs, FusedEqualsUnfused) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomGraph grower{Random(seed)};
    const Graph& graph = grower.Grow(4 + static_cast<int>(seed % 30));
    if (graph.outputs.empty()) continue;
    ExpectSameFused(graph, 1e-3f);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(RandomGraphs, StayValidAfterEveryRewrite) {
  for (uint64_t seed = 1000; seed < 1060; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomGraph grower{Random(seed)};
    Graph graph = grower.Grow(25);
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
    // At the fixed point, nothing is left to do.
    const size_t changes = log.size();
    RunRewrites(graph, rewriting);
    EXPECT_EQ(log.size(), changes) << log.back().ToString();
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
