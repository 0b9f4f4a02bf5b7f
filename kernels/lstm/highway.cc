#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/lstm/fast_lstm.h"
#include "kernels/lstm/lstm.h"
#include "kernels/lstm/products.h"
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

// What follows a step's products, for one row of the batch. There is room for a vector behind
// `gates`, `c` and `m`, and what lies there counts nowhere: masked stores are slow where the next
// step waits for them.
struct LstmCell {
  int64_t cells;
  bool coupled;
  Activation activation;
  float clip;                // infinite for none
  float* gates[4];           // sums
  float* c;                  // the cell state, in and out
  float* m;                  // out
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

// The cell state behind the step, of the vector from cell `i` on.
HWY_INLINE hn::Vec<hn::ScalableTag<float>> NextCells(const LstmCell& cell, int64_t i) {
  const hn::ScalableTag<float> d;
  const auto sums = [&](int gate) HWY_ATTR { return hn::LoadU(d, cell.gates[gate] + i); };
  const auto forget = VecLogistic(d, sums(kForgetGate));
  const auto input =
      cell.coupled ? hn::Sub(hn::Set(d, 1.0f), forget) : VecLogistic(d, sums(kInputGate));
  const auto candidate = LstmActivate(d, sums(kCellGate), cell.activation);
  const auto c = hn::Add(hn::Mul(forget, hn::LoadU(d, cell.c + i)), hn::Mul(candidate, input));
  const auto bounded = AtMost(d, AtLeast(d, c, -cell.clip), cell.clip);
  hn::StoreU(bounded, d, cell.c + i);
  return bounded;
}

template <class V>
HWY_INLINE void StoreHidden(const LstmCell& cell, V c, int64_t i) {
  const hn::ScalableTag<float> d;
  const auto out = VecLogistic(d, hn::LoadU(d, cell.gates[kOutputGate] + i));
  hn::StoreU(hn::Mul(out, LstmActivate(d, c, cell.activation)), d, cell.m + i);
}

void LstmCellVector(const LstmCell& cell) {
  const hn::ScalableTag<float> d;
  if (cell.peephole[kOutputGate] == nullptr && cell.norm[kOutputGate] == nullptr) {
    return ForVectors(
        cell.cells, [&](int64_t i, size_t) HWY_ATTR { StoreHidden(cell, NextCells(cell, i), i); });
  }
  for (int gate = cell.coupled ? kForgetGate : kInputGate; gate <= kCellGate; ++gate) {
    FinishSums(cell, gate);
  }
  ForVectors(cell.cells, [&](int64_t i, size_t) HWY_ATTR { NextCells(cell, i); });
  FinishSums(cell, kOutputGate);
  ForVectors(cell.cells,
             [&](int64_t i, size_t) HWY_ATTR { StoreHidden(cell, hn::LoadU(d, cell.c + i), i); });
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

constexpr auto kLstmCell = FUSELITE_SIMD_TABLE(LstmCellVector);
constexpr float kInfinity = std::numeric_limits<float>::infinity();

int PeepholeInput(int gate) { return kLstmPeephole + (gate == kOutputGate ? 2 : gate); }

Result<std::vector<float>> Dequantize(const TensorInfo& weights) {
  if (!weights.constant()) return Unsupported("peephole weights are not constant");
  const auto* values = static_cast<const int8_t*>(weights.data);
  std::vector<float> result(static_cast<size_t>(weights.elements()));
  for (size_t i = 0; i < result.size(); ++i) result[i] = values[i] * weights.quantization.scale();
  return result;
}

class LstmKernel final : public FastLstm {
 public:
  explicit LstmKernel(const OpDescription& op)
      : FastLstm(op, sizeof(float)), params_(op.params.as<LstmParams>()) {}
  Status Plan(const OpDescription& op, const PlanContext& context);
  Status Pack(const OpDescription& op, const BuildContext& context);

  size_t scratch_bytes() const override {
    const int64_t depth = std::max(s_.outputs, s_.cells);
    const int64_t columns = std::max(s_.outputs, part_sums());
    return products_at() + std::max(products_.scratch_bytes(kBlockRows, s_.inputs, part_sums()),
                                    products_.scratch_bytes(rows_together(), depth, columns));
  }

 private:
  static const float* In(const KernelArgs& args, int i) {
    return static_cast<const float*>(args.inputs[i]);
  }
  void MultiplyInputs(const KernelArgs& args, size_t part, int64_t first,
                      int64_t count) const override;
  void RunSteps(const KernelArgs& args, int64_t b) const override;
  void RunStep(const KernelArgs& args, int64_t step, size_t part, int64_t b,
               int64_t count) const override;
  void ClearBehind(const KernelArgs& args, const Part& part, int64_t rows) const;
  // `gates`: the sums of the part's gates, side by side.
  LstmCell CellOf(const KernelArgs& args, const Part& part, float* gates) const;
  void Project(const KernelArgs& args, float* y) const;  // of Hidden()
  // Scratch: the sums of a part's step, in phase 0 the biases of its gates; its cell state; hidden
  // values; that of products.
  static size_t Room(int64_t values) { return AlignUp(values * sizeof(float) + kVectorRoom); }
  size_t cells_at() const { return Room(rows_together() * part_sums()); }
  size_t hidden_at() const { return cells_at() + Room(part_cells()); }
  size_t products_at() const { return hidden_at() + Room(part_cells()); }
  float* Gates(const KernelArgs& args) const { return reinterpret_cast<float*>(args.scratch); }
  float* Cells(const KernelArgs& args) const {
    return reinterpret_cast<float*>(args.scratch + cells_at());
  }
  float* Hidden(const KernelArgs& args) const {
    return reinterpret_cast<float*>(args.scratch + hidden_at());
  }
  float* Sums(const KernelArgs& args, int64_t row) const {  // those of phase 0
    return reinterpret_cast<float*>(args.shared) + row * row_;
  }
  std::byte* ProductScratch(const KernelArgs& args) const { return args.scratch + products_at(); }

  const LstmParams params_;
  LstmProducts products_;
  void (*cell_)(const LstmCell&) = nullptr;
  std::vector<LstmMatrix> input_, recurrent_;  // of all gates, for each part
  LstmMatrix projection_;
  std::vector<float> peephole_[kLstmGates];  // of the hybrid form
};

Status LstmKernel::Plan(const OpDescription& op, const PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(products_.Init(op, context.isa));
  cell_ = kLstmCell.For(context.isa);
  FUSELITE_RETURN_IF_ERROR(DivideCells(context, products_.weight_bytes()));
  name_ =
      internal::Join("lstm ", products_.hybrid() ? "hybrid int8 " : "f32 ", SimdName(context.isa));
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    FUSELITE_RETURN_IF_ERROR(CheckLstmWeights(op.inputs[kLstmInputWeights + gate]));
    FUSELITE_RETURN_IF_ERROR(CheckLstmWeights(op.inputs[kLstmRecurrentWeights + gate]));
    if (products_.hybrid() && s_.peephole && gate != kCellGate) {
      FUSELITE_ASSIGN_OR_RETURN(peephole_[gate], Dequantize(op.inputs[PeepholeInput(gate)]));
    }
  }
  return s_.projection ? CheckLstmWeights(op.inputs[kLstmProjection]) : Status();
}

Status LstmKernel::Pack(const OpDescription& op, const BuildContext& context) {
  for (const Part& part : parts()) {
    const auto gates = [&](int first) { return GateWeights(op, first, part); };
    FUSELITE_ASSIGN_OR_RETURN(input_.emplace_back(),
                              products_.Pack(gates(kLstmInputWeights), context));
    FUSELITE_ASSIGN_OR_RETURN(recurrent_.emplace_back(),
                              products_.Pack(gates(kLstmRecurrentWeights), context));
  }
  if (!s_.projection) return Status();
  FUSELITE_ASSIGN_OR_RETURN(projection_, products_.Pack({&op.inputs[kLstmProjection], 1}, context));
  return Status();
}

void LstmKernel::MultiplyInputs(const KernelArgs& args, size_t part, int64_t first,
                                int64_t count) const {
  const Part& at = parts()[part];
  std::byte* scratch = ProductScratch(args);
  const LstmRows rows =
      products_.Prepare(In(args, kLstmX) + first * s_.inputs, count, s_.inputs, s_.inputs, scratch);
  products_.Multiply(input_[part], rows,
                     {.bias = JoinBiases(args, at, Gates(args)),
                      .bound = kInfinity,
                      .c = Sums(args, first) + at.sums_at,
                      .c_pitch = row_,
                      .backwards = Backwards(args, 0)},
                     scratch);
}

// What lies behind sums and cell states is computed with, too, and a denormal number there takes
// the core some 150 cycles in each operation.
void LstmKernel::ClearBehind(const KernelArgs& args, const Part& part, int64_t rows) const {
  std::memset(Gates(args) + rows * part.sums, 0, kVectorRoom);
  std::memset(Cells(args) + part.cells, 0, kVectorRoom);
}

LstmCell LstmKernel::CellOf(const KernelArgs& args, const Part& part, float* gates) const {
  LstmCell cell{};
  cell.cells = part.cells;
  cell.coupled = s_.coupled;
  cell.activation = params_.activation;
  cell.clip = params_.cell_clip > 0 ? params_.cell_clip : kInfinity;
  cell.c = Cells(args);
  cell.m = Hidden(args);
  for (int gate = s_.first_gate(); gate < kLstmGates; ++gate) {
    cell.gates[gate] = gates + (gate - s_.first_gate()) * part.cells;
    if (s_.peephole && gate != kCellGate) {
      cell.peephole[gate] =
          products_.hybrid() ? peephole_[gate].data() : In(args, PeepholeInput(gate));
    }
    if (s_.layer_norm) cell.norm[gate] = In(args, kLstmLayerNorm + gate);
    cell.bias[gate] = In(args, kLstmBias + gate);
  }
  return cell;
}

void LstmKernel::RunSteps(const KernelArgs& args, int64_t b) const {
  const LstmCell cell = CellOf(args, parts().front(), Gates(args));
  ClearBehind(args, parts().front(), 1);
  // Variables are bound as inputs and written in place.
  float* const h_state = const_cast<float*>(In(args, kLstmOutputState)) + b * s_.outputs;
  float* const c_state = const_cast<float*>(In(args, kLstmCellState)) + b * s_.cells;
  std::copy_n(c_state, s_.cells, cell.c);
  const float* h = h_state;
  for (int64_t step = 0; step < s_.steps; ++step) {
    const int64_t row = s_.Row(step, b);
    const LstmRows rows = products_.Prepare(h, 1, s_.outputs, s_.outputs, ProductScratch(args));
    products_.Multiply(recurrent_.front(), rows,
                       {.bias = Sums(args, row),
                        .bound = kInfinity,
                        .c = Gates(args),
                        .c_pitch = row_,
                        .backwards = Backwards(args, step)},
                       ProductScratch(args));
    cell_(cell);
    float* const y = static_cast<float*>(args.outputs[0]) + row * s_.outputs;
    if (s_.projection) {
      Project(args, y);
    } else {
      std::copy_n(cell.m, s_.cells, y);
    }
    h = s_.projection ? y : cell.m;
  }
  std::copy_n(cell.c, s_.cells, c_state);
  if (h != h_state) std::copy_n(h, s_.outputs, h_state);
}

void LstmKernel::RunStep(const KernelArgs& args, int64_t step, size_t part, int64_t b,
                         int64_t count) const {
  const Part& at = parts()[part];
  const LstmRows rows = products_.Prepare(StateBefore<float>(args, step, b), count,
                                          StatePitch(step), s_.outputs, ProductScratch(args));
  products_.Multiply(recurrent_[part], rows,
                     {.bias = nullptr,
                      .bound = kInfinity,
                      .c = Gates(args),
                      .c_pitch = at.sums,
                      .backwards = Backwards(args, step)},
                     ProductScratch(args));
  ClearBehind(args, at, count);
  for (int64_t r = 0; r < count; ++r) {
    const int64_t row = s_.Row(step, b + r);
    const float* const from_input = Sums(args, row) + at.sums_at;
    float* const gates = Gates(args) + r * at.sums;
    for (int64_t i = 0; i < at.sums; ++i) gates[i] += from_input[i];
    const LstmCell cell = CellOf(args, at, gates);
    float* const c_state =
        const_cast<float*>(In(args, kLstmCellState)) + (b + r) * s_.cells + at.first;
    std::copy_n(c_state, at.cells, cell.c);
    cell_(cell);
    std::copy_n(cell.c, at.cells, c_state);
    std::copy_n(cell.m, at.cells,
                static_cast<float*>(args.outputs[0]) + row * s_.outputs + at.first);
  }
}

void LstmKernel::Project(const KernelArgs& args, float* y) const {
  const float bound = params_.proj_clip > 0 ? params_.proj_clip : kInfinity;
  std::byte* scratch = ProductScratch(args);
  products_.Multiply(
      projection_, products_.Prepare(Hidden(args), 1, s_.cells, s_.cells, scratch),
      {.bias = In(args, kLstmProjectionBias), .bound = bound, .c = y, .c_pitch = s_.outputs},
      scratch);
}

}  // namespace

Result<KernelPlan> PlanLstmHighway(const OpDescription& op, const PlanContext& context) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const LstmShape s(op);
  if (s.cells == 0 || s.inputs == 0 || s.outputs == 0)
    return Unsupported("does not take empty weights");
  if (op.inputs[kLstmX].type == DataType::kInt8) return PlanLstmIntegerHighway(op, context);
  return PlanThenPack(LstmKernel(op), op, context);
}

}  // namespace fuselite::kernels
#endif
