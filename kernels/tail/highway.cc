// The tail with vectors: a row at a time in blocks that stay in L1, the stages' loop outside of the
// elements' loop.
#include <algorithm>
#include <cstring>

#include "kernels/tail/apply.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tail/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/simd.h"
#include "kernels/tail/float_stages-inl.h"
#include "kernels/tail/integer_stages-inl.h"
#include "runtime/is_byte.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {

// Values that flow through the stages together: 4 KiB of 32-bit ones.
constexpr int64_t kBlock = 1024;

// Where a run of values lies: channels [channel, ...) of one row.
struct RunPosition {
  int64_t batch, row_in_batch, channel;
};

template <class T>
const T* OperandAt(const TailOperand& y, const void* const* inputs, const RunPosition& at) {
  return static_cast<const T*>(inputs[y.input]) + at.batch * y.batch_stride +
         at.row_in_batch * y.row_stride + at.channel * y.channel_stride;
}

template <class T>
void WidenRun(const void* in, int32_t* out, size_t n) {
  const auto* narrow = static_cast<const T*>(in);
  ForVectors(n, [&](size_t i, size_t count)
                    HWY_ATTR { StoreInt(LoadInt(narrow + i, count), out + i, count); });
}

template <class T>
void NarrowRun(const int32_t* in, void* out, size_t n) {
  auto* narrow = static_cast<T*>(out);
  ForVectors(n, [&](size_t i, size_t count)
                    HWY_ATTR { StoreInt(LoadInt(in + i, count), narrow + i, count); });
}

void Widen(DataType type, const void* in, int32_t* out, size_t n) {
  switch (type) {
    case DataType::kUInt8: return WidenRun<uint8_t>(in, out, n);
    case DataType::kInt16: return WidenRun<int16_t>(in, out, n);
    default: return WidenRun<int8_t>(in, out, n);
  }
}

void Narrow(DataType type, const int32_t* in, void* out, size_t n) {
  switch (type) {
    case DataType::kUInt8: return NarrowRun<uint8_t>(in, out, n);
    case DataType::kInt16: return NarrowRun<int16_t>(in, out, n);
    default: return NarrowRun<int8_t>(in, out, n);
  }
}

void LookupRun(const uint8_t* table, DataType type, const int32_t* in, int32_t* out, size_t n) {
  const bool is_signed = type != DataType::kUInt8;
  for (size_t i = 0; i < n; ++i) {
    const uint8_t entry = table[static_cast<uint8_t>(in[i])];
    out[i] = is_signed ? static_cast<int8_t>(entry) : entry;
  }
}

#if HWY_ARCH_X86

// Has a chain of steps computed in its order: compilers know that these may come in any other, of
// which they take one whose values are too many for registers.
template <class V>
HWY_INLINE void InThisOrder(V& v) {
  asm("" : "+x"(v.raw));
}

// The shuffles take an index while its top bit is clear. With 16 subtracted from one to the next,
// byte x is taken by those of the blocks x / 16 - 7 ... x / 16 where x >= 128, and 0 ... x / 16
// below: differences of the table's blocks are such that what is taken leaves the right entry.
struct LookupBlocks {
  static constexpr size_t kCount = 16, kBytes = 16;
  HWY_ALIGN uint8_t bytes[kCount * kBytes];

  explicit LookupBlocks(const uint8_t* table) {
    const hn::CappedTag<uint8_t, kBytes> d;
    for (size_t b = 0; b < kCount; ++b) {
      auto block = hn::LoadU(d, table + b * kBytes);
      if (b > 0) block = hn::Xor(block, hn::LoadU(d, table + (b - 1) * kBytes));
      if (b >= kCount / 2) block = hn::Xor(block, hn::Load(d, bytes + (b - kCount / 2) * kBytes));
      hn::Store(block, d, bytes + b * kBytes);
    }
  }

