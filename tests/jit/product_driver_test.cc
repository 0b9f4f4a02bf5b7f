// The driver of products (kernels/product) over a micro-kernel in plain loops, whose tiles, panels
// and blocks have random limits: every cut that a later micro-kernel may ask for, of which those of
// this machine's instructions are a few. Of floats, of bytes whose sums wait for their tail, and of
// floats quantized at run time.
#include <cstring>
#include <functional>

#include "jit/product/product_hybrid.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/product/product_kernel.h"
#include "kernels/source/image_source.h"
#include "tests/jit/int8_cases.h"
#include "tests/kernels/hybrid_cases.h"
#include "tests/kernels/product_cases.h"
#include "tests/kernels/transpose_conv_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::OpDescription;
using kernels::PanelChannels;
using kernels::ProductProblem;
using kernels::Tile;
using kernels::TileOrder;
using kernels::TileRun;
using kernels::testing::CompareRandomly;

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

// What a plain micro-kernel multiplies and stores: int32 sums, or floats. Sums are exact in doubles
// where values are integers.
struct PlainFormat {
  std::string types;
  int64_t left_bytes = 4;
  // From memory: a value of the left side, the i-th weight, the n-th bias; zero points taken off.
  std::function<double(const std::byte* at)> left;
  std::function<double(const void* weights, int64_t i)> weight;
  std::function<double(const void* biases, int64_t n)> bias;
  // The weights' zero point, which sums learn of by what rows tell (MicroKernel::RowValues).
  double weights_zero_point = 0;
  // Of scales that the source tells of rows; 0: those of an image are its rows'.
  int64_t row_scale_bytes = 0;
  bool row_zero_points = false;  // which are taken off values, too
  // Stores a sum of output channel `channel`; `scale` is its row's, of a source that has scales.
  std::function<void(double sum, const RowScale* scale, int64_t channel, std::byte* to)> store;
};

class PlainMicroKernel final : public kernels::MicroKernel {
 public:
  PlainMicroKernel(PlainFormat format, const Limits& limits, kernels::DepthRuns depth,
                   const ProductProblem& problem)
      : format_(std::move(format)),
        limits_(limits),
        depth_(std::move(depth)),
        left_step_(problem.left.row),
        left_runs_(problem.left_runs),
        out_step_(problem.out.row * problem.out_row_bytes),
        scratch_(problem.rest.waits()) {}

