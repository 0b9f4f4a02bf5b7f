#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "kernels/make_kernel.h"
#include "kernels/numbers/truth.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/rescale.h"

namespace fuselite::kernels {
namespace {

// What the terms of type T are combined in.
template <class T>
using Total = std::conditional_t<std::is_same_v<T, float>, float, int64_t>;

template <class T>
using Limits = std::numeric_limits<std::conditional_t<std::is_same_v<T, Truth>, bool, T>>;

template <class T>
Total<T> Start(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kProd:
    case ReduceKind::kAll: return 1;
    case ReduceKind::kMax: return Limits<T>::lowest();
    case ReduceKind::kMin: return Limits<T>::max();
    default: return 0;
  }
}

// Integers wrap around in 64 bits, whose low ones are what 32 bits would have.
template <class U>
U Combine(ReduceKind kind, U total, U value) {
  using Bits = std::conditional_t<std::is_same_v<U, float>, float, uint64_t>;
  const auto a = static_cast<Bits>(total), b = static_cast<Bits>(value);
  switch (kind) {
    case ReduceKind::kMean:
    case ReduceKind::kSum: return static_cast<U>(a + b);
    case ReduceKind::kProd: return static_cast<U>(a * b);
    case ReduceKind::kMax: return value > total ? value : total;
    case ReduceKind::kMin: return value < total ? value : total;
    case ReduceKind::kAny: return total != 0 || value != 0;
    case ReduceKind::kAll: return total != 0 && value != 0;
  }
  return total;
}

template <class T>
Total<T> CombineTerms(ReduceKind kind, const ReducePlan& plan, const T* in) {
  Total<T> total = Start<T>(kind);
  for (int64_t run = 0; run < plan.runs; ++run) {
    const T* term = in + plan.RunOffset(run);
    for (int64_t i = 0; i < plan.run_count; ++i) {
      total = Combine(kind, total, static_cast<Total<T>>(term[i * plan.run_stride]));
    }
  }
  return total;
}

template <class T>
T Finish(ReduceKind kind, Total<T> total, int64_t terms) {
  if (kind != ReduceKind::kMean) return static_cast<T>(total);
  if (terms == 0) return Limits<T>::quiet_NaN();
  return static_cast<T>(total / static_cast<Total<T>>(terms));
}

template <class T, class F>
std::unique_ptr<Kernel> OutputsKernel(const OpDescription& op, F finish) {
  const ReducePlan plan = PlanReduce(op);
  const ReduceKind kind = ReduceKindOf(*op.op);
  return MakeKernel("reduce " + std::string(DataTypeName(op.inputs[0].type)) + " reference",
                    {.units = plan.outer * plan.lanes, .grain = GrainFor(plan.terms())},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      const auto* in = static_cast<const T*>(args.inputs[0]);
                      auto* out = static_cast<T*>(args.outputs[0]);
                      for (int64_t o = begin; o < end; ++o) {
                        const int64_t first = plan.OuterOffset(o / plan.lanes) + o % plan.lanes;
                        out[o] = static_cast<T>(finish(CombineTerms(kind, plan, in + first)));
                      }
                    });
}

template <class T>
std::unique_ptr<Kernel> PlainKernel(const OpDescription& op) {
  const ReduceKind kind = ReduceKindOf(*op.op);
  const int64_t terms = PlanReduce(op).terms();
  return OutputsKernel<T>(op, [=](Total<T> total) { return Finish<T>(kind, total, terms); });
}

template <class T>
std::unique_ptr<Kernel> ProductKernel(const OpDescription& op) {
  const ReducePlan plan = PlanReduce(op);
  return MakeKernel(
      "reduce " + std::string(DataTypeName(op.inputs[0].type)) + " reference",
      {.units = plan.outer * plan.lanes, .grain = GrainFor(plan.terms())},
      [plan, f = *MakeScaledProduct(op)](const KernelArgs& args, int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
          const T* in = static_cast<const T*>(args.inputs[0]) + plan.OuterOffset(o / plan.lanes) +
                        o % plan.lanes;
          int32_t product = f.First(*in);
          for (int64_t i = 1; i < plan.terms(); ++i) {
            product = f.Next(
                product,
                in[plan.RunOffset(i / plan.run_count) + i % plan.run_count * plan.run_stride]);
          }
          static_cast<T*>(args.outputs[0])[o] = static_cast<T>(f.Finish(product));
        }
      });
}

template <class T>
std::unique_ptr<Kernel> QuantizedKernel(const OpDescription& op) {
  const ReduceKind kind = ReduceKindOf(*op.op);
  if (kind == ReduceKind::kProd) {
    return op.inputs[0].quantization.empty() ? PlainKernel<T>(op) : ProductKernel<T>(op);
  }
  if (kind == ReduceKind::kMax || kind == ReduceKind::kMin) return PlainKernel<T>(op);
  const int64_t terms = PlanReduce(op).terms();
  return OutputsKernel<T>(op, [terms, rescale = MakeRescale(op, terms)](int64_t sum) {
    return terms == 0 ? 0 : rescale(sum);
  });
}

}  // namespace

Rescale MakeRescale(const OpDescription& op, int64_t terms) {
  const Quantization& in = op.inputs[0].quantization;
  const Quantization& out = op.outputs[0].quantization;
  const FixedPoint scaling = ToFixedPoint(static_cast<double>(in.scale()) / out.scale());
  Rescale rescale{.input_zero_points = in.zero_point() * terms,
                  .multiplier = scaling.multiplier,
                  .shift = scaling.shift,
                  .zero_point = out.zero_point(),
                  .min = 0,
                  .max = 0};
  QuantizedTypeRange(op.outputs[0].type, &rescale.min, &rescale.max);
  if (ReduceKindOf(*op.op) == ReduceKind::kMean && terms > 0) {
    int32_t shift = std::bit_width(static_cast<uint64_t>(terms)) - 1;
    shift = std::min({shift, 32, 31 + rescale.shift});
    rescale.multiplier = static_cast<int32_t>((int64_t{rescale.multiplier} << shift) / terms);
    rescale.shift -= shift;
  }
  return rescale;
}

Result<std::unique_ptr<Kernel>> BuildReduceReference(const OpDescription& op, const BuildContext&) {
  switch (op.inputs[0].type) {
    case DataType::kFloat32: return PlainKernel<float>(op);
    case DataType::kInt32: return PlainKernel<int32_t>(op);
    case DataType::kInt64: return PlainKernel<int64_t>(op);
    case DataType::kBool: return PlainKernel<Truth>(op);
    case DataType::kInt8: return QuantizedKernel<int8_t>(op);
    case DataType::kUInt8: return QuantizedKernel<uint8_t>(op);
    case DataType::kInt16: return QuantizedKernel<int16_t>(op);
    default: return Unsupported(DataTypeName(op.inputs[0].type), " reductions");
  }
}

}  // namespace fuselite::kernels
