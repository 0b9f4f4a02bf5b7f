#include "jit/depthwise_emitter.h"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace fuselite::jit {

using kernels::WindowAxis;
using Xbyak::Reg64;

namespace {

class DepthwiseEmitter : public Assembler {
 public:
  explicit DepthwiseEmitter(const DepthwiseSpec& spec)
      : Assembler(spec.isa),
        spec_(spec),
        x_(spec.window.x),
        y_(spec.window.y),
        row_bytes_(spec.pixel_bytes * spec.window.x.input),
        tail_(*this, spec.tail,
              {.slots_base = args_,
               .slots_offset = offsetof(DepthwiseArgs, operands),
               .pointer = pointer_,
               .temporaries = {Top(0), Top(1), Top(2), Top(3)}}) {}

  size_t EmitRow(const Taps& rows) {
    align(32);
    const size_t entry = getSize();
    BeginFunction();
    if (spec_.partial_lanes != 0) SetPartial(spec_.partial_lanes);
    mov(in_row_, ptr[args_ + offsetof(DepthwiseArgs, in)]);
    mov(out_row_, ptr[args_ + offsetof(DepthwiseArgs, out)]);
    mov(channel_bytes_, ptr[args_ + offsetof(DepthwiseArgs, blocks)]);
    imul(channel_bytes_, channel_bytes_, isa().bytes);
    for (const TileRun& run : SplitRow(x_, DepthwiseTile(spec_))) {
      mov(tiles_, run.count);
      Xbyak::Label next;
      align(16);
      L(next);
      EmitTile(rows, run.columns);
      dec(tiles_);
      jnz(next, T_NEAR);
    }
    EndFunction();
    return entry;
  }

 private:
  int Top(int i) const { return isa().registers() - 1 - i; }

  // All channels of the outputs whose windows have these filter rows and columns.
  void EmitTile(const Taps& rows, const std::vector<Taps>& columns) {
    const auto outputs = static_cast<int>(columns.size());
    mov(in_, in_row_);
    mov(out_, out_row_);
    mov(weights_, ptr[args_ + offsetof(DepthwiseArgs, weights)]);
    mov(blocks_, ptr[args_ + offsetof(DepthwiseArgs, blocks)]);
    Xbyak::Label next, whole_done, done;
    test(blocks_, blocks_);
    jz(whole_done, T_NEAR);
    align(32);
    L(next);
    EmitBlock(rows, columns, false);
    tail_.AdvanceChannels(isa().bytes);
    add(in_, isa().bytes);
    add(out_, isa().bytes);
    add(weights_, (y_.filter * x_.filter + 1) * isa().bytes);
    dec(blocks_);
    jnz(next, T_NEAR);
    L(whole_done);
    if (spec_.partial_lanes != 0) {
      cmp(qword[args_ + offsetof(DepthwiseArgs, partial)], 0);
      je(done, T_NEAR);
      EmitBlock(rows, columns, true);
      L(done);
    }
    tail_.RewindChannels(channel_bytes_);
    tail_.AdvanceRows(outputs);
    add(in_row_, static_cast<uint32_t>(outputs * x_.stride * spec_.pixel_bytes));
    add(out_row_, static_cast<uint32_t>(outputs * spec_.out_pixel_bytes));
  }

  // One vector of channels. Accumulators are registers 0 and up; above them the weights of one
  // filter row where they fit, and the inputs at the top.
  void EmitBlock(const Taps& rows, const std::vector<Taps>& columns, bool partial) {
    const auto outputs = static_cast<int>(columns.size());
    vmovups(Vec(0), ptr[weights_]);
    for (int i = 1; i < outputs; ++i) vmovaps(Vec(i), Vec(0));
    for (int32_t ky = rows.first; ky < rows.last; ++ky) EmitFilterRow(ky, columns, partial);

    std::vector<TileValue> values;
    for (int i = 0; i < outputs; ++i) values.push_back({i, i, 0, partial});
    tail_.Emit(values);
    for (int i = 0; i < outputs; ++i) {
      StoreLanes(out_ + static_cast<int>(i * spec_.out_pixel_bytes), i, partial, Top(0));
    }
  }

  void EmitFilterRow(int32_t ky, const std::vector<Taps>& columns, bool partial) {
    const auto outputs = static_cast<int>(columns.size());
    const auto tap = [&](int32_t kx) {
      return ptr[weights_ + (1 + ky * x_.filter + kx) * isa().bytes];
    };
    const bool weights_fit = outputs + x_.filter + 2 <= isa().registers();
    if (weights_fit) {
      for (int32_t kx = 0; kx < x_.filter; ++kx) {
        const bool used = std::any_of(columns.begin(), columns.end(), [&](const Taps& taps) {
          return taps.first <= kx && kx < taps.last;
        });
        if (used) vmovups(Vec(outputs + kx), tap(kx));
      }
    }
    const int32_t width = (outputs - 1) * x_.stride + (x_.filter - 1) * x_.dilation + 1;
    for (int32_t column = 0; column < width; ++column) {
      const int input = Top(column % 2);
      bool loaded = false;
      for (int i = 0; i < outputs; ++i) {
        const int32_t distance = column - i * x_.stride;
        if (distance < 0 || distance % x_.dilation != 0) continue;
        const int32_t kx = distance / x_.dilation;
        if (kx < columns[i].first || kx >= columns[i].last) continue;
        if (!loaded) {
          const int64_t offset = ky * y_.dilation * row_bytes_ + column * spec_.pixel_bytes;
          LoadLanes(input, in_ + static_cast<int>(offset), partial);
          loaded = true;
        }
        if (weights_fit) {
          vfmadd231ps(Vec(i), Vec(input), Vec(outputs + kx));
        } else {
          vfmadd231ps(Vec(i), Vec(input), tap(kx));
        }
      }
    }
  }