  template <class D, size_t kVectors>
  HWY_INLINE void Run(D d, const uint8_t* in, uint8_t* out) const {
    const hn::RebindToSigned<D> di;
    hn::Vec<D> x[kVectors], y[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      x[v] = hn::LoadU(d, in + v * hn::Lanes(d));
      y[v] = hn::TableLookupBytesOr0(hn::LoadDup128(d, bytes), x[v]);
    }
#pragma GCC unroll 16
    for (size_t b = 1; b < kCount; ++b) {
      const auto block = hn::LoadDup128(d, bytes + b * kBytes);
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        // Past the middle, what is negative has to stay so.
        x[v] = b <= kCount / 2 ? hn::Sub(x[v], hn::Set(d, uint8_t{kBytes}))
                               : hn::BitCast(d, hn::SaturatedSub(hn::BitCast(di, x[v]),
                                                                 hn::Set(di, int8_t{kBytes})));
        InThisOrder(x[v]);
        y[v] = hn::Xor(y[v], hn::TableLookupBytesOr0(block, x[v]));
        InThisOrder(y[v]);
      }
    }
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) hn::StoreU(y[v], d, out + v * hn::Lanes(d));
  }
};

void LookupBytes(const uint8_t* table, const uint8_t* in, uint8_t* out, size_t n) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  if (n >= lanes) {
    const LookupBlocks blocks(table);
    for (; i + 4 * lanes <= n; i += 4 * lanes) blocks.Run<decltype(d), 4>(d, in + i, out + i);
    for (; i + 2 * lanes <= n; i += 2 * lanes) blocks.Run<decltype(d), 2>(d, in + i, out + i);
    for (; i + lanes <= n; i += lanes) blocks.Run<decltype(d), 1>(d, in + i, out + i);
  }
  for (; i < n; ++i) out[i] = table[in[i]];
}

#else

// Sixteen shuffles of sixteen entries each, zero where the index is 16 or more: a byte is in block
// b where (x ^ 16 b) < 16.
void LookupBytes(const uint8_t* table, const uint8_t* in, uint8_t* out, size_t n) {
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(d, in + i);
    auto y = hn::Zero(d);
    for (size_t first = 0; first < 256; first += 16) {
      const auto block = hn::Xor(x, hn::Set(d, static_cast<uint8_t>(first)));
      y = hn::Or(y, hn::TableLookupBytesOr0(hn::LoadDup128(d, table + first), block));
    }
    hn::StoreU(y, d, out + i);
  }
  for (; i < n; ++i) out[i] = table[in[i]];
}

#endif

// One stage on 32-bit values: floats or integers, as the stage takes and gives them.
void StageRun(const TailStage& stage, const void* const* inputs, DataType type,
              const RunPosition& at, const void* in, void* out, size_t n) {
  using Kind = TailStage::Kind;
  const auto* ints = static_cast<const int32_t*>(in);
  auto* ints_out = static_cast<int32_t*>(out);
  const auto* floats = static_cast<const float*>(in);
  auto* floats_out = static_cast<float*>(out);
  const int stride = stage.operand.channel_stride;
  const auto add = [&](auto tag) HWY_ATTR {
    const auto* y = OperandAt<decltype(tag)>(stage.operand, inputs, at);
    QuantizedAddRun(stage.add, y, stride, ints, ints_out, n);
  };
  switch (stage.kind) {
    case Kind::kUnary: return UnaryRun(stage.unary, stage.a, stage.b, floats, floats_out, n);
    case Kind::kBinary:
      return BinaryRun(stage.binary, floats, OperandAt<float>(stage.operand, inputs, at), stride,
                       floats_out, n);
    case Kind::kRequantize: return RequantizeRun(stage.requantize, at.channel, ints, ints_out, n);
    case Kind::kQuantizedAdd:
      if (type == DataType::kUInt8) return add(uint8_t{});
      return type == DataType::kInt16 ? add(int16_t{}) : add(int8_t{});
    case Kind::kLookup: return LookupRun(stage.table.data(), type, ints, ints_out, n);
    case Kind::kDequantize: return DequantizeRun(stage, at.channel, ints, floats_out, n);
    case Kind::kQuantize: return QuantizeRun(stage, floats, ints_out, n);
    case Kind::kRescale: return RescaleRun(stage, at.channel, ints, ints_out, n);
  }
}

