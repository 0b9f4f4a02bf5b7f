// Batches of images that are convolved some at a time: the results of the reference, with operands
// that advance from image to image, whatever the threads.
#include "kernels/rows/image_slices.h"

#include <algorithm>

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

int SlicedSteps(const Outcome& outcome) {
  return static_cast<int>(std::ranges::count_if(outcome.report.steps, [](const StepReport& step) {
    return step.kernel.ends_with(" at a time");
  }));
}

// Batches layer by layer, of which no layer is computed in parts with others.
CompileOptions LayerByLayer() {
  CompileOptions options = Fused();
  options.batch.most_bytes = 0;
  return options;
}

// Runs with one to four threads. Returns how many steps go slice by slice with one.
int ExpectReference(const Graph& graph, float tolerance) {
  CompileOptions reference = LayerByLayer();
  reference.isa = Isa::kScalar;
  const Outcome expected = RunGraph(graph, reference);
  EXPECT_TRUE(expected.status.ok()) << expected.status.message();
  EXPECT_EQ(SlicedSteps(expected), 0);
  const Outcome first = RunGraph(graph, LayerByLayer());
  ExpectClose(expected.outputs, first.outputs, tolerance);
  for (const int threads : {2, 3, 4}) {
    SCOPED_TRACE(threads);
    CompileOptions options = LayerByLayer();
    options.threads = threads;
    ExpectClose(first.outputs, RunGraph(graph, options).outputs, 0);
  }
  return SlicedSteps(first);
}

// Whether dot products of bytes are emitted.
bool EmitsDots() {
  const Isa isa = Fused().isa;
  return FUSELITE_JIT != 0 && (isa.has(Feature::kAvxVnni) || isa.has(Feature::kAvx512Vnni));
}
// Whether products are scheduled by the driver, whoever computes their tiles.
bool HasVectors() { return Fused().isa != Isa::kScalar; }

TEST(ImageSlices, OperandsAdvanceFromImageToImage) {
  GraphBuilder g;
  const ValueId x = g.Input({12, 40, 40, 16}), gate = g.Input({12, 1, 1, 24});
  const ValueId residual = g.Conv(x, 24, 1);
  const ValueId sum = g.Op("ADD", {g.Conv(x, 24, 5), residual});
  g.Output(g.Op("MUL", {sum, gate}));
  EXPECT_EQ(ExpectReference(g.graph(), 1e-4f), HasVectors() ? 1 : 0);
}

TEST(ImageSlices, StridesAndMasksOfRows) {
  GraphBuilder g;
  const ValueId x = g.Input({14, 40, 40, 16}), mask = g.Input({14, 20, 20, 1});
  const ValueId y = g.Conv(x, 20, 3, {{"stride_w", 2}, {"stride_h", 2}});
  g.Output(g.Op("MUL", {y, mask}));
  EXPECT_EQ(ExpectReference(g.graph(), 1e-4f), HasVectors() ? 1 : 0);
}

TEST(ImageSlices, BytesHaveTheSameBits) {
  Int8Builder g;
  const ValueId x = g.In({16, 72, 72, 16});
  const ValueId y = g.Conv8(x, 24, 3, 0.05f, 4), residual = g.Conv8(x, 24, 1, 0.04f, -2);
  g.Out(g.Int8Op("ADD", {y, residual}, 0.06f, 1));
  // Dot products read the bytes under windows of one pixel where they lie; others widen them.
  EXPECT_EQ(ExpectReference(g.graph(), 0), EmitsDots() ? 1 : HasVectors() ? 2 : 0);
}

// What lies in a cache as it is, one image, and images that four threads cannot share evenly.
TEST(ImageSlices, OthersStayWhole) {
  GraphBuilder small;
  small.Output(small.Conv(small.Input({12, 8, 8, 16}), 24, 3));
  EXPECT_EQ(ExpectReference(small.graph(), 1e-4f), 0);
  GraphBuilder one;
  one.Output(one.Conv(one.Input({1, 160, 160, 16}), 8, 3));
  EXPECT_EQ(ExpectReference(one.graph(), 1e-4f), 0);
  GraphBuilder prime;
  prime.Output(prime.Conv(prime.Input({7, 64, 64, 16}), 8, 3));
  CompileOptions options = LayerByLayer();
  options.threads = 4;
  EXPECT_EQ(SlicedSteps(RunGraph(prime.graph(), options)), 0);
}

}  // namespace
}  // namespace fuselite::fusion::testing