  std::string types() const override { return format_.types; }
  std::string target() const override { return "plain"; }
  int lanes() const override { return limits_.lanes; }
  int max_rows(int vectors) const override {
    return vectors <= limits_.max_vectors ? limits_.max_rows : 0;
  }
  double TileCycles(int rows, int vectors) const override {
    return limits_.tile_start + static_cast<double>(depth_.depth()) * rows * vectors;
  }
  int64_t row_bytes() const override { return depth_.depth() * format_.left_bytes; }
  int64_t small_block_bytes() const override { return limits_.block_bytes; }
  size_t panel_bytes(int vectors) const override {
    return sizeof(double) * width(vectors) * (depth_.depth() + 1);
  }
  // The bias, then the weights of each term.
  void PackPanel(const kernels::RightMatrix& right, const PanelChannels& channels,
                 std::byte* to) const override {
    auto* packed = reinterpret_cast<double*>(to);
    for (int64_t k = -1; k < depth_.depth(); ++k) {
      for (int64_t i = 0; i < width(channels.vectors); ++i, ++packed) {
        const int64_t n = channels.first + i;
        *packed = 0;
        if (n >= channels.last) continue;
        if (k >= 0) *packed = format_.weight(right.values, k * right.k_step + n * right.n_step);
        if (k < 0 && right.bias != nullptr) *packed = format_.bias(right.bias, n);
      }
    }
  }
  std::string layout() const override { return internal::Join("plain k", depth_.depth()); }
  const kernels::MicroKernel* many_rows() const override {
    return limits_.shares_panels ? this : nullptr;
  }
  bool needs_row_values() const override { return format_.weights_zero_point != 0; }
  void RowValues(const std::byte* left, int64_t step, int64_t count,
                 int32_t* values) const override {
    for (int64_t i = 0; i < count; ++i) {
      double sum = 0;
      ForEachValue(left + i * step, [&](double value) { sum += value; });
      values[i] = static_cast<int32_t>(-format_.weights_zero_point * sum);
    }
  }
  Result<std::shared_ptr<const MicroKernel>> Emit(std::span<const Tile> tiles, TileOrder order,
                                                  const std::string&) const override {
    EXPECT_LE(tiles.size(), 4U);
    for (const Tile& tile : tiles) {
      EXPECT_LE(tile.vectors, limits_.max_vectors);
      EXPECT_LE(tile.rows, limits_.max_rows);
      EXPECT_LE(tile.last_lanes, limits_.lanes);
    }
    auto emitted = std::make_shared<PlainMicroKernel>(*this);
    emitted->tiles_.assign(tiles.begin(), tiles.end());
    emitted->order_ = order;
    // Sums that wait in scratch memory for their tail have rows of the widest panel.
    if (scratch_) emitted->out_step_ = width(tiles.front().vectors) * int64_t{sizeof(int32_t)};
    return std::shared_ptr<const MicroKernel>(std::move(emitted));
  }
  void Run(const TileRun& run) const override {
    ASSERT_LT(run.tile, tiles_.size());
    const Tile& tile = tiles_[run.tile];
    if (order_ == TileOrder::kDown) return RunRows(tile, run.tiles * tile.rows, run);
    TileRun one = run;
    for (int64_t i = 0; i < run.tiles; ++i) {
      RunRows(tile, tile.rows, one);
      one.panel += panel_bytes(tile.vectors);
      one.out += width(tile.vectors) * 4;
      one.channel += width(tile.vectors);
    }
  }

 private:
  void RunRows(const Tile& tile, int64_t rows, const TileRun& run) const {
    const int64_t channels = (tile.vectors - 1) * limits_.lanes + tile.last_lanes;
    for (int64_t row = 0; row < rows; ++row) {
      const std::byte* left = run.left + left_runs_.Offset(row, left_step_);
      double correction = 0;
      const RowScale* scale = nullptr;
      if (needs_row_values()) {
        correction = reinterpret_cast<const int32_t*>(run.row_values)[row];
      } else if (run.row_values != nullptr) {
        scale = reinterpret_cast<const RowScale*>(run.row_values + row * format_.row_scale_bytes);
      }
      for (int64_t n = 0; n < channels; ++n) {
        const auto* weights = reinterpret_cast<const double*>(run.panel) + n;
        double sum = *weights + correction;
        ForEachValue(left, [&](double value) {
          if (format_.row_zero_points) value -= scale->zero_point;
          sum += value * *(weights += width(tile.vectors));
        });
        format_.store(sum, scale, run.channel + n, run.out + row * out_step_ + n * 4);
      }
    }
  }

  int64_t width(int vectors) const { return int64_t{vectors} * limits_.lanes; }

  // The values of a row in the order of the depth.
  template <class Function>
  void ForEachValue(const std::byte* left, Function function) const {
    for (int64_t outer = 0; outer < depth_.outer; ++outer) {
      for (const auto& [offset, length] : depth_.runs) {
        // Offsets are in bytes.
        const std::byte* run = left + outer * depth_.outer_step + offset;
        for (int64_t k = 0; k < length; ++k) function(format_.left(run + k * format_.left_bytes));
      }
    }
  }

  PlainFormat format_;
  Limits limits_;
  kernels::DepthRuns depth_;
  int64_t left_step_;
  kernels::RowRuns left_runs_;
  int64_t out_step_;
  bool scratch_;
  std::vector<Tile> tiles_;
  TileOrder order_ = TileOrder::kDown;
};