bool Is32Bit(DataType type) { return type == DataType::kFloat32 || type == DataType::kInt32; }

// Takes at most kBlock values of one row through all stages. 32-bit results are worked on in place.
void BlockRun(const Tail& tail, const void* const* inputs, const TailTile& tile,
              const RunPosition& at, const void* source, void* destination, size_t n) {
  if (tail.stages.size() == 1 && tail.stages[0].kind == TailStage::Kind::kLookup &&
      IsByte(tile.source_type) && IsByte(tile.destination_type)) {
    return LookupBytes(tail.stages[0].table.data(), static_cast<const uint8_t*>(source),
                       static_cast<uint8_t*>(destination), n);
  }
  HWY_ALIGN int32_t buffer[kBlock];
  void* work = Is32Bit(tile.destination_type) ? destination : buffer;
  const void* in = source;
  if (!Is32Bit(tile.source_type)) {
    Widen(tile.source_type, source, static_cast<int32_t*>(work), n);
    in = work;
  }
  for (const TailStage& stage : tail.stages) {
    StageRun(stage, inputs, tile.destination_type, at, in, work, n);
    in = work;
  }
  if (!Is32Bit(tile.destination_type)) {
    Narrow(tile.destination_type, static_cast<const int32_t*>(in), destination, n);
  } else if (in != destination) {
    std::memcpy(destination, in, n * sizeof(int32_t));
  }
}

// Whether rows that follow each other in memory, `channels` long, are one long row to the stage.
bool RunsOverRows(const TailStage& stage, int64_t channels, bool one_batch,
                  int64_t rows_per_batch) {
  using Kind = TailStage::Kind;
  if (stage.kind == Kind::kRequantize) return stage.requantize.multipliers.size() == 1;
  if (stage.kind == Kind::kDequantize) return stage.scales.size() == 1;
  if (stage.kind == Kind::kRescale) return stage.real_scales.size() == 1;
  if (stage.kind != Kind::kBinary && stage.kind != Kind::kQuantizedAdd) return true;
  const TailOperand& y = stage.operand;
  const bool batches_follow = one_batch || y.batch_stride == rows_per_batch * y.row_stride;
  const bool scalar = y.channel_stride == 0 && y.row_stride == 0;
  return batches_follow && (scalar || (y.channel_stride == 1 && y.row_stride == channels));
}

bool IsOneRow(const Tail& tail, const TailTile& tile) {
  if (tile.source_pitch != tile.channels || tile.destination_pitch != tile.channels) return false;
  const bool one_batch = tile.row % tail.rows_per_batch + tile.rows <= tail.rows_per_batch;
  return std::ranges::all_of(tail.stages, [&](const TailStage& stage) {
    return RunsOverRows(stage, tile.channels, one_batch, tail.rows_per_batch);
  });
}

void ApplyTailVector(const Tail& tail, const void* const* inputs, const TailTile& tile) {
  const int64_t source_size = BitWidth(tile.source_type) / 8;
  const int64_t destination_size = BitWidth(tile.destination_type) / 8;
  int64_t rows = tile.rows, channels = tile.channels;
  if (rows > 1 && IsOneRow(tail, tile)) {
    channels *= rows;
    rows = 1;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const auto* source =
        static_cast<const std::byte*>(tile.source) + r * tile.source_pitch * source_size;
    auto* destination =
        static_cast<std::byte*>(tile.destination) + r * tile.destination_pitch * destination_size;
    const int64_t row = tile.row + r;
    RunPosition at{row / tail.rows_per_batch, row % tail.rows_per_batch, tile.channel};
    for (int64_t c = 0; c < channels; c += kBlock) {
      at.channel = tile.channel + c;
      BlockRun(tail, inputs, tile, at, source + c * source_size, destination + c * destination_size,
               std::min(kBlock, channels - c));
    }
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {

ApplyTailFunction* ApplyTail(Isa isa) {
  constexpr auto kApplyTail = FUSELITE_SIMD_TABLE(ApplyTailVector);
  ApplyTailFunction* function = kApplyTail.For(isa);
  return function != nullptr ? function : &ApplyTailReference;
}

}  // namespace fuselite::kernels
#endif
