// Emitted code is kept under a key: whatever changes the code must change the key, or a layer would
// run another one's code. Each case changes one field of a specification.
#include <functional>
#include <set>

#include "gtest/gtest.h"
#include "jit/depthwise/depthwise_emitter.h"
#include "jit/depthwise/depthwise_s8_emitter.h"
#include "jit/elementwise/elementwise_emitter.h"
#include "jit/product/gemm_emitter.h"
#include "jit/product/gemm_s8_emitter.h"

namespace fuselite::jit {
namespace {

using kernels::BinaryKind;
using kernels::Tail;
using kernels::TailStage;
using kernels::UnaryKind;

// The keys of `spec` and of each of its variants differ from each other.
template <class Spec>
void ExpectDistinct(const Spec& spec, const std::vector<std::function<void(Spec&)>>& changes,
                    const std::function<std::string(const Spec&)>& key) {
  std::set<std::string> keys = {key(spec)};
  for (size_t i = 0; i < changes.size(); ++i) {
    Spec changed = spec;
    changes[i](changed);
    EXPECT_TRUE(keys.insert(key(changed)).second) << "change " << i << ": " << key(changed);
  }
}

// Compiles only as long as these are all fields that there are: who adds one adds a change below.
[[maybe_unused]] void NameEveryField() {
  const auto unused = [](const auto&...) {};
  const auto& [gemm_isa, bf16, gemm_depth, a_step, a_runs, out_step, bf16_out, gemm_across,
               gemm_rolled, prefetch_weights, gemm_amx_rows, fetched_parts, gemm_tail] = GemmSpec();
  unused(gemm_isa, bf16, gemm_depth, a_step, a_runs, out_step, bf16_out, gemm_across, gemm_rolled,
         prefetch_weights, gemm_amx_rows, fetched_parts, gemm_tail);
  const auto& [isa, depth, again, a, runs, out, flips, corrects, across, to_the_byte, narrow,
               byte_pairs, split_rows, rolled, prefetches, apart, amx_rows, s8_tail] = GemmS8Spec();
  unused(isa, depth, again, a, runs, out, flips, corrects, across, to_the_byte, narrow, byte_pairs,
         split_rows, rolled, prefetches, apart, amx_rows, s8_tail);
  const auto& [requantization, dequantization, residuals] = SumTail();
  unused(requantization, dequantization, residuals);
  const auto& [rows, vectors, last_lanes] = Tile();
  unused(rows, vectors, last_lanes);
  const auto& [float_isa, window, tile, pixel, out_pixel, shorts_in, shorts_out, partial_lanes,
               gathered, tail] = DepthwiseSpec();
  unused(float_isa, window, tile, pixel, out_pixel, shorts_in, shorts_out, partial_lanes, gathered,
         tail);
  const auto& [s8_isa, s8_window, dot, s8_again, is_unsigned, s8_pixel, s8_out, overlap,
               out_overlap, group, sum_tail] = DepthwiseS8Spec();
  unused(s8_isa, s8_window, dot, s8_again, is_unsigned, s8_pixel, s8_out, group, sum_tail);
  unused(overlap, out_overlap);
  const auto& [width, channels, count, joined_rows] = DepthwiseS8Blocks();
  unused(width, channels, count, joined_rows);
  const auto& [elementwise_isa, chain] = ElementwiseSpec();
  const auto& [in_step, chain_out, chain_bf16_in, chain_bf16_out, chain_tail] = chain;
  unused(elementwise_isa, in_step, chain_out, chain_bf16_in, chain_bf16_out, chain_tail);
  const auto& [unsigned_result, min, max, real, zero_point, has_sign, store_offset, lookup] =
      Requantization();
  unused(unsigned_result, min, max, real, zero_point, has_sign, store_offset, lookup);
  const auto& [weights_first, row_zero_points, per_row, float_tail] = Dequantization();
  unused(weights_first, row_zero_points, per_row, float_tail);
  const auto& [add, least, most, unsigned_sum, operand, rows_per_batch, floats] = Residual();
  unused(add, least, most, unsigned_sum, operand, rows_per_batch, floats);
}

Tail OneStage() {
  Tail tail;
  tail.stages = {TailStage::Binary(
      BinaryKind::kAdd, {.input = 3, .batch_stride = 0, .row_stride = 8, .channel_stride = 1})};
  return tail;
}

template <class Spec>
std::vector<std::function<void(Spec&)>> TailChanges(const std::function<Tail&(Spec&)>& tail) {
  return {
      [tail](Spec& s) { tail(s).stages.clear(); },
      [tail](Spec& s) { tail(s).stages[0].binary = BinaryKind::kMul; },
      [tail](Spec& s) { tail(s).stages[0].operand.row_stride = 16; },
      [tail](Spec& s) { tail(s).stages[0].operand.channel_stride = 0; },
      [tail](Spec& s) { tail(s).stages[0].operand.bfloat16 = true; },
      [tail](Spec& s) { tail(s).stages.push_back(TailStage::Unary(UnaryKind::kAbs)); },
      [tail](Spec& s) { tail(s).stages.push_back(TailStage::Unary(UnaryKind::kTanh)); },
      [tail](Spec& s) { tail(s).stages.push_back(TailStage::Unary(UnaryKind::kClamp, 0, 6)); },
      [tail](Spec& s) { tail(s).stages.push_back(TailStage::Unary(UnaryKind::kClamp, 0, 1)); },
      [tail](Spec& s) { tail(s).stages.push_back(TailStage::Unary(UnaryKind::kClamp, -1, 6)); }};
}

template <class T>
void Append(std::vector<T>* to, const std::vector<T>& more) {
  to->insert(to->end(), more.begin(), more.end());
}

template <class Spec>
std::vector<std::function<void(Spec&)>> DepthChanges() {
  return {[](Spec& s) { s.depth.outer = 3; }, [](Spec& s) { s.depth.outer_step = 99; },
          [](Spec& s) { s.depth.runs[0].offset = 4; }, [](Spec& s) { s.depth.runs[0].length = 17; },
          [](Spec& s) {
            s.depth.runs.push_back({64, 16});
          }};
}

TEST(CodeKeyTest, FloatProducts) {
  GemmSpec spec;
  spec.depth.outer = 2;
  spec.depth.outer_step = 96;
  spec.a_step = 64;
  spec.out_step = 128;
  spec.tail = OneStage();
  spec.depth.runs = {{0, 16}};
  const std::vector<Tile> tiles = {{4, 2, 8}};
  std::vector<std::function<void(GemmSpec&)>> changes = {
      [](GemmSpec& s) { s.isa = Isa::kAvx512; }, [](GemmSpec& s) { s.bf16 = true; },
      [](GemmSpec& s) { s.a_step = 68; },        [](GemmSpec& s) { s.a_runs.rows = 2; },
      [](GemmSpec& s) { s.a_runs.step = 96; },   [](GemmSpec& s) { s.out_step = 132; },
      [](GemmSpec& s) { s.bf16_out = true; },    [](GemmSpec& s) { s.across = true; },
      [](GemmSpec& s) { s.rolled = true; },      [](GemmSpec& s) { s.prefetch_weights = true; },
      [](GemmSpec& s) { s.amx_rows = 16; },      [](GemmSpec& s) { s.fetched_parts = 4; }};
  Append(&changes, DepthChanges<GemmSpec>());
  Append(&changes, TailChanges<GemmSpec>([](GemmSpec& s) -> Tail& { return s.tail; }));
  ExpectDistinct<GemmSpec>(spec, changes, [&](const GemmSpec& s) { return CodeKey(s, tiles); });
  ExpectDistinct<Tile>(tiles[0],
                       {[](Tile& t) { t.rows = 5; }, [](Tile& t) { t.vectors = 1; },
                        [](Tile& t) { t.last_lanes = 7; }},
                       [&](const Tile& t) { return CodeKey(spec, std::vector<Tile>{t}); });
}

Requantization SomeRequantization() { return {.min = -128, .max = 127}; }
Residual SomeResidual() { return {.add = {.left_shift = 20}, .operand = {}}; }

// Those that both integer emitters share.
template <class Spec>
std::vector<std::function<void(Spec&)>> IntegerTailChanges() {
  const auto floats = [](Spec& s) {
    s.tail.requantization.reset();
    s.tail.residuals.clear();
    s.tail.dequantization = Dequantization{.tail = OneStage()};
  };
  std::vector<std::function<void(Spec&)>> changes = {
      [](Spec& s) { s.tail.requantization.reset(); },
      [](Spec& s) { s.tail.requantization->is_unsigned = true; },
      [](Spec& s) { s.tail.requantization->min = -1; },
      [](Spec& s) { s.tail.requantization->max = 6; },
      [](Spec& s) { s.tail.requantization->real = true; },
      [](Spec& s) { s.tail.requantization->addend_has_sign = true; },
      [](Spec& s) { s.tail.requantization->store_offset = 5; },
      [](Spec& s) { s.tail.requantization->lookup = LookupMethod::kPermutes; },
      [](Spec& s) { s.tail.requantization->lookup = LookupMethod::kShuffles; },
      [](Spec& s) { s.tail.residuals.clear(); },
      [](Spec& s) { s.tail.residuals[0].is_unsigned = true; },
      [](Spec& s) { s.tail.residuals[0].operand.row_stride = 77; },
      [](Spec& s) { s.tail.residuals[0].add.left_shift = 15; },
      [](Spec& s) { s.tail.residuals[0].add.x_multiplier = 1 << 30; },
      [](Spec& s) { s.tail.residuals[0].add.x_shift = -3; },
      [](Spec& s) { s.tail.residuals[0].add.y_multiplier = 1 << 30; },
      [](Spec& s) { s.tail.residuals[0].add.y_shift = -6; },
      [](Spec& s) { s.tail.residuals[0].add.output_shift = -8; },
      [](Spec& s) { s.tail.residuals[0].add.negate_x = true; },
      [](Spec& s) { s.tail.residuals[0].add.negate_y = true; },
      [](Spec& s) {
        s.tail.residuals[0].floats = {{0.5f, 0.25f}};
      },
      floats,
      [floats](Spec& s) { floats(s), s.tail.dequantization->weights_first = true; },
      [floats](Spec& s) { floats(s), s.tail.dequantization->row_zero_points = true; },
      [floats](Spec& s) { floats(s), s.tail.dequantization->per_row = false; },
      [floats](Spec& s) { floats(s), s.tail.dequantization->tail.stages.clear(); }};
  return changes;
}

TEST(CodeKeyTest, IntegerProducts) {
  GemmS8Spec spec;
  spec.depth.outer = 2;
  spec.depth.outer_step = 96;
  spec.a_step = 64;
  spec.out_step = 128;
  spec.depth.runs = {{0, 16}};
  spec.tail.requantization = SomeRequantization();
  spec.tail.residuals = {SomeResidual()};
  const std::vector<Tile> tiles = {{4, 2, 8}};
  std::vector<std::function<void(GemmS8Spec&)>> changes = {
      [](GemmS8Spec& s) { s.isa = Isa::kAvx512Vnni; },
      [](GemmS8Spec& s) {
        s.again = {{0, 0, 4}};
      },
      [](GemmS8Spec& s) {
        s.again = {{8, 8, 4}};
      },
      [](GemmS8Spec& s) {
        s.again = {{0, 0, 3}};
      },
      [](GemmS8Spec& s) { s.a_step = 68; },
      [](GemmS8Spec& s) { s.a_runs.rows = 2; },
      [](GemmS8Spec& s) { s.a_runs.step = 96; },
      [](GemmS8Spec& s) { s.out_step = 132; },
      [](GemmS8Spec& s) { s.flips = true; },
      [](GemmS8Spec& s) { s.corrects = true; },
      [](GemmS8Spec& s) { s.narrow = true; },
      [](GemmS8Spec& s) { s.byte_pairs = true; },
      [](GemmS8Spec& s) { s.split_rows = true; },
      [](GemmS8Spec& s) { s.across = true; },
      [](GemmS8Spec& s) { s.rolled = true; },
      [](GemmS8Spec& s) { s.prefetch_weights = true; },
      [](GemmS8Spec& s) { s.constants_apart = true; },
      [](GemmS8Spec& s) { s.amx_rows = 16; },
      [](GemmS8Spec& s) { s.to_the_byte = true; }};
  Append(&changes, DepthChanges<GemmS8Spec>());
  Append(&changes, IntegerTailChanges<GemmS8Spec>());
  ExpectDistinct<GemmS8Spec>(spec, changes, [&](const GemmS8Spec& s) { return CodeKey(s, tiles); });
  ExpectDistinct<Tile>(tiles[0],
                       {[](Tile& t) { t.rows = 5; }, [](Tile& t) { t.vectors = 1; },
                        [](Tile& t) { t.last_lanes = 7; }},
                       [&](const Tile& t) { return CodeKey(spec, std::vector<Tile>{t}); });
}

// Layers that differ in numbers alone share their code.
TEST(CodeKeyTest, NumbersOfALayerAreNotInItsCode) {
  GemmS8Spec spec;
  spec.depth.runs = {{0, 16}};
  spec.tail.requantization = SomeRequantization();
  spec.tail.requantization->min = -100;
  spec.tail.requantization->store_offset = 5;
  spec.tail.residuals = {SomeResidual()};
  spec.tail.residuals[0].add.x_shift = spec.tail.residuals[0].add.y_shift = -3;
  const std::vector<std::function<void(GemmS8Spec&)>> changes = {
      [](GemmS8Spec& s) { s.tail.requantization->zero_point = 3; },
      [](GemmS8Spec& s) { s.tail.requantization->min = -99; },
      [](GemmS8Spec& s) { s.tail.requantization->store_offset = 4; },
      [](GemmS8Spec& s) { s.tail.residuals[0].min = -7; },
      [](GemmS8Spec& s) { s.tail.residuals[0].max = 7; },
      [](GemmS8Spec& s) { s.tail.residuals[0].add.x_offset = 1; },
      [](GemmS8Spec& s) { s.tail.residuals[0].add.x_multiplier = 2; },
      [](GemmS8Spec& s) { s.tail.residuals[0].add.x_shift = -4; },
      [](GemmS8Spec& s) { s.tail.residuals[0].add.y_offset = 4; },
      [](GemmS8Spec& s) { s.tail.residuals[0].add.y_multiplier = 5; },
      [](GemmS8Spec& s) { s.tail.residuals[0].add.y_shift = -6; },
      [](GemmS8Spec& s) { s.tail.residuals[0].add.output_multiplier = 7; },
      [](GemmS8Spec& s) { s.tail.residuals[0].add.output_offset = 9; }};
  const std::vector<Tile> tiles = {{4, 2, 8}};
  for (size_t i = 0; i < changes.size(); ++i) {
    GemmS8Spec changed = spec;
    changes[i](changed);
    EXPECT_EQ(CodeKey(changed, tiles), CodeKey(spec, tiles)) << "change " << i;
  }
}

template <class Spec>
std::vector<std::function<void(Spec&)>> WindowChanges() {
  std::vector<std::function<void(Spec&)>> changes;
  for (kernels::WindowAxis kernels::Window::*axis : {&kernels::Window::x, &kernels::Window::y}) {
    for (int32_t kernels::WindowAxis::*field :
         {&kernels::WindowAxis::input, &kernels::WindowAxis::filter, &kernels::WindowAxis::stride,
          &kernels::WindowAxis::dilation, &kernels::WindowAxis::output,
          &kernels::WindowAxis::before}) {
      changes.push_back([axis, field](Spec& s) { s.window.*axis.*field += 1; });
    }
  }
  return changes;
}

kernels::Window SomeWindow() {
  kernels::Window window;
  window.y = window.x = {.input = 9, .filter = 3, .output = 7};
  return window;
}

TEST(CodeKeyTest, FloatDepthwise) {
  const DepthwiseSpec spec{.isa = Isa::kAvx2,
                           .window = SomeWindow(),
                           .tile = {},
                           .pixel_bytes = 64,
                           .out_pixel_bytes = 64,
                           .tail = OneStage()};
  std::vector<std::function<void(DepthwiseSpec&)>> changes = {[](DepthwiseSpec& s) { s.isa = Isa::kAvx512; },
                                                              [](DepthwiseSpec& s) { s.pixel_bytes = 68; },
                                                              [](DepthwiseSpec& s) { s.out_pixel_bytes = 68; },
                                                              [](DepthwiseSpec& s) { s.bf16_in = true; },
                                                              [](DepthwiseSpec& s) { s.bf16_out = true; },
                                                              [](DepthwiseSpec& s) { s.partial_lanes = 3; },
                                                              [](DepthwiseSpec& s) { s.gathered = 2; },
                                                              [](DepthwiseSpec& s) { s.tile.rows = 2; },
                                                              [](DepthwiseSpec& s) { s.tile.columns = 2; }};
  Append(&changes, WindowChanges<DepthwiseSpec>());
  Append(&changes, TailChanges<DepthwiseSpec>([](DepthwiseSpec& s) -> Tail& { return s.tail; }));
  ExpectDistinct<DepthwiseSpec>(spec, changes, [](const auto& s) { return CodeKey(s); });
}

TEST(CodeKeyTest, IntegerDepthwise) {
  DepthwiseS8Spec spec;
  spec.window = SomeWindow();
  spec.pixel_bytes = spec.out_pixel_bytes = 64;
  spec.tail.requantization = SomeRequantization();
  spec.tail.residuals = {SomeResidual()};
  const std::vector<DepthwiseS8Blocks> blocks = {{.width = 32, .channels = 16, .count = 2}};
  std::vector<std::function<void(DepthwiseS8Spec&)>> changes = {
      [](DepthwiseS8Spec& s) { s.isa = Isa::kAvx512; },
      [](DepthwiseS8Spec& s) { s.dot = true; },
      [](DepthwiseS8Spec& s) { s.again = {0}; },
      [](DepthwiseS8Spec& s) {
        s.again = {0, 2};
      },
      [](DepthwiseS8Spec& s) { s.is_unsigned = true; },
      [](DepthwiseS8Spec& s) { s.pixel_bytes = 68; },
      [](DepthwiseS8Spec& s) { s.out_pixel_bytes = 68; },
      [](DepthwiseS8Spec& s) { s.overlap_bytes = 4; },
      [](DepthwiseS8Spec& s) { s.out_overlap_bytes = 4; },
      [](DepthwiseS8Spec& s) { s.group_channels = 4; }};
  Append(&changes, WindowChanges<DepthwiseS8Spec>());
  Append(&changes, IntegerTailChanges<DepthwiseS8Spec>());
  ExpectDistinct<DepthwiseS8Spec>(spec, changes, [&](const auto& s) { return CodeKey(s, blocks); });
  ExpectDistinct<DepthwiseS8Blocks>(
      blocks[0],
      {[](DepthwiseS8Blocks& b) { b.width = 16; }, [](DepthwiseS8Blocks& b) { b.channels = 7; },
       [](DepthwiseS8Blocks& b) { b.rows = 2; }},
      [&](const auto& b) { return CodeKey(spec, {b}); });
}

TEST(CodeKeyTest, Elementwise) {
  const ElementwiseSpec spec{.isa = Isa::kAvx2,
                             .rows = {.in_step = 64, .out_step = 64, .tail = OneStage()}};
  std::vector<std::function<void(ElementwiseSpec&)>> changes = {
      [](ElementwiseSpec& s) { s.isa = Isa::kAvx512; },
      [](ElementwiseSpec& s) { s.rows.in_step = 68; },
      [](ElementwiseSpec& s) { s.rows.out_step = 68; },
      [](ElementwiseSpec& s) { s.rows.bf16_in = true; },
      [](ElementwiseSpec& s) { s.rows.bf16_out = true; }};
  Append(&changes,
         TailChanges<ElementwiseSpec>([](ElementwiseSpec& s) -> Tail& { return s.rows.tail; }));
  constexpr int64_t kLength[] = {16}, kOtherLength[] = {17};
  ExpectDistinct<ElementwiseSpec>(spec, changes,
                                  [&](const auto& s) { return CodeKey(s, kLength); });
  EXPECT_NE(CodeKey(spec, kLength), CodeKey(spec, kOtherLength));
}

}  // namespace
}  // namespace fuselite::jit