// A value of any type at any address.
template <class T>
double Read(const void* values, int64_t i = 0) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(values) + i * int64_t{sizeof(T)}, sizeof(T));
  return static_cast<double>(value);
}
template <class T>
void Write(std::byte* to, double value) {
  const T rounded = static_cast<T>(value);
  std::memcpy(to, &rounded, sizeof(T));
}

// What candidates, which are plain functions, are to use.
Limits current;
Isa current_isa;

// A plan whose whole `tail` is left to the driver.
Result<kernels::KernelPlan> PlanPlain(const OpDescription& op, const kernels::PlanContext& context,
                                      const kernels::ProductDescription& d,
                                      kernels::ProductKernelSpec spec, const PlainFormat& format,
                                      const kernels::Tail& tail, bool on_sums) {
  spec.value_bytes = format.left_bytes;
  spec.micro_kernel =
      [&](const kernels::DepthRuns& depth,
          ProductProblem* problem) -> Result<std::shared_ptr<const kernels::MicroKernel>> {
    if (on_sums || !tail.empty()) {
      problem->rest = {.apply = kernels::ApplyTailReference,
                       .in_scratch = on_sums ? DataType::kInt32 : DataType::kNone,
                       .output = op.outputs[0].type,
                       .tail = tail,
                       .why = "plain"};
    }
    return std::shared_ptr<const kernels::MicroKernel>(
        std::make_shared<PlainMicroKernel>(format, current, depth, *problem));
  };
  return PlanProductKernel(op, d, spec, context);
}

// `first`, the operator's activation and its tail.
Result<kernels::Tail> WholeTail(const OpDescription& op, const kernels::ProductDescription& d,
                                std::vector<TailStage> first) {
  kernels::Tail tail;
  tail.rows_per_batch = op.tail.rows_per_batch;
  tail.stages = std::move(first);
  if (!AppendActivation(d.activation, &tail)) return Unsupported("an activation");
  tail.stages.insert(tail.stages.end(), op.tail.stages.begin(), op.tail.stages.end());
  return tail;
}

Result<kernels::KernelPlan> PlanFloats(const OpDescription& op,
                                       const kernels::PlanContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const kernels::ProductDescription d, op.op->product(op));
  FUSELITE_ASSIGN_OR_RETURN(const kernels::Tail tail, WholeTail(op, d, {}));
  PlainFormat format;
  format.types = "f32";
  format.left = [](const std::byte* at) { return Read<float>(at); };
  format.weight = Read<float>;
  format.bias = Read<float>;
  format.store = [](double sum, const RowScale*, int64_t, std::byte* to) { Write<float>(to, sum); };
  kernels::ProductKernelSpec spec;
  spec.source = kernels::FloatSource(op.op->product_inputs->x, d, context.isa);
  spec.tail_is_linear = op.tail.empty();
  return PlanPlain(op, context, d, std::move(spec), format, tail, false);
}

Result<kernels::KernelPlan> PlanBytes(const OpDescription& op,
                                      const kernels::PlanContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const kernels::ProductDescription d, op.op->product(op));
  FUSELITE_ASSIGN_OR_RETURN(
      const kernels::QuantizedTail tail,
      MakeQuantizedTail(op, d.activation, d.quantized_bias_type, d.channels_out));
  const kernels::ProductInputs& inputs = *op.op->product_inputs;
  const TensorInfo &in = op.inputs[inputs.x], &weights = op.inputs[inputs.weights];
  kernels::ByteSource source = kernels::MakeByteSource(inputs.x, d, in, HasDotProduct(current_isa));
  const bool is_signed = in.type == DataType::kInt8;
  // Bytes that dot products read are unsigned, 128 more; `flips`: not yet.
  const int32_t zero_point = in.quantization.zero_point() +
                             (is_signed && source.value_bytes == 1 && !source.flips ? 128 : 0);
  const auto read = source.value_bytes == 2     ? Read<int16_t>
                    : is_signed && source.flips ? Read<int8_t>
                                                : Read<uint8_t>;
  PlainFormat format;
  format.types = "8 bits";
  format.left_bytes = source.value_bytes;
  format.left = [=](const std::byte* at) { return read(at, 0) - zero_point; };
  // Those of uint8 as int8: their usual zero point, 128, is then none.
  const int32_t flip = weights.type == DataType::kUInt8 ? 128 : 0;
  format.weight = [flip](const void* values, int64_t i) {
    return flip != 0 ? Read<uint8_t>(values, i) - flip : Read<int8_t>(values, i);
  };
  format.bias = Read<int32_t>;
  format.weights_zero_point = weights.quantization.zero_point() - flip;
  format.store = [](double sum, const RowScale*, int64_t, std::byte* to) {
    Write<int32_t>(to, sum);
  };
  kernels::ProductKernelSpec spec;
  spec.source = std::move(source.source);
  spec.tail_is_linear = true;
  return PlanPlain(op, context, d, std::move(spec), format, tail.tail, true);
}

