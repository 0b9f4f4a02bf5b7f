#include "kernels/elementwise/quantized/quantized_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "kernels/elementwise/quantized/quantized_binary.h"
#include "kernels/make_kernel.h"
#include "kernels/simd.h"
#include "kernels/tail/float_scale.h"
#include "kernels/tail/float_sum.h"
#include "runtime/cpu/float_state.h"

namespace fuselite::kernels {
namespace {

// ---- The exact functions, of bytes as unsigned values ----

void Raise(int32_t by, QuantizedAdd* q) {
  q->x_offset -= by;
  q->y_offset -= by;
  q->output_offset += by;
  q->min += by;
  q->max += by;
}
void Raise(int32_t by, QuantizedSum* f) { Raise(by, &f->q); }
void Raise(int32_t by, QuantizedSquaredDifference* f) { Raise(by, &f->sum.q); }
template <class F>  // QuantizedProduct, QuantizedPrelu, QuantizedQuotient
void Raise(int32_t by, F* f) {
  f->x_zero += by;
  f->y_zero += by;
  f->zero += by;
  f->min += by;
  f->max += by;
}

template <class F>
Result<QuantizedFunction> Raised(Result<F> function, int32_t by) {
  if (!function.ok()) return function.status();
  Raise(by, &*function);
  return QuantizedFunction(*function);
}

Result<QuantizedFunction> WithDivisors(Result<QuantizedQuotient> function, int32_t by) {
  if (!function.ok()) return function.status();
  QuantizedQuotient exact = *function;
  Raise(by, &exact);
  auto divisors = std::make_shared<TabledQuotient::Divisors>();
  for (int32_t y = 0; y < 256; ++y) {
    const FixedReciprocal r =
        exact.Refuses(y) ? FixedReciprocal{0, 0} : Reciprocal(std::abs(y - exact.y_zero), 31);
    divisors->inverse[y] = r.scale;
    divisors->right[y] = r.bits_over_unit - exact.scale.shift;
  }
  return QuantizedFunction(TabledQuotient{exact, std::move(divisors), exact.min, exact.max});
}

Result<QuantizedFunction> ExactFunction(BinaryKind kind, const OpDescription& op, int32_t raise) {
  switch (kind) {
    case BinaryKind::kAdd:
    case BinaryKind::kSub: return Raised(MakeQuantizedSum(kind, op), raise);
    case BinaryKind::kMul: return Raised(MakeQuantizedProduct(op), raise);
    case BinaryKind::kDiv: return WithDivisors(MakeQuantizedQuotient(op), raise);
    case BinaryKind::kPrelu: return Raised(MakeQuantizedPrelu(op), raise);
    case BinaryKind::kSquaredDifference: return Raised(MakeQuantizedSquaredDifference(op), raise);
    default: return Unsupported("quantized ", BinaryName(kind), " has no vector version");
  }
}

// ---- The rounded functions ----

// Pairs of bytes are tried some x at a time, with all y: what is compared stays in L1.
constexpr int kTriedRows = 16, kTriedBlocks = 256 / kTriedRows;
using TriedRows = std::array<uint8_t, kTriedRows * 256>;

// Computes the x in block `block`. A row repeats x and goes through all y.
void ComputePairs(QuantizedRowsFunction* rows, const QuantizedFunction& function, int block,
                  TriedRows* results) {
  std::array<uint8_t, 256> bytes;
  for (int i = 0; i < 256; ++i) bytes[i] = static_cast<uint8_t>(i);
  rows({function, DataType::kUInt8, 0}, {.x = bytes.data() + block * kTriedRows,
                                         .y = bytes.data(),
                                         .out = results->data(),
                                         .x_stride = 1,
                                         .y_stride = 0,
                                         .out_stride = 256,
                                         .x_step = 0,
                                         .y_step = 1,
                                         .rows = kTriedRows,
                                         .n = 256});
}

// Whether results of this size stay within 16 bits before they are clamped.
bool FitsShort(double largest) { return largest < 32000; }

// The float32 next to `x` that is `steps` away.
float Neighbour(float x, int steps) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (; steps > 0; --steps) x = std::nextafter(x, kInfinity);
  for (; steps < 0; ++steps) x = std::nextafter(x, -kInfinity);
  return x;
}

double Real(int32_t multiplier, int32_t shift) { return std::ldexp(multiplier, shift - 31); }

RoundedSum Rounded(const QuantizedAdd& q, const FloatSum& floats) {
  return {.x_zero = -q.x_offset,
          .y_zero = -q.y_offset,
          .zero = q.output_offset,
          .x_scale = floats.x_scale,
          .y_scale = floats.y_scale,
          .addend = floats.addend,
          .min = q.min,
          .max = q.max};
}

// What to try, the most likely first: rounding in float32 goes wrong for less than one pair in
// 65536 on average, and other neighbours of the scales put it right. Scales that are stretched a
// little take halves away from zero.
std::vector<QuantizedFunction> RoundedForms(const QuantizedSum& f) {
  const QuantizedAdd& q = f.q;
  const double out = std::ldexp(Real(q.output_multiplier, q.output_shift), q.left_shift);
  const double x = out * Real(q.x_multiplier, q.x_shift), y = out * Real(q.y_multiplier, q.y_shift);
  if (!FitsShort(255 * (x + y + 1))) return {};
  std::vector<QuantizedFunction> forms;
  constexpr std::array<std::array<int, 2>, 9> kSteps = {
      {{0, 0}, {1, 0}, {0, 1}, {1, 1}, {-1, 0}, {0, -1}, {-1, -1}, {1, -1}, {-1, 1}}};
  for (const double stretch : {1.0, 1 + 0x1p-18}) {
    for (const auto& [x_steps, y_steps] : kSteps) {
      const float x_scale = Neighbour(static_cast<float>(x * stretch), x_steps);
      const float y_scale = Neighbour(static_cast<float>(y * stretch), y_steps);
      forms.emplace_back(Rounded(q, {x_scale, q.negate_y ? -y_scale : y_scale}));
    }
  }
  return forms;
}

std::vector<QuantizedFunction> RoundedForms(const QuantizedProduct& f) {
  const double scale = Real(f.scale.multiplier, f.scale.shift);
  if (!FitsShort(255 * 255 * scale + 255)) return {};
  std::vector<QuantizedFunction> forms;
  // The first rounding is to -shift bits of fraction.
  const float nudge = f.scale.shift < 0 ? std::ldexp(0.5f, f.scale.shift) : 0.0f;
  for (const int steps : {0, 1, -1}) {
    forms.emplace_back(RoundedProduct{.x_zero = f.x_zero,
                                      .y_zero = f.y_zero,
                                      .zero = f.zero,
                                      .scale = Neighbour(static_cast<float>(scale), steps),
                                      .nudge = nudge,
                                      .min = f.min,
                                      .max = f.max});
  }
  return forms;
}

std::vector<QuantizedFunction> RoundedForms(const QuantizedSquaredDifference& f) {
  const QuantizedAdd& q = f.sum.q;
  const double scale = Real(q.output_multiplier, q.output_shift);
  const double largest = std::ldexp(255.0, q.left_shift) *
                         (Real(q.x_multiplier, q.x_shift) + Real(q.y_multiplier, q.y_shift));
  if (!FitsShort(largest * largest * scale + 255)) return {};
  std::vector<QuantizedFunction> forms;
  for (const int steps : {0, 1, -1, 2}) {
    forms.emplace_back(RoundedSquaredDifference{f, Neighbour(static_cast<float>(scale), steps),
                                                q.output_offset, q.min, q.max});
  }
  return forms;
}

std::vector<QuantizedFunction> RoundedForms(const auto&) { return {}; }

// The first of the rounded forms of `exact` that has all its results by the very code that will
// run: `exact` itself where none is found. Tens of microseconds.
QuantizedFunction TryForms(QuantizedRowsFunction* rows, const QuantizedFunction& exact) {
  const std::vector<QuantizedFunction> forms =
      std::visit([](const auto& f) { return RoundedForms(f); }, exact);
  if (forms.empty()) return exact;
  // The first form is the one in most layers: what is expected is computed again for the others,
  // for less than the first touch of memory to keep it in.
  TriedRows expected, actual;
  const auto agrees = [&](const QuantizedFunction& form, int block) {
    ComputePairs(rows, exact, block, &expected);
    ComputePairs(rows, form, block, &actual);
    return actual == expected;
  };
  for (const QuantizedFunction& form : forms) {
    int block = 0;
    while (block < kTriedBlocks && agrees(form, block)) ++block;
    if (block == kTriedBlocks) return form;
  }
  return exact;
}

// A product is brought to bytes as sums of products are, by a step function of one number: what is
// found takes no trying. nullopt where the ISA cannot fuse a multiplication and an addition, and
// for a few others.
std::optional<RoundedProduct> ProvenForm(const QuantizedProduct& f, Isa isa) {
  const int32_t x = 255 - f.x_zero, y = 255 - f.y_zero;
  const auto [least, largest] =
      std::minmax({f.x_zero * f.y_zero, -f.x_zero * y, -f.y_zero * x, x * y});
  const FloatScaleQuery query{.scale = {.multiplier = f.scale.multiplier, .shift = f.scale.shift},
                              .least = least,
                              .largest = largest,
                              .zero_point = f.zero,
                              .min = f.min,
                              .max = f.max,
                              .addend_has_sign = true};
  if (!FitsShort(255 * 255 * query.scale.value() + 255)) return std::nullopt;
  const DefaultFloatState state;
  const std::optional<FloatScale> found = FindFloatScale(query, isa);
  if (!found || found->moves_down() || found->moves_up()) return std::nullopt;
  return RoundedProduct{.x_zero = f.x_zero,
                        .y_zero = f.y_zero,
                        .zero = f.zero,
                        .scale = found->scale,
                        .nudge = found->addend,
                        .min = f.min,
                        .max = f.max};
}

// Few pairs of bytes have a sum that is hard to round, and only they are tried. nullopt where the
// ISA cannot fuse, and where scales are simple fractions that make halves of many sums.
std::optional<RoundedSum> ProvenForm(const QuantizedSum& f, Isa isa) {
  constexpr ByteRange kBytes{0, 255};
  const DefaultFloatState state;
  const auto found = FindNearFloatSum(f.q, kBytes, kBytes, isa, f.q.output_offset);
  if (!found) return std::nullopt;
  RoundedSum sum = Rounded(f.q, found->floats);
  sum.exceptions = found->exceptions;
  return sum;
}

// A rounded function with all the results of `exact`, which is one of unsigned bytes: `exact`
// itself where none is found.
QuantizedFunction FindRounded(QuantizedRowsFunction* rows, const QuantizedFunction& exact,
                              Isa isa) {
  if (const auto* product = std::get_if<QuantizedProduct>(&exact)) {
    if (const auto form = ProvenForm(*product, isa)) return *form;
  }
  if (const auto* sum = std::get_if<QuantizedSum>(&exact)) {
    if (const auto form = ProvenForm(*sum, isa)) return *form;
  }
  return TryForms(rows, exact);
}

// The input in whose place the output can be, or -1.
int InPlaceInput(const OpDescription& op) {
  for (const int i : {0, 1}) {
    if (op.inputs[i].shape == op.outputs[0].shape &&
        op.inputs[i].pitch() == op.outputs[0].pitch()) {
      return i;
    }
  }
  return -1;
}

// Whether `byte` is among the second operands of a block.
bool DividesBy(int byte, const RowBlock& b) {
  const auto* y = static_cast<const uint8_t*>(b.y);
  const size_t n = b.y_step == 0 ? 1 : static_cast<size_t>(b.n);
  const int64_t rows = b.y_stride == 0 ? std::min<int64_t>(b.rows, 1) : b.rows;
  for (int64_t row = 0; row < rows; ++row, y += b.y_stride) {
    if (std::memchr(y, byte, n) != nullptr) return true;
  }
  return false;
}

// The blocks of units [begin, end), in which nothing is divided by 0.
Status DivideRows(const JoinedRows& joined, QuantizedRowsFunction* rows,
                  const QuantizedRowFunction& f, const KernelArgs& args, int64_t begin,
                  int64_t end) {
  const int zero = std::get<TabledQuotient>(f.function).exact.y_zero ^ f.flip;
  bool refused = false;
  joined.ForEach(args, begin, end, [&](const RowBlock& block) {
    refused = refused || DividesBy(zero, block);
    if (!refused) rows(f, block);
  });
  return refused ? InvalidArgument("a quantized value is divided by 0") : Status();
}

// `search`: for a function that rounds once, which takes trying all pairs of operands.
Result<std::unique_ptr<Kernel>> MakeRows(BinaryKind kind, const OpDescription& op, Isa isa,
                                         bool search) {
  const DataType type = op.inputs[0].type;
  QuantizedRowsFunction* const rows = QuantizedRows(isa);
  if (rows == nullptr) return NoVectorTarget(isa);
  const bool bytes = type != DataType::kInt16;
  const uint8_t flip = type == DataType::kInt8 ? 0x80 : 0;
  FUSELITE_ASSIGN_OR_RETURN(QuantizedFunction function, ExactFunction(kind, op, flip));
  if (!bytes && !std::holds_alternative<QuantizedSum>(function) &&
      !std::holds_alternative<QuantizedProduct>(function)) {
    return Unsupported("int16 ", BinaryName(kind), " has no vector version");
  }
  if (bytes && search) function = FindRounded(rows, function, isa);
  const bool rounded = function.index() >= QuantizedFunction(RoundedSum()).index();
  const JoinedRows joined(op, isa);
  const Work work{.units = joined.plan().units(),
                  .grain = GrainFor(joined.plan().unit_elements()),
                  .scratch_bytes = joined.scratch_bytes(),
                  .in_place_input = InPlaceInput(op)};
  return MakeKernel(internal::Join(BinaryName(kind), ' ', DataTypeName(type),
                                   rounded ? " rounded " : " ", SimdName(isa)),
                    work,
                    [=, f = QuantizedRowFunction{function, type, flip}](
                        const KernelArgs& args, int64_t begin, int64_t end) -> Status {
                      if (kind == BinaryKind::kDiv) {
                        return DivideRows(joined, rows, f, args, begin, end);
                      }
                      joined.ForEach(args, begin, end,
                                     [&](const RowBlock& block) { rows(f, block); });
                      return {};
                    });
}

}  // namespace

Result<KernelPlan> PlanQuantizedRows(BinaryKind kind, const OpDescription& op,
                                     const PlanContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> draft, MakeRows(kind, op, context.isa, false));
  return KernelPlan::MadeLater(std::move(draft),
                               [kind](const OpDescription& described, const BuildContext& build) {
                                 return MakeRows(kind, described, build.isa, true);
                               });
}

}  // namespace fuselite::kernels
