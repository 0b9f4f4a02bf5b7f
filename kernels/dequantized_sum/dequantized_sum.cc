#include "kernels/dequantized_sum/dequantized_sum.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "kernels/convert/convert.h"
#include "kernels/costs.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "runtime/is_byte.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

// Sums of a block lie in L1 with their terms.
constexpr int64_t kBlock = 1024;
constexpr int64_t kZeroPoints = 1 << 16;
// Beyond this scale sums of bytes might overflow.
constexpr float kMaxScale = 1e30f;

constexpr TypeRow kTypes[] = {
    {{}, DataType::kInt8},
    {{}, DataType::kUInt8},
};

Status CheckScale(const TensorInfo& info) {
  const Quantization& q = info.quantization;
  if (q.empty() || q.per_channel()) return Unsupported("does not take bytes without one scale");
  if (!(q.scale() > 0 && q.scale() < kMaxScale))
    return Unsupported("does not take a scale of ", q.scale());
  // Differences of bytes and zero points are whole floats.
  if (std::abs(static_cast<int64_t>(q.zero_point())) > kZeroPoints) {
    return Unsupported("does not take a zero point of ", q.zero_point());
  }
  return Status();
}

Status InferDequantizedSum(OpDescription& op) {
  const TensorInfo &first = op.inputs[0], &out = op.outputs[0];
  if (op.inputs.size() > DequantizedSumParams::kMaxTerms) {
    return Unsupported("does not take a sum of ", op.inputs.size(), " terms");
  }
  const auto& params = op.params.as<DequantizedSumParams>();
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const TensorInfo& x = op.inputs[i];
    if (!IsByte(x) && x.type != DataType::kFloat32) {
      return Unsupported("does not take terms of type ", DataTypeName(x.type));
    }
    if (IsByte(x)) FUSELITE_RETURN_IF_ERROR(CheckScale(x));
    if (x.shape != first.shape) {
      return InvalidArgument("terms of ", first.shape, " and ", x.shape);
    }
    if (i > 0 && !(params.ranges[i].low <= params.ranges[i].high)) {
      return InvalidArgument("a sum between ", params.ranges[i].low, " and ",
                             params.ranges[i].high);
    }
  }
  FUSELITE_RETURN_IF_ERROR(CheckScale(out));
  return SetOutput(op, 0, out.type, first.shape);
}

template <class T>
float Real(const SumTerm& term, const void* x, int64_t i) {
  return term.scale * static_cast<float>(static_cast<const T*>(x)[i] - term.zero_point);
}

float Real(const SumTerm& term, const void* x, int64_t i) {
  if (term.type == DataType::kInt8) return Real<int8_t>(term, x, i);
  if (term.type == DataType::kUInt8) return Real<uint8_t>(term, x, i);
  return static_cast<const float*>(x)[i];
}

void SumTerms(std::span<const SumTerm> terms, const void* const* x, int64_t count, float* sums) {
  for (int64_t i = 0; i < count; ++i) {
    float sum = Real(terms[0], x[0], i);
    for (size_t t = 1; t < terms.size(); ++t) {
      const auto& [low, high] = terms[t].range;
      sum = std::min(std::max(sum + Real(terms[t], x[t], i), low), high);
    }
    sums[i] = sum;
  }
}

template <class T>
void QuantizeSums(const float* sums, void* out, int64_t count, float scale, int32_t zero_point) {
  T* const to = static_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) to[i] = QuantizeOne<T>(sums[i], scale, zero_point);
}

constexpr Candidate kCandidates[] = {
    {"highway", BuildDequantizedSumHighway},
    {"reference", BuildDequantizedSumReference},
};

}  // namespace

SumTerm::SumTerm(const OpDescription& op, int input)
    : type(op.inputs[input].type),
      scale(op.inputs[input].quantization.scale()),
      zero_point(op.inputs[input].quantization.zero_point()),
      range(op.params.as<DequantizedSumParams>().ranges[input]) {}

Result<std::unique_ptr<Kernel>> MakeDequantizedSum(std::string name, const OpDescription& op,
                                                   SumTermsFunction* sum,
                                                   QuantizeSumsFunction* quantize) {
  if (!op.tail.empty()) return Unsupported("FUSELITE_DEQUANTIZED_SUM takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  std::vector<SumTerm> terms;
  for (size_t i = 0; i < op.inputs.size(); ++i) terms.emplace_back(op, static_cast<int>(i));
  const TensorInfo& out = op.outputs[0];
  const int64_t elements = out.elements();
  const bool in_place = op.inputs[0].type == out.type;
  const Work work{.units = CeilDiv(elements, kBlock),
                  .grain = GrainFor(kBlock),
                  .scratch_bytes = kBlock * sizeof(float),
                  .in_place_input = in_place ? 0 : -1};
  return MakeKernel(
      std::move(name), work,
      [=, terms = std::move(terms), scale = out.quantization.scale(),
       zero_point = out.quantization.zero_point()](const KernelArgs& args, int64_t begin,
                                                   int64_t end) {
        auto* const sums = reinterpret_cast<float*>(args.scratch);
        for (int64_t at = begin * kBlock; at < std::min(end * kBlock, elements); at += kBlock) {
          const int64_t count = std::min(kBlock, elements - at);
          std::array<const void*, DequantizedSumParams::kMaxTerms> x;
          for (size_t i = 0; i < terms.size(); ++i) {
            const int64_t bytes = BitWidth(terms[i].type) / 8;
            x[i] = static_cast<const std::byte*>(args.inputs[i]) + at * bytes;
          }
          sum(terms, x.data(), count, sums);
          quantize(sums, static_cast<std::byte*>(args.outputs[0]) + at, count, scale, zero_point);
        }
      });
}

Result<std::unique_ptr<Kernel>> BuildDequantizedSumReference(const OpDescription& op,
                                                             const BuildContext&) {
  return MakeDequantizedSum(
      "dequantized sum reference", op, SumTerms,
      op.outputs[0].type == DataType::kInt8 ? QuantizeSums<int8_t> : QuantizeSums<uint8_t>);
}

const OperatorDef& DequantizedSumOperator() {
  static constexpr OperatorDef kDef = {
      .name = "FUSELITE_DEQUANTIZED_SUM",
      .params_bytes = sizeof(DequantizedSumParams),
      .min_inputs = 2,
      .max_inputs = -1,
      .types = kTypes,
      .infer = InferDequantizedSum,
      .candidates = kCandidates,
      .cost = ElementsOfTerms,
  };
  return kDef;
}

}  // namespace fuselite::kernels