Result<kernels::KernelPlan> PlanHybrid(const OpDescription& op,
                                       const kernels::PlanContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const kernels::ProductDescription d, op.op->product(op));
  if (!d.hybrid || d.left_transposed) return Unsupported("no hybrid product");
  const kernels::ProductDescription::Hybrid& hybrid = *d.hybrid;
  std::vector<TailStage> first;
  if (hybrid.tail.bias >= 0) {
    first.push_back(
        TailStage::Binary(BinaryKind::kAdd, {.input = hybrid.tail.bias, .channel_stride = 1}));
  }
  FUSELITE_ASSIGN_OR_RETURN(const kernels::Tail tail, WholeTail(op, d, std::move(first)));
  const bool bytes = HasDotProduct(current_isa);
  PlainFormat format;
  format.types = "hybrid";
  format.left_bytes = bytes ? 1 : 2;
  format.row_zero_points = bytes && hybrid.asymmetric;
  const int32_t zero_point = bytes && !hybrid.asymmetric ? 128 : 0;
  format.left = [bytes, zero_point](const std::byte* at) {
    return (bytes ? Read<uint8_t>(at) : Read<int16_t>(at)) - zero_point;
  };
  format.weight = Read<int8_t>;
  format.row_scale_bytes = hybrid.scale_per_row ? sizeof(RowScale) : 0;
  format.store = [scales = hybrid.tail.scales, weights_first = hybrid.tail.weights_first](
                     double sum, const RowScale* scale, int64_t channel, std::byte* to) {
    const auto value = static_cast<float>(sum);
    const float weights = scales[scales.size() > 1 ? channel : 0];
    Write<float>(to,
                 weights_first ? value * weights * scale->scale : value * (scale->scale * weights));
  };
  kernels::ProductKernelSpec spec;
  spec.source = std::make_unique<kernels::QuantizedSource>(
      op.op->product_inputs->x, kernels::HybridLayout(d, bytes), DetectIsa());
  spec.row_value_bytes = sizeof(RowScale);
  spec.row_values_per_image = !hybrid.scale_per_row;
  spec.tail_is_linear = true;
  return PlanPlain(op, context, d, std::move(spec), format, tail, false);
}

// What the driver makes of random operations over three sets of limits, each against the reference
// (`compare(expected, actual)`); a second run with other threads, and so other blocks, must give
// the same bits.
template <class Element, class Compare>
int CompareDriver(OpTester& tester, Random& random, kernels::PlanKernel plan, Compare compare) {
  const auto expected = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(expected.ok()) << expected.status().ToString();
  for (int run = 0; run < 3 && !::testing::Test::HasFailure(); ++run) {
    current = Limits::Any(random);
    current_isa = random.Pick({Isa::kAvx2, Isa::kAvx512Vnni});
    const kernels::Candidate plain("plain", plan);
    const auto actual = tester.RunCandidate(plain, Isa::kScalar, random.Int(1, 99));
    EXPECT_TRUE(actual.ok()) << actual.status().ToString();
    OpTester again = tester;
    again.threads = static_cast<int>(random.Int(2, 9));
    const auto same = again.RunCandidate(plain, Isa::kScalar, random.Int(100, 199));
    EXPECT_TRUE(same.ok()) << same.status().ToString();
    if (!actual.ok() || !same.ok()) break;
    compare((*expected)[0], (*actual)[0]);
    kernels::testing::ExpectSame<Element>((*actual)[0], (*same)[0], "plain again");
  }
  return 1;
}

