#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/gemm/gemm_s16.h"
#include "kernels/gemm/short_rows.h"
#include "kernels/lstm/basic.h"
#include "kernels/lstm/products.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "runtime/memory/aligned_buffer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lstm/basic_highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lstm/fixed_point16-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/simd_math-inl.h"
#include "kernels/simd_math/uniform_scale-inl.h"
#include "kernels/tail/integer_stages-inl.h"

#ifndef FUSELITE_KERNELS_LSTM_BASIC_HIGHWAY_ONCE
#define FUSELITE_KERNELS_LSTM_BASIC_HIGHWAY_ONCE
namespace fuselite::kernels {

// What follows the sums of one row: `cells` of each gate, one gate behind the other.
template <class T, class S>
struct BasicLstmCells {
  int64_t cells;
  const S* sums;
  const S* state;
  S* state_out;  // may be `state`
  T* activation;
};

struct BasicLstmFunctions {
  void (*floats)(const BasicLstmCells<float, float>&);
  void (*bytes)(const BasicLstmCells<uint8_t, int16_t>&);
  // to[i] = saturated(scaled sums[i])
  void (*scale)(const int32_t* sums, int64_t n, const FixedPoint& by, int16_t* to);
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void BasicLstmOfFloats(const BasicLstmCells<float, float>& row) {
  const hn::ScalableTag<float> d;
  ForVectors(d, static_cast<size_t>(row.cells), [&](size_t i, size_t n) HWY_ATTR {
    const auto sums = [&](int gate)
                          HWY_ATTR { return LoadUpTo(d, row.sums + gate * row.cells + i, n); };
    const auto added =
        hn::Mul(VecLogistic(d, sums(basic_lstm::kIn)), VecTanh(d, sums(basic_lstm::kNew)));
    const auto kept =
        hn::Mul(VecLogistic(d, sums(basic_lstm::kForget)), LoadUpTo(d, row.state + i, n));
    const auto state = hn::Add(added, kept);
    StoreUpTo(state, d, row.state_out + i, n);
    StoreUpTo(hn::Mul(VecLogistic(d, sums(basic_lstm::kOut)), VecTanh(d, state)), d,
              row.activation + i, n);
  });
}

// Sums have 12 fractional bits, gates 15, the state 11.
void BasicLstmOfBytes(const BasicLstmCells<uint8_t, int16_t>& row) {
  const ShortTag d;
  const hn::Rebind<uint8_t, ShortTag> bytes;
  ForVectors(d, static_cast<size_t>(row.cells), [&](size_t i, size_t n) HWY_ATTR {
    const auto sums = [&](int gate)
                          HWY_ATTR { return LoadUpTo(d, row.sums + gate * row.cells + i, n); };
    const ShortVec added = hn::MulFixedPoint15(LogisticQ12Vec(sums(basic_lstm::kIn)),
                                               TanhFixedVec(sums(basic_lstm::kNew), 3));
    const ShortVec kept = hn::MulFixedPoint15(LogisticQ12Vec(sums(basic_lstm::kForget)),
                                              LoadUpTo(d, row.state + i, n));
    const ShortVec state = hn::SaturatedAdd(RoundingDivideShorts<4>(added), kept);
    StoreUpTo(state, d, row.state_out + i, n);
    const ShortVec y = hn::MulFixedPoint15(LogisticQ12Vec(sums(basic_lstm::kOut)),
                                           TanhFixedVec(hn::SaturatedAdd(state, state), 3));
    const ShortVec activation = hn::Add(RoundingDivideShorts<8>(y), Shorts(kBasicLstmZeroPoint));
    StoreUpTo(hn::DemoteTo(bytes, activation), bytes, row.activation + i, n);
  });
}

void ScaleBasicLstm(const int32_t* sums, int64_t n, const FixedPoint& by, int16_t* to) {
  const UniformScale scale(by.multiplier, by.shift, UniformScale::kTiesUpwards);
  ForVectors(static_cast<size_t>(n), [&](size_t i, size_t count) HWY_ATTR {
    StoreInt(scale(LoadInt(sums + i, count)), to + i, count);
  });
}

constexpr BasicLstmFunctions kBasicLstm = {
    .floats = BasicLstmOfFloats, .bytes = BasicLstmOfBytes, .scale = ScaleBasicLstm};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

using namespace basic_lstm;

constexpr auto kFunctions = FUSELITE_SIMD_TABLE(kBasicLstm);
// Rows whose products read the weights together.
constexpr int64_t kBlockRows = 16;

// Units are blocks of rows.
class BasicLstmKernel : public Kernel {
 public:
  std::string_view name() const final { return name_; }
  int64_t units(int) const final { return (s_.batch + kBlockRows - 1) / kBlockRows; }
  int64_t grain(int) const final {
    // A multiply-add is worth an eighth of what GrainFor counts: a vector does 8 or 16 at once.
    return GrainFor(std::min(s_.batch, kBlockRows) * s_.sums() * (s_.depth() + 16) / 8);
  }
  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const final {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlockRows;
      RunRows(args, first, std::min(kBlockRows, s_.batch - first));
    }
    return Status();
  }

