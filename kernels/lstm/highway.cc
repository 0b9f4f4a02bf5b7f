#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/lstm/lstm.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lstm/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/simd_math/row_sums-inl.h"
#include "kernels/simd_math/simd_math-inl.h"

#ifndef FUSELITE_KERNELS_LSTM_HIGHWAY_ONCE
#define FUSELITE_KERNELS_LSTM_HIGHWAY_ONCE
namespace fuselite::kernels {

// What follows a step's products, for one row of the batch.
struct LstmCell {
  int64_t cells;
  bool coupled;
  Activation activation;
  float clip;                // infinite for none
  float* gates[4];           // sums; [kOutputGate] becomes m
  float* c;                  // the cell state, in and out
  const float* peephole[4];  // by gate; null for none
  const float* norm[4];      // null: the biases are in the sums
  const float* bias[4];
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// f(i, n) for each vector of a row: its first element and how many count.
template <class F>
HWY_INLINE void ForVectors(int64_t cells, F f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  for (int64_t i = 0; i < cells; i += lanes) f(i, static_cast<size_t>(cells - i));
}

template <class D, class V>
HWY_INLINE V LstmActivate(D d, V x, Activation activation) {
  switch (activation) {
    case Activation::kRelu: return AtLeast(d, x, 0.0f);
    case Activation::kReluN1To1: return AtMost(d, AtLeast(d, x, -1.0f), 1.0f);
    case Activation::kRelu6: return AtMost(d, AtLeast(d, x, 0.0f), 6.0f);
    case Activation::kTanh: return VecTanh(d, x);
    default: return x;
  }
}

// Peephole, normalization, bias; the activation is the caller's.
HWY_INLINE void FinishSums(const LstmCell& cell, int gate) {
  const hn::ScalableTag<float> d;
  float* g = cell.gates[gate];
  if (const float* p = cell.peephole[gate]; p != nullptr) {
    ForVectors(cell.cells, [&](int64_t i, size_t n) HWY_ATTR {
      const auto sum =
          hn::MulAdd(LoadUpTo(d, p + i, n), LoadUpTo(d, cell.c + i, n), LoadUpTo(d, g + i, n));
      StoreUpTo(sum, d, g + i, n);
    });
  }
  if (cell.norm[gate] == nullptr) return;
  const auto count = static_cast<float>(cell.cells);
  const auto size = static_cast<size_t>(cell.cells);
  const auto mean = hn::Set(d, RowSum(g, size, [](auto x) HWY_ATTR { return x; }) / count);
  const float squares = RowSum(g, size, [&](auto x) HWY_ATTR {
    const auto off = hn::Sub(x, mean);
    return hn::Mul(off, off);
  });
  const auto scale = hn::Set(d, 1.0f / std::sqrt(squares / count + kLstmVarianceFloor));
  ForVectors(cell.cells, [&](int64_t i, size_t n) HWY_ATTR {
    const auto x = hn::Mul(hn::Sub(LoadUpTo(d, g + i, n), mean), scale);
    const auto scaled = hn::Mul(x, LoadUpTo(d, cell.norm[gate] + i, n));
    StoreUpTo(hn::Add(scaled, LoadUpTo(d, cell.bias[gate] + i, n)), d, g + i, n);
  });
}

void LstmCellVector(const LstmCell& cell) {
  const hn::ScalableTag<float> d;
  for (int gate = cell.coupled ? kForgetGate : kInputGate; gate <= kCellGate; ++gate) {
    FinishSums(cell, gate);
  }
  ForVectors(cell.cells, [&](int64_t i, size_t n) HWY_ATTR {
    const auto forget = VecLogistic(d, LoadUpTo(d, cell.gates[kForgetGate] + i, n));
    const auto input = cell.coupled ? hn::Sub(hn::Set(d, 1.0f), forget)
                                    : VecLogistic(d, LoadUpTo(d, cell.gates[kInputGate] + i, n));
    const auto candidate =
        LstmActivate(d, LoadUpTo(d, cell.gates[kCellGate] + i, n), cell.activation);
    const auto c = hn::Add(hn::Mul(forget, LoadUpTo(d, cell.c + i, n)), hn::Mul(candidate, input));
    StoreUpTo(AtMost(d, AtLeast(d, c, -cell.clip), cell.clip), d, cell.c + i, n);
  });
  FinishSums(cell, kOutputGate);
  float* m = cell.gates[kOutputGate];
  ForVectors(cell.cells, [&](int64_t i, size_t n) HWY_ATTR {
    const auto out = VecLogistic(d, LoadUpTo(d, m + i, n));
    const auto c = LstmActivate(d, LoadUpTo(d, cell.c + i, n), cell.activation);
    StoreUpTo(hn::Mul(out, c), d, m + i, n);
  });
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kLstmCell = FUSELITE_SIMD_TABLE(LstmCellVector);
constexpr float kInfinity = std::numeric_limits<float>::infinity();
// Rows of inputs in a unit of phase 0: enough for the weights to be read once per many rows.
constexpr int64_t kBlockRows = 16;
// What all steps' sums may take. Beyond, the reference runs.
constexpr int64_t kMaxSharedBytes = int64_t{1} << 30;

// Weights [columns, depth], packed for products with rows of `depth`.
struct LstmMatrix {
  PackedWeights packed;
  int64_t depth = 0, columns = 0;

  Status Pack(const TensorInfo& source, const GemmF32& gemm, const BuildContext& context);
};

Status LstmMatrix::Pack(const TensorInfo& source, const GemmF32& gemm,
                        const BuildContext& context) {
  if (!source.constant()) return Unsupported("weights are not constant");
  columns = source.shape[0];
  depth = source.shape[1];
  PackRequest request;
  request.source = source.data;
  request.source_bytes = source.bytes();
  request.bytes = gemm.PackedBytes(depth, columns);
  request.layout = internal::Join("lstm f32 p", gemm.panel, " k", depth, " n", columns);
  FUSELITE_ASSIGN_OR_RETURN(packed, context.Pack(request, [&](std::byte* to) {
    // The file may have left the constant misaligned.
    std::vector<float> aligned(static_cast<size_t>(source.elements()));
    std::memcpy(aligned.data(), source.data, source.bytes());
    PackPanelsF32({.base = aligned.data(),
                   .k_stride = 1,
                   .n_stride = depth,
                   .depth = depth,
                   .columns = columns},
                  gemm.panel, 0, gemm.panels(columns), reinterpret_cast<float*>(to));
  }));
  return Status();
}

class LstmKernel final : public Kernel {
 public:
  explicit LstmKernel(const OpDescription& op)
      : s_(op), params_(op.params.as<LstmParams>()), row_(kLstmGates * s_.cells) {}
  Status Build(const OpDescription& op, const BuildContext& context);

  std::string_view name() const override { return name_; }
  int phases() const override { return 2; }
  int64_t units(int phase) const override {
    const int64_t rows = s_.steps * s_.batch;
    return phase == 0 ? (rows + kBlockRows - 1) / kBlockRows : (rows > 0 ? s_.batch : 0);
  }
  int64_t grain(int phase) const override {
    // A multiply-add is worth an eighth of what GrainFor counts: a vector does 8 or 16 at once.
    return phase == 0 ? GrainFor(kBlockRows * row_ * s_.inputs / 8)
                      : GrainFor(s_.steps * row_ * (s_.outputs + 16) / 8);
  }
  size_t scratch_bytes() const override { return static_cast<size_t>(row_) * sizeof(float); }
  size_t shared_bytes() const override {
    return static_cast<size_t>(s_.steps * s_.batch * row_) * sizeof(float);
  }
  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    for (int64_t unit = begin; unit < end; ++unit) {
      phase == 0 ? MultiplyInputs(args, unit) : RunSteps(args, unit);
    }
    return Status();
  }

 private:
  static const float* In(const KernelArgs& args, int i) {
    return static_cast<const float*>(args.inputs[i]);
  }
  void MultiplyInputs(const KernelArgs& args, int64_t block) const;
  void RunSteps(const KernelArgs& args, int64_t b) const;
  LstmCell CellOf(const KernelArgs& args, int64_t b) const;
  void Project(const KernelArgs& args, const float* m, float* y) const;
  void Multiply(const LstmMatrix& matrix, const float* a, int64_t rows, const float* bias,
                float bound, float* c, int64_t c_pitch) const {
    gemm_->run({.a = a,
                .a_pitch = matrix.depth,
                .rows = rows,
                .depth = matrix.depth,
                .b = reinterpret_cast<const float*>(matrix.packed->data()),
                .columns = matrix.columns,
                .bias = bias,
                .min = -bound,
                .max = bound,
                .c = c,
                .c_pitch = c_pitch});
  }

  const LstmShape s_;
  const LstmParams params_;
  const int64_t row_;  // floats of one row of sums: four gates, the first unused where coupled
  const GemmF32* gemm_ = nullptr;
  void (*cell_)(const LstmCell&) = nullptr;
  std::string name_;
  LstmMatrix input_[kLstmGates], recurrent_[kLstmGates], projection_;
};

Status LstmKernel::Build(const OpDescription& op, const BuildContext& context) {
  gemm_ = FindGemmF32(context.isa);
  cell_ = kLstmCell.For(context.isa);
  if (gemm_ == nullptr || cell_ == nullptr) {
    return Unsupported("no vector target at isa=", IsaName(context.isa));
  }
  if (s_.steps * s_.batch > kMaxSharedBytes / static_cast<int64_t>(sizeof(float)) / row_) {
    return Unsupported("the sums of all steps take more than ", kMaxSharedBytes, " bytes");
  }
  name_ = internal::Join("lstm f32 ", SimdName(context.isa));
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    FUSELITE_RETURN_IF_ERROR(
        input_[gate].Pack(op.inputs[kLstmInputWeights + gate], *gemm_, context));
    FUSELITE_RETURN_IF_ERROR(
        recurrent_[gate].Pack(op.inputs[kLstmRecurrentWeights + gate], *gemm_, context));
  }
  if (!s_.projection) return Status();
  return projection_.Pack(op.inputs[kLstmProjection], *gemm_, context);
}

void LstmKernel::MultiplyInputs(const KernelArgs& args, int64_t block) const {
  const int64_t first = block * kBlockRows;
  const int64_t rows = std::min(kBlockRows, s_.steps * s_.batch - first);
  float* sums = reinterpret_cast<float*>(args.shared) + first * row_;
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    const float* bias = s_.layer_norm ? nullptr : In(args, kLstmBias + gate);
    Multiply(input_[gate], In(args, kLstmX) + first * s_.inputs, rows, bias, kInfinity,
             sums + gate * s_.cells, row_);
  }
}

