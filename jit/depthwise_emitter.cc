#include "jit/depthwise_emitter.h"

#include <algorithm>
#include <cstddef>

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
    WalkRow(*this, x_, DepthwiseTile(spec_), tiles_,
            [&](const RowTile& tile) { EmitTile(rows, tile); });
    EndFunction();
    return entry;
  }

 private:
  int Top(int i) const { return isa().registers() - 1 - i; }

  // All channels of the outputs whose windows have these filter rows and columns.
  void EmitTile(const Taps& rows, const RowTile& tile) {
    const auto outputs = static_cast<int>(tile.size());
    mov(in_, in_row_);
    mov(out_, out_row_);
    mov(weights_, ptr[args_ + offsetof(DepthwiseArgs, weights)]);
    mov(blocks_, ptr[args_ + offsetof(DepthwiseArgs, blocks)]);
    Xbyak::Label next, whole_done, done;
    test(blocks_, blocks_);
    jz(whole_done, T_NEAR);
    align(32);
    L(next);
    EmitBlock(rows, tile, false);
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
      EmitBlock(rows, tile, true);
      L(done);
    }
    tail_.RewindChannels(channel_bytes_);
    tail_.AdvanceRows(outputs);
    add(in_row_, static_cast<uint32_t>(outputs * x_.stride * spec_.pixel_bytes));
    add(out_row_, static_cast<uint32_t>(outputs * spec_.out_pixel_bytes));
  }

  // One vector of channels. Accumulators are registers 0 and up; above them the weights of one
  // filter row where they fit, and the inputs at the top.
  void EmitBlock(const Taps& rows, const RowTile& tile, bool partial) {
    const auto outputs = static_cast<int>(tile.size());
    vmovups(Vec(0), ptr[weights_]);
    for (int i = 1; i < outputs; ++i) vmovaps(Vec(i), Vec(0));
    for (int32_t ky = rows.first; ky < rows.last; ++ky) EmitFilterRow(ky, tile, partial);

    std::vector<TileValue> values;
    for (int i = 0; i < outputs; ++i) values.push_back({i, i, 0, partial});
    tail_.Emit(values);
    for (int i = 0; i < outputs; ++i) {
      StoreLanes(out_ + static_cast<int>(i * spec_.out_pixel_bytes), i, partial, Top(0));
    }
  }

  void EmitFilterRow(int32_t ky, const RowTile& tile, bool partial) {
    const auto outputs = static_cast<int>(tile.size());
    const auto weights = [&](int32_t kx) {
      return ptr[weights_ + (1 + ky * x_.filter + kx) * isa().bytes];
    };
    const bool weights_fit = outputs + x_.filter + 2 <= isa().registers();
    for (int32_t kx = 0; weights_fit && kx < x_.filter; ++kx) {
      const bool used = std::ranges::any_of(tile, [&](const Taps& taps) { return taps.Has(kx); });
      if (used) vmovups(Vec(outputs + kx), weights(kx));
    }
    for (const TileColumn& column : ColumnsUnder(x_, tile)) {
      if (!column.inside) continue;
      const int input = Top(column.at % 2);
      const int64_t offset = ky * y_.dilation * row_bytes_ + column.at * spec_.pixel_bytes;
      LoadLanes(input, in_ + static_cast<int>(offset), partial);
      for (const auto [output, kx] : column.uses) {
        if (weights_fit) {
          vfmadd231ps(Vec(output), Vec(input), Vec(outputs + kx));
        } else {
          vfmadd231ps(Vec(output), Vec(input), weights(kx));
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

}  // namespace

std::string CodeKey(const DepthwiseSpec& spec) {
  return internal::Join("depthwise f32 ", static_cast<int>(spec.isa), " in", spec.pixel_bytes,
                        " out", spec.out_pixel_bytes, " partial", spec.partial_lanes) +
         WindowKey(spec.window) + TailKey(spec.tail);
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
  const WindowAxis& x = spec.window.x;
  return ChooseTile(x, 8, [&](int outputs) {
    // Inputs that neighbours share, and the weights.
    const double loads = (outputs - 1) * std::min(x.stride, x.filter) + 2 * x.filter;
    return std::max<double>({1.0 * outputs * x.filter, loads + 2, 7.0 * x.filter});
  });
}

Status CheckDepthwise(const DepthwiseSpec& spec) {
  const auto& [y, x] = spec.window;
  const size_t tiles = RowPatterns(y).size() * SplitRow(x, DepthwiseTile(spec)).size();
  return CheckRow(spec.window,
                  {.multiplies = static_cast<int64_t>(tiles) * 2 * 8 * spec.window.taps(),
                   .most_multiplies = 60000,
                   .above = int64_t{y.filter} * y.dilation * x.input * spec.pixel_bytes,
                   .pixel_bytes = spec.pixel_bytes,
                   .out_pixel_bytes = spec.out_pixel_bytes});
}

Result<SharedCode> EmitDepthwise(const DepthwiseSpec& spec, const std::string& name) {
  return ProcessCodeCache().GetOrEmit(CodeKey(spec), name, [&]() -> Result<CodeBytes> {
    DepthwiseEmitter emitter(spec);
    std::vector<size_t> entries;
    for (const Taps& rows : RowPatterns(spec.window.y)) entries.push_back(emitter.EmitRow(rows));
    return emitter.Finish(std::move(entries));
  });
}

}  // namespace fuselite::jit