  const DepthwiseSpec& spec_;
  const WindowAxis &x_, &y_;
  const int64_t row_bytes_;

  const Reg64 args_ = rdi, in_row_ = rsi, out_row_ = rdx, tiles_ = rcx;
  const Reg64 in_ = r8, out_ = r9, weights_ = r10, blocks_ = r11;
  const Reg64 channel_bytes_ = r12, pointer_ = r13;
  TailEmitter tail_;
};

std::string Key(const DepthwiseSpec& spec) {
  std::string key =
      internal::Join("depthwise f32 ", static_cast<int>(spec.isa), " in", spec.pixel_bytes, " out",
                     spec.out_pixel_bytes, " partial", spec.partial_lanes);
  for (const WindowAxis& axis : {spec.window.y, spec.window.x}) {
    key += internal::Join(" w", axis.input, '.', axis.filter, '.', axis.stride, '.', axis.dilation,
                          '.', axis.output, '.', axis.before);
  }
  return key + TailKey(spec.tail);
}

}  // namespace

Taps TapsAt(const WindowAxis& axis, int32_t position) {
  const int32_t start = axis.start(position);
  return {axis.first_tap(start), std::max(axis.first_tap(start), axis.last_tap(start))};
}

std::vector<TileRun> SplitRow(const WindowAxis& x, int tile) {
  std::vector<TileRun> runs;
  for (int32_t first = 0; first < x.output; first += tile) {
    std::vector<Taps> columns;
    for (int32_t i = first; i < std::min(x.output, first + tile); ++i) {
      columns.push_back(TapsAt(x, i));
    }
    if (runs.empty() || runs.back().columns != columns) runs.push_back({std::move(columns), 0});
    ++runs.back().count;
  }
  return runs;
}

std::vector<Taps> RowPatterns(const WindowAxis& y) {
  std::vector<Taps> patterns;
  for (int32_t i = 0; i < y.output; ++i) {
    const Taps taps = TapsAt(y, i);
    if (std::find(patterns.begin(), patterns.end(), taps) == patterns.end()) {
      patterns.push_back(taps);
    }
  }
  return patterns;
}

// Up to 8 (AVX2: 8 accumulators, 5 weights, 2 inputs), such that the last tile is full or nearly
// so. Seven divides the image sizes of most models.
int DepthwiseTile(const DepthwiseSpec& spec) {
  const int32_t outputs = spec.window.x.output;
  int best = 1;
  double best_cost = 1e300;
  for (int tile = 1; tile <= 8 && tile <= outputs; ++tile) {
    const int tiles = (outputs + tile - 1) / tile;
    // Loads of a tile: inputs that neighbours share, and the weights.
    const auto& x = spec.window.x;
    const double loads = (tile - 1) * std::min(x.stride, x.filter) + 2 * x.filter;
    const double cost =
        tiles * std::max<double>({1.0 * tile * x.filter, loads + 2, 7.0 * x.filter});
    if (cost < best_cost * 0.999) {
      best_cost = cost;
      best = tile;
    }
  }
  return best;
}

Status CheckDepthwise(const DepthwiseSpec& spec) {
  const auto& [y, x] = spec.window;
  if (x.filter > 16) return Unsupported("a filter ", x.filter, " wide has no emitter");
  const int64_t runs = static_cast<int64_t>(SplitRow(x, DepthwiseTile(spec)).size());
  const int64_t multiplies =
      static_cast<int64_t>(RowPatterns(y).size()) * runs * 2 * 8 * spec.window.taps();
  if (multiplies > 60000) {
    return Unsupported("windows of ", y.filter, 'x', x.filter, " are too large to be unrolled");
  }
  constexpr int64_t kReach = int64_t{1} << 30;
  const int64_t columns = int64_t{16} * x.stride + int64_t{x.filter} * x.dilation;
  const int64_t extent = (int64_t{y.filter} * y.dilation * x.input + columns) * spec.pixel_bytes;
  if (extent > kReach || spec.out_pixel_bytes * 8 > kReach) {
    return Unsupported("a tile of ", extent, " bytes' extent");
  }
  return Status();
}

Result<SharedCode> EmitDepthwise(const DepthwiseSpec& spec, const std::string& name) {
  return ProcessCodeCache().GetOrEmit(Key(spec), name, [&]() -> Result<CodeBytes> {
    DepthwiseEmitter emitter(spec);
    std::vector<size_t> entries;
    for (const Taps& rows : RowPatterns(spec.window.y)) entries.push_back(emitter.EmitRow(rows));
    return emitter.Finish(std::move(entries));
  });
}

}  // namespace fuselite::jit