 protected:
  explicit BasicLstmKernel(const OpDescription& op) : s_(op) {}

  Status PlanAll(const OpDescription& op, Isa isa, std::string_view types) {
    functions_ = kFunctions.For(isa);
    if (functions_ == nullptr) return NoVectorTarget(isa);
    if (s_.cells == 0 || s_.width == 0) return Unsupported("does not take empty weights");
    name_ = internal::Join("basic lstm ", types, " ", SimdName(isa));
    return CheckLstmWeights(op.inputs[kWeights]);
  }
  virtual void RunRows(const KernelArgs& args, int64_t first, int64_t rows) const = 0;

  // The rows [first, first + rows) of [x, previous], which are an output.
  template <class T>
  const T* Concatenate(const KernelArgs& args, int64_t first, int64_t rows) const {
    const T* x = static_cast<const T*>(args.inputs[kX]) + first * s_.width;
    const T* previous = static_cast<const T*>(args.inputs[kPrevious]) + first * s_.cells;
    T* const to = static_cast<T*>(args.outputs[kConcatenated]) + first * s_.depth();
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(x + r * s_.width, s_.width, to + r * s_.depth());
      std::copy_n(previous + r * s_.cells, s_.cells, to + r * s_.depth() + s_.width);
    }
    return to;
  }

  // What `cells` gives of the sums of these rows; the states are written last.
  template <class T, class S>
  void Finish(const KernelArgs& args, int64_t first, int64_t rows,
              void (*cells)(const BasicLstmCells<T, S>&)) const {
    const int64_t at = first * s_.cells, count = rows * s_.cells;
    // Variables are bound as inputs and written in place.
    S* const state = static_cast<S*>(const_cast<void*>(args.inputs[kState])) + at;
    S* const state_out = static_cast<S*>(args.outputs[kStateOut]) + at;
    T* const activation = static_cast<T*>(args.outputs[kActivation]) + at;
    const S* const sums = static_cast<const S*>(args.outputs[kSums]) + first * s_.sums();
    for (int64_t r = 0; r < rows; ++r) {
      cells({.cells = s_.cells,
             .sums = sums + r * s_.sums(),
             .state = state + r * s_.cells,
             .state_out = state_out + r * s_.cells,
             .activation = activation + r * s_.cells});
    }
    if (!s_.keeps_states) return;
    T* const previous = static_cast<T*>(const_cast<void*>(args.inputs[kPrevious])) + at;
    std::copy_n(activation, count, previous);
    std::copy_n(state_out, count, state);
  }

  const BasicShape s_;
  const BasicLstmFunctions* functions_ = nullptr;
  PackedWeights weights_;

 private:
  std::string name_;
};

class BasicLstmOfFloatsKernel final : public BasicLstmKernel {
 public:
  explicit BasicLstmOfFloatsKernel(const OpDescription& op) : BasicLstmKernel(op) {}
  Status Plan(const OpDescription& op, const PlanContext& context) {
    gemm_ = FindGemmF32(context.isa);
    return PlanAll(op, context.isa, "f32");
  }
  Status Pack(const OpDescription& op, const BuildContext& context) {
    FUSELITE_ASSIGN_OR_RETURN(weights_, PackLstmF32({&op.inputs[kWeights], 1}, *gemm_, context));
    return Status();
  }