template <class Params, class Make>
void CompareFloats(Make make, const std::function<double(OpTester&)>& depth) {
  CompareRandomly(60, make, [&](OpTester& tester, Random& random) {
    AddTail(tester, random);
    const std::vector<float> bounds =
        kernels::testing::Bounds(tester, depth(tester), [](OpTester& plain) {
          if constexpr (!std::is_void_v<Params>) {
            plain.params<Params>().activation = kernels::Activation::kNone;
          }
        });
    return CompareDriver<float>(
        tester, random, PlanFloats, [&](const TestTensor& expected, const TestTensor& actual) {
          kernels::testing::ExpectNear(
              expected, actual, [&](int64_t i) { return bounds[i]; }, "plain");
        });
  });
}

template <class Make>
void CompareBytes(Make make) {
  CompareRandomly(
      60, [&](Random& random) { return make(random, kBytes); },
      [](OpTester& tester, Random& random) {
        AddInt8Tail(tester, random);
        return CompareDriver<uint8_t>(
            tester, random, PlanBytes, [](const TestTensor& expected, const TestTensor& actual) {
              kernels::testing::ExpectSame<uint8_t>(expected, actual, "plain");
            });
      });
}

template <class Make>
void CompareHybrid(Make make) {
  CompareRandomly(60, make, [](OpTester& tester, Random& random) {
    AddExactTail(tester, random);
    return CompareDriver<float>(tester, random, PlanHybrid,
                                [](const TestTensor& expected, const TestTensor& actual) {
                                  kernels::testing::ExpectSame<float>(expected, actual, "plain");
                                });
  });
}

TEST(ProductDriverTest, Convolutions) {
  CompareFloats<kernels::Conv2DParams>(
      [](Random& random) { return kernels::testing::RandomConv2D(random, {}); },
      [](OpTester& tester) -> double { return tester.op.inputs[1].shape.elements(1, 4); });
  CompareBytes(kernels::testing::RandomQuantizedConv2D);
  CompareHybrid([](Random& random) {
    return kernels::testing::RandomHybridConv2D(random, {DataType::kInt8, DataType::kInt4}, true);
  });
}

TEST(ProductDriverTest, FullyConnected) {
  CompareFloats<kernels::FullyConnectedParams>(
      [](Random& random) { return kernels::testing::RandomFullyConnected(random); },
      [](OpTester& tester) -> double { return tester.op.inputs[1].shape.dim(-1); });
  CompareBytes(kernels::testing::RandomQuantizedFullyConnected);
  CompareHybrid([](Random& random) {
    return kernels::testing::RandomHybridFullyConnected(random, {DataType::kInt8, DataType::kInt4});
  });
}

TEST(ProductDriverTest, BatchedProducts) {
  CompareFloats<void>(
      [](Random& random) { return kernels::testing::RandomBatchMatMul(random, true, 4); },
      [](OpTester& tester) -> double { return kernels::testing::BatchMatMulDepth(tester); });
  CompareBytes([](Random& random, QuantizedProductCases cases) {
    cases.types = {DataType::kInt8};
    cases.min_lines = 4;
    return kernels::testing::RandomQuantizedBatchMatMul(random, cases);
  });
  CompareHybrid(
      [](Random& random) { return kernels::testing::RandomHybridBatchMatMul(random, 0); });
}

TEST(ProductDriverTest, TransposedConvolutions) {
  CompareFloats<kernels::TransposeConvParams>(
      [](Random& random) { return kernels::testing::RandomTransposeConv(random, 3); },
      [](OpTester& tester) -> double { return tester.op.inputs[1].shape.elements(1, 4); });
  CompareBytes(RandomTransposeConvOfBytes);
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
