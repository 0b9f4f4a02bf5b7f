// The driver of products (kernels/product) over a micro-kernel in plain loops, whose tiles, panels
// and blocks have random limits: every cut that a later micro-kernel may ask for, of which those of
// this machine's instructions are a few. Of floats, of bytes whose sums wait for their tail, and of
// floats quantized at run time.
#include <cstring>

#include "jit/product/product_hybrid.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/product/product_kernel.h"
#include "kernels/source/image_source.h"
#include "tests/jit/int8_cases.h"
#include "tests/jit/plain_micro_kernel.h"
#include "tests/kernels/conv3d_cases.h"
#include "tests/kernels/hybrid_cases.h"
#include "tests/kernels/product_cases.h"
#include "tests/kernels/transpose_conv_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::OpDescription;
using kernels::ProductProblem;
using kernels::testing::CompareRandomly;

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
  kernels::ByteSource source =
      kernels::MakeByteSource(inputs.x, d, in, current_isa, current_isa.has_vnni());
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
  const bool bytes = current_isa.has_vnni();
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
    if (!CanBuildFor(current_isa)) current_isa = DetectIsa();
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
      [](Random& random) { return kernels::testing::RandomHybridBatchMatMul(random, 0, true); });
}

TEST(ProductDriverTest, ProductsByHeads) {
  CompareBytes([](Random& random, const QuantizedProductCases&) {
    return kernels::testing::RandomQuantizedHeadsMatMul(random);
  });
}

TEST(ProductDriverTest, TransposedConvolutions) {
  CompareFloats<kernels::TransposeConvParams>(
      [](Random& random) { return kernels::testing::RandomTransposeConv(random, 3); },
      [](OpTester& tester) -> double { return tester.op.inputs[1].shape.elements(1, 4); });
  CompareBytes(RandomTransposeConvOfBytes);
}

TEST(ProductDriverTest, Volumes) {
  for (const bool transposed : {false, true}) {
    CompareFloats<kernels::Conv3DParams>(
        [=](Random& random) { return kernels::testing::RandomConv3D(random, transposed, 3); },
        [](OpTester& tester) { return kernels::testing::Conv3DDepth(tester); });
  }
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
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("BATCH_MATMUL", "CONV_2D", "CONV_3D",
                                                     "CONV_3D_TRANSPOSE", "DEPTHWISE_CONV_2D",
                                                     "FULLY_CONNECTED", "FUSELITE_HEADS_MATMUL",
                                                     "TRANSPOSE_CONV"));
}

}  // namespace
}  // namespace fuselite::jit::testing