LstmCell LstmKernel::CellOf(const KernelArgs& args, int64_t b) const {
  LstmCell cell{};
  cell.cells = s_.cells;
  cell.coupled = s_.coupled;
  cell.activation = params_.activation;
  cell.clip = params_.cell_clip > 0 ? params_.cell_clip : kInfinity;
  // Variables are bound as inputs and written in place.
  cell.c = const_cast<float*>(In(args, kLstmCellState)) + b * s_.cells;
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    cell.gates[gate] = reinterpret_cast<float*>(args.scratch) + gate * s_.cells;
    if (s_.peephole && gate != kCellGate) {
      cell.peephole[gate] = In(args, kLstmPeephole + (gate == kOutputGate ? 2 : gate));
    }
    if (s_.layer_norm) cell.norm[gate] = In(args, kLstmLayerNorm + gate);
    cell.bias[gate] = In(args, kLstmBias + gate);
  }
  return cell;
}

void LstmKernel::RunSteps(const KernelArgs& args, int64_t b) const {
  const LstmCell cell = CellOf(args, b);
  float* state = const_cast<float*>(In(args, kLstmOutputState)) + b * s_.outputs;
  const float* h = state;
  for (int64_t step = 0; step < s_.steps; ++step) {
    const int64_t row = s_.Row(step, b);
    const float* sums = reinterpret_cast<const float*>(args.shared) + row * row_;
    for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
      Multiply(recurrent_[gate], h, 1, sums + gate * s_.cells, kInfinity, cell.gates[gate], row_);
    }
    cell_(cell);
    float* y = static_cast<float*>(args.outputs[0]) + row * s_.outputs;
    Project(args, cell.gates[kOutputGate], y);
    h = y;
  }
  std::copy_n(h, s_.outputs, state);
}

void LstmKernel::Project(const KernelArgs& args, const float* m, float* y) const {
  if (!s_.projection) {
    std::copy_n(m, s_.outputs, y);
    return;
  }
  const float bound = params_.proj_clip > 0 ? params_.proj_clip : kInfinity;
  Multiply(projection_, m, 1, In(args, kLstmProjectionBias), bound, y, s_.outputs);
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildLstmHighway(const OpDescription& op,
                                                 const BuildContext& context) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const DataType type = op.inputs[kLstmX].type;
  if (type != DataType::kFloat32) return Unsupported(DataTypeName(type), " is not float32");
  const LstmShape s(op);
  if (s.cells == 0 || s.inputs == 0 || s.outputs == 0) return Unsupported("empty weights");
  auto kernel = std::make_unique<LstmKernel>(op);
  FUSELITE_RETURN_IF_ERROR(kernel->Build(op, context));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace fuselite::kernels
#endif