 private:
  void RunRows(const KernelArgs& args, int64_t first, int64_t rows) const override {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    gemm_->run({.a = Concatenate<float>(args, first, rows),
                .a_pitch = s_.depth(),
                .rows = rows,
                .depth = s_.depth(),
                .b = weights_->as<float>(),
                .columns = s_.sums(),
                .bias = static_cast<const float*>(args.inputs[kBias]),
                .min = -kInfinity,
                .max = kInfinity,
                .c = static_cast<float*>(args.outputs[kSums]) + first * s_.sums(),
                .c_pitch = s_.sums()});
    Finish<float, float>(args, first, rows, functions_->floats);
  }

  const GemmF32* gemm_ = nullptr;
};

// The largest sum that there can be, of uint8 values and constant biases.
int64_t LargestSum(const OpDescription& op, const BasicShape& s) {
  int64_t largest_bias = 0;
  for (int64_t i = 0; i < s.sums(); ++i) {
    int32_t bias;
    std::memcpy(&bias, static_cast<const std::byte*>(op.inputs[kBias].data) + i * sizeof bias,
                sizeof bias);
    largest_bias = std::max(largest_bias, std::abs(int64_t{bias}));
  }
  return largest_bias + s.depth() * int64_t{128} * 255;
}

class BasicLstmOfBytesKernel final : public BasicLstmKernel {
 public:
  explicit BasicLstmOfBytesKernel(const OpDescription& op) : BasicLstmKernel(op) {}
  Status Plan(const OpDescription& op, const PlanContext& context) {
    FUSELITE_RETURN_IF_ERROR(PlanAll(op, context.isa, "u8"));
    gemm_ = FindGemmS16(context.isa);
    widen_ = FindShortRowFunctions(context.isa);
    scale_ = BasicLstmScale(op);
    weights_zero_point_ = op.inputs[kWeights].quantization.zero_point();
    if (!op.inputs[kBias].constant()) return Unsupported("biases are not constant");
    if (LargestSum(op, s_) > INT32_MAX >> std::clamp(scale_.shift, 0, 31)) {
      return Unsupported("sums may take more than 32 bits");
    }
    return Status();
  }
  Status Pack(const OpDescription& op, const BuildContext& context) {
    FUSELITE_ASSIGN_OR_RETURN(
        weights_, PackLstmS16({&op.inputs[kWeights], 1}, -weights_zero_point_, *gemm_, context));
    return Status();
  }
  size_t scratch_bytes() const override {
    return sums_at() + AlignUp(kBlockRows * s_.sums() * sizeof(int32_t));
  }

 private:
  int64_t even_depth() const { return (s_.depth() + 1) & ~int64_t{1}; }
  size_t sums_at() const { return AlignUp(kBlockRows * even_depth() * sizeof(int16_t)); }

  void RunRows(const KernelArgs& args, int64_t first, int64_t rows) const override {
    const auto* both = Concatenate<uint8_t>(args, first, rows);
    auto* const a = reinterpret_cast<int16_t*>(args.scratch);
    for (int64_t r = 0; r < rows; ++r) {
      int16_t* const to = a + r * even_depth();
      widen_->widen_u8(both + r * s_.depth(), s_.depth(), -kBasicLstmZeroPoint, to);
      if (s_.depth() != even_depth()) to[s_.depth()] = 0;
    }
    auto* const sums = reinterpret_cast<int32_t*>(args.scratch + sums_at());
    gemm_->run({.a = a,
                .rows = rows,
                .depth = even_depth(),
                .b = weights_->as<int16_t>(),
                .columns = s_.sums(),
                .bias = static_cast<const int32_t*>(args.inputs[kBias]),
                .c = sums,
                .c_pitch = s_.sums()});
    functions_->scale(sums, rows * s_.sums(), scale_,
                      static_cast<int16_t*>(args.outputs[kSums]) + first * s_.sums());
    Finish<uint8_t, int16_t>(args, first, rows, functions_->bytes);
  }

  const GemmS16* gemm_ = nullptr;
  const ShortRowFunctions* widen_ = nullptr;
  FixedPoint scale_{};
  int32_t weights_zero_point_ = 0;
};

}  // namespace

Result<KernelPlan> PlanBasicLstmHighway(const OpDescription& op, const PlanContext& context) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  if (op.inputs[kX].type == DataType::kUInt8) {
    return PlanThenPack(BasicLstmOfBytesKernel(op), op, context);
  }
  return PlanThenPack(BasicLstmOfFloatsKernel(op), op, context);
}

}  // namespace fuselite::kernels
#endif
