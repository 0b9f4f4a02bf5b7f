// The driver of products (kernels/product) over a micro-kernel in plain loops, whose tiles, panels
// and blocks have random limits: every cut that a later micro-kernel may ask for, of which those of
// this machine's instructions are a few.
#include <cstring>

#include "jit/source/image_source.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/product/product_kernel.h"
#include "tests/jit/jit_cases.h"
#include "tests/kernels/product_cases.h"
#include "tests/kernels/transpose_conv_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::OpDescription;
using kernels::PanelChannels;
using kernels::ProductProblem;
using kernels::Tile;
using kernels::TileRun;

struct Limits {
  int lanes = 4, max_vectors = 2, max_rows = 3;
  int64_t block_bytes = 1024;
  double tile_start = 10;  // cycles: the more, the larger tiles are chosen
  bool shares_panels = false;

  static Limits Any(Random& random) {
    Limits limits;
    limits.lanes = random.Pick({1, 2, 3, 4, 8, 16});
    limits.max_vectors = static_cast<int>(random.Int(1, 8));
    limits.max_rows = static_cast<int>(random.Int(1, 20));
    limits.block_bytes = int64_t{1} << random.Int(2, 16);
    limits.tile_start = random.Float(0, 1000);
    limits.shares_panels = random.Chance(0.5);
    return limits;
  }
};

class PlainMicroKernel final : public kernels::MicroKernel {
 public:
  PlainMicroKernel(const Limits& limits, kernels::DepthRuns depth, const ProductProblem& problem)
      : limits_(limits),
        depth_(std::move(depth)),
        left_step_(problem.left.row),
        left_runs_(problem.left_runs),
        out_step_(problem.out.row * problem.out_row_bytes) {}

  std::string types() const override { return "f32"; }
  std::string target() const override { return "plain"; }
  int lanes() const override { return limits_.lanes; }
  int max_rows(int vectors) const override {
    return vectors <= limits_.max_vectors ? limits_.max_rows : 0;
  }
  double TileCycles(int rows, int vectors) const override {
    return limits_.tile_start + static_cast<double>(depth_.depth()) * rows * vectors;
  }
  int64_t row_bytes() const override { return depth_.depth() * int64_t{sizeof(float)}; }
  int64_t small_block_bytes() const override { return limits_.block_bytes; }
  size_t panel_bytes(int vectors) const override {
    return sizeof(float) * width(vectors) * (depth_.depth() + 1);
  }
  // The bias, then the weights of each term.
  void PackPanel(const kernels::RightMatrix& right, const PanelChannels& channels,
                 std::byte* to) const override {
    auto* packed = reinterpret_cast<float*>(to);
    const auto* values = static_cast<const float*>(right.values);
    const auto* bias = static_cast<const float*>(right.bias);
    for (int64_t k = -1; k < depth_.depth(); ++k) {
      for (int64_t i = 0; i < width(channels.vectors); ++i) {
        const int64_t n = channels.first + i;
        float value = 0;
        if (n < channels.last && k >= 0) value = values[k * right.k_step + n * right.n_step];
        if (n < channels.last && k < 0 && bias != nullptr) value = bias[n];
        *packed++ = value;
      }
    }
  }
  std::string layout() const override { return internal::Join("plain k", depth_.depth()); }
  bool shares_panels() const override { return limits_.shares_panels; }
  Result<std::shared_ptr<const MicroKernel>> Emit(std::span<const Tile> tiles,
                                                  const std::string&) const override {
    EXPECT_LE(tiles.size(), 4U);
    for (const Tile& tile : tiles) {
      EXPECT_LE(tile.vectors, limits_.max_vectors);
      EXPECT_LE(tile.rows, limits_.max_rows);
      EXPECT_LE(tile.last_lanes, limits_.lanes);
    }
    auto emitted = std::make_shared<PlainMicroKernel>(*this);
    emitted->tiles_.assign(tiles.begin(), tiles.end());
    return std::shared_ptr<const MicroKernel>(std::move(emitted));
  }
  void Run(const TileRun& run) const override {
    ASSERT_LT(run.tile, tiles_.size());
    const Tile& tile = tiles_[run.tile];
    const int64_t channels = (tile.vectors - 1) * limits_.lanes + tile.last_lanes;
    for (int64_t row = 0; row < run.tiles * tile.rows; ++row) {
      for (int64_t n = 0; n < channels; ++n) {
        const float sum = Sum(run.left + left_runs_.Offset(row, left_step_),
                              reinterpret_cast<const float*>(run.panel) + n, width(tile.vectors));
        std::memcpy(run.out + row * out_step_ + n * sizeof(float), &sum, sizeof(float));
      }
    }
  }

 private:
  int64_t width(int vectors) const { return int64_t{vectors} * limits_.lanes; }

  // `weights`: the channel's bias, and `step` values further its first weight.
  float Sum(const std::byte* left, const float* weights, int64_t step) const {
    double sum = *weights;
    for (int64_t outer = 0; outer < depth_.outer; ++outer) {
      for (const auto& [offset, length] : depth_.runs) {
        for (int64_t k = 0; k < length; ++k) {
          float value;
          std::memcpy(&value, left + outer * depth_.outer_step + offset + k * sizeof(float),
                      sizeof(float));
          sum += double{value} * *(weights += step);
        }
      }
    }
    return static_cast<float>(sum);
  }

  Limits limits_;
  kernels::DepthRuns depth_;
  int64_t left_step_;
  kernels::RowRuns left_runs_;
  int64_t out_step_;
  std::vector<Tile> tiles_;
};

Limits current;  // a candidate is a plain function

// Leaves the whole tail to the driver.
Result<kernels::KernelPlan> PlanPlain(const OpDescription& op,
                                      const kernels::PlanContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const kernels::ProductDescription d, op.op->product(op));
  kernels::Tail tail;
  tail.rows_per_batch = op.tail.rows_per_batch;
  if (!AppendActivation(d.activation, &tail)) return Unsupported("an activation");
  tail.stages.insert(tail.stages.end(), op.tail.stages.begin(), op.tail.stages.end());
  kernels::ProductKernelSpec spec;
  spec.source = FloatSource(op.op->product_inputs->x, d);
  spec.value_bytes = sizeof(float);
  spec.tail_is_linear = op.tail.empty();
  spec.micro_kernel =
      [&](const kernels::DepthRuns& depth,
          ProductProblem* problem) -> Result<std::shared_ptr<const kernels::MicroKernel>> {
    if (!tail.empty()) {
      problem->rest = {.apply = kernels::ApplyTailReference,
                       .on_sums = false,
                       .output = op.outputs[0].type,
                       .tail = tail,
                       .why = "plain"};
    }
    return std::shared_ptr<const kernels::MicroKernel>(
        std::make_shared<PlainMicroKernel>(current, depth, *problem));
  };
  return PlanProductKernel(op, d, spec, context);
}

// What the driver makes of random operations against the reference; a second run with other
// threads, and so other blocks, must give the same bits.
template <class Params, class Make>
void CompareDriver(int cases, Make make, const std::function<double(OpTester&)>& depth) {
  for (int seed = 1; seed <= cases; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = make(random);
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    AddTail(tester, random);
    kernels::testing::PitchOutput(tester, random);
    const std::vector<float> bounds =
        kernels::testing::Bounds(tester, depth(tester), [](OpTester& plain) {
          if constexpr (!std::is_void_v<Params>) {
            plain.params<Params>().activation = kernels::Activation::kNone;
          }
        });
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    for (int run = 0; run < 3; ++run) {
      current = Limits::Any(random);
      const kernels::Candidate plain("plain", PlanPlain);
      const auto actual = tester.RunCandidate(plain, Isa::kScalar, random.Int(1, 99));
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      kernels::testing::ExpectNear((*expected)[0], (*actual)[0],
                                   [&](int64_t i) { return bounds[i]; }, "plain");
      OpTester again = tester;
      again.threads = static_cast<int>(random.Int(2, 9));
      const auto same = again.RunCandidate(plain, Isa::kScalar, random.Int(100, 199));
      ASSERT_TRUE(same.ok()) << same.status().ToString();
      kernels::testing::ExpectSame<float>((*actual)[0], (*same)[0], "plain again");
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(ProductDriverTest, Convolutions) {
  CompareDriver<kernels::Conv2DParams>(
      60, [](Random& random) { return kernels::testing::RandomConv2D(random, {}); },
      [](OpTester& tester) -> double { return tester.op.inputs[1].shape.elements(1, 4); });
}

TEST(ProductDriverTest, FullyConnected) {
  CompareDriver<kernels::FullyConnectedParams>(
      60, [](Random& random) { return kernels::testing::RandomFullyConnected(random); },
      [](OpTester& tester) -> double { return tester.op.inputs[1].shape.dim(-1); });
}

TEST(ProductDriverTest, BatchedProducts) {
  CompareDriver<void>(
      60, [](Random& random) { return kernels::testing::RandomBatchMatMul(random, true); },
      [](OpTester& tester) -> double { return kernels::testing::BatchMatMulDepth(tester); });
}

TEST(ProductDriverTest, TransposedConvolutions) {
  CompareDriver<kernels::TransposeConvParams>(
      60, [](Random& random) { return kernels::testing::RandomTransposeConv(random, 3); },
      [](OpTester& tester) -> double { return tester.op.inputs[1].shape.elements(1, 4); });
}

// Whoever makes another operator of products adds it here and above.
TEST(ProductDriverTest, KnowsEveryOperatorOfProducts) {
  std::vector<std::string_view> names;
  for (const kernels::OperatorDef* op : kernels::AllOperators()) {
    if (op->product == nullptr) continue;
    EXPECT_TRUE(op->product_inputs.has_value()) << op->name;
    EXPECT_TRUE(op->takes_tail) << op->name;
    names.push_back(op->name);
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D",
                                                     "FULLY_CONNECTED", "TRANSPOSE_CONV"));
}

}  // namespace
}  // namespace fuselite::jit::testing
