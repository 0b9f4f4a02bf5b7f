#include "jit/depthwise/depthwise_emitter.h"

#include <algorithm>
#include <cstddef>

namespace fuselite::jit {

using kernels::WindowAxis;
using Xbyak::Reg64;

namespace {

const Xbyak::Opmask kRead(3);

class DepthwiseEmitter : public Assembler {
 public:
  explicit DepthwiseEmitter(const DepthwiseSpec& spec)
      : Assembler(spec.isa),
        spec_(spec),
        x_(spec.window.x),
        y_(spec.window.y),
        row_bytes_(spec.pixel_bytes * spec.window.x.input),
        out_row_bytes_(spec.out_pixel_bytes * spec.window.x.output),
        tail_(*this, spec.tail,
              {.slots_base = args_,
               .slots_offset = offsetof(DepthwiseArgs, operands),
               .pointer = pointer_,
               .temporaries = {Top(0), Top(1), Top(2), Top(3)}}) {}

  size_t EmitFunction(const RowTile& rows) {
    const size_t entry = BeginFunction();
    if (spec_.partial_lanes != 0) SetPartial(spec_.partial_lanes);
    mov(in_row_, ptr[args_ + offsetof(DepthwiseArgs, in)]);
    mov(out_row_, ptr[args_ + offsetof(DepthwiseArgs, out)]);
    mov(channel_bytes_, ptr[args_ + offsetof(DepthwiseArgs, blocks)]);
    imul(channel_bytes_, channel_bytes_, isa().bytes);
    WalkRow(*this, x_, spec_.tile.columns, tiles_,
            [&](const RowTile& columns) { EmitTile(rows, columns); });
    EndFunction();
    return entry;
  }

 private:
  int Top(int i) const { return isa().registers() - 1 - i; }
  bool gathers() const { return spec_.gathered > 0; }
  // From the channels of a vector to the next ones.
  int VectorBytes(bool bf16) const { return bf16 ? isa().bytes / 2 : isa().bytes; }
  int indices() const { return Top(2); }
  int read_lanes() const { return Top(3); }  // AVX2; kRead on AVX-512

  // All channels of the outputs whose windows have these filter rows and columns.
  void EmitTile(const RowTile& rows, const RowTile& columns) {
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
    if (!gathers()) add(in_, VectorBytes(spec_.bf16_in));
    add(out_, VectorBytes(spec_.bf16_out));
    add(weights_, static_cast<uint32_t>(spec_.block_bytes()));
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

  // One vector of channels. Accumulators are registers 0 and up, row by row; above them the weights
  // that the row of the image at hand is multiplied with, where they fit, and at the top the inputs
  // and what gathers them.
  void EmitBlock(const RowTile& rows, const RowTile& columns, bool partial) {
    outputs_ = static_cast<int>(columns.size());
    const int sums = static_cast<int>(rows.size()) * outputs_;
    vmovups(Vec(0, partial), ptr[weights_]);
    for (int i = 1; i < sums; ++i) vmovaps(Vec(i, partial), Vec(0, partial));
    if (gathers()) PrepareGather();
    const std::vector<TileColumn> inside = ColumnsInside(x_, columns);
    for (const TileColumn& image_row : ColumnsInside(y_, rows)) {
      for (int i = 0; i < spec_.inputs(); ++i) EmitImageRow(image_row, i, sums, inside, partial);
    }

    std::vector<TileValue> values;
    for (int i = 0; i < sums; ++i) {
      values.push_back({i, i / outputs_ * x_.output + i % outputs_, 0, partial});
    }
    tail_.Emit(values);
    for (int i = 0; i < sums; ++i) {
      const int64_t at = i / outputs_ * out_row_bytes_ + i % outputs_ * spec_.out_pixel_bytes;
      StoreFloats(Place(out_) + at, i, partial, spec_.bf16_out, Top(0));
    }
  }

  void PrepareGather() {
    mov(block_in_, ptr[weights_ + 3 * isa().bytes]);
    add(block_in_, in_);
    vmovups(Vec(indices()), ptr[weights_ + isa().bytes]);
    vmovups(Vec(read_lanes()), ptr[weights_ + 2 * isa().bytes]);
    if (isa().avx512) vpmovd2m(kRead, Vec(read_lanes()));
  }

  // Input `i` of each lane, of the pixel that is `offset` bytes further.
  void LoadInput(int to, int i, int64_t offset, bool partial) {
    if (!gathers()) return LoadFloats(to, Place(in_) + offset, partial, spec_.bf16_in);
    const auto from = ptr[block_in_ + static_cast<int>(offset + 4 * i)];
    if (isa().avx512) {
      vmovups(Vec(to) | kRead | T_z, from);
      vpermps(Xbyak::Zmm(to), Xbyak::Zmm(indices()), Vec(to));
    } else {
      vmaskmovps(Vec(to), Vec(read_lanes()), from);
      vpermps(Half(to), Half(indices()), Vec(to));
    }
  }

  // Input `i` of a row of the image goes into each row of outputs that it is under, with another
  // row of the filter.
  void EmitImageRow(const TileColumn& image_row, int i, int sums,
                    const std::vector<TileColumn>& columns, bool partial) {
    const auto weights = [&](int32_t ky, int32_t kx) {
      const int at = (ky * x_.filter + kx) * spec_.inputs() + i;
      return ptr[Place(weights_) + (spec_.header_bytes() + at * isa().bytes)];
    };
    const auto filter_rows = static_cast<int>(image_row.uses.size());
    const bool weights_fit =
        sums + filter_rows * x_.filter + 2 + (gathers() ? 2 : 0) <= isa().registers();
    const auto weight = [&](int use, int32_t kx) {
      return Vec(sums + use * x_.filter + kx, partial);
    };
    for (int32_t kx = 0; weights_fit && kx < x_.filter; ++kx) {
      const bool used = std::ranges::any_of(columns, [&](const TileColumn& column) {
        return std::ranges::find(column.uses, kx, &TileColumn::Use::tap) != column.uses.end();
      });
      for (int use = 0; used && use < filter_rows; ++use) {
        vmovups(weight(use, kx), weights(image_row.uses[use].tap, kx));
      }
    }
    for (const TileColumn& column : columns) {
      const int input = Top(column.at % 2);
      const int64_t offset = image_row.at * row_bytes_ + column.at * spec_.pixel_bytes;
      LoadInput(input, i, offset, partial);
      for (int use = 0; use < filter_rows; ++use) {
        const auto [row, ky] = image_row.uses[use];
        for (const auto [output, kx] : column.uses) {
          const Xbyak::Xmm sum = Vec(row * outputs_ + output, partial);
          if (weights_fit) {
            vfmadd231ps(sum, Vec(input, partial), weight(use, kx));
          } else {
            vfmadd231ps(sum, Vec(input, partial), weights(ky, kx));
          }
        }
      }
    }
  }

  const DepthwiseSpec& spec_;
  const WindowAxis &x_, &y_;
  const int64_t row_bytes_, out_row_bytes_;
  int outputs_ = 0;  // of a row of the tile at hand

  const Reg64 args_ = rdi, in_row_ = rsi, out_row_ = rdx, tiles_ = rcx;
  const Reg64 in_ = r8, out_ = r9, weights_ = r10, blocks_ = r11;
  const Reg64 channel_bytes_ = r12, pointer_ = r13, block_in_ = r14;
  TailEmitter tail_;
};

}  // namespace

std::string CodeKey(const DepthwiseSpec& spec) {
  return internal::Join("depthwise f32 ", spec.isa.bits(), " in", spec.pixel_bytes, " out",
                        spec.out_pixel_bytes, spec.bf16_in ? " bf16 in" : "",
                        spec.bf16_out ? " bf16 out" : "", " partial", spec.partial_lanes,
                        " gathered", int{spec.gathered}, " tile", spec.tile.rows, 'x',
                        spec.tile.columns) +
         WindowKey(spec.window) + TailKey(spec.tail);
}

RowTile RowsAt(const DepthwiseSpec& spec, int32_t row) {
  const WindowAxis& y = spec.window.y;
  RowTile rows;
  for (int32_t i = row; i < std::min(y.output, row + spec.tile.rows); ++i) {
    rows.push_back(TapsAt(y, i));
  }
  return rows;
}

std::vector<RowTile> RowPatterns(const DepthwiseSpec& spec) {
  std::vector<RowTile> patterns;
  for (int32_t row = 0; row < spec.window.y.output; row += spec.tile.rows) {
    RowTile rows = RowsAt(spec, row);
    if (std::ranges::find(patterns, rows) == patterns.end()) patterns.push_back(std::move(rows));
  }
  return patterns;
}

// Two rows where they share most of the image's, and the weights of two rows of the filter leave
// accumulators for four columns (AVX2: 3x3, 2 x 4 sums, 6 weights, 2 inputs; AVX-512: up to 7x7).
// Up to 8 columns, such that the last tile is full or nearly so.
DepthwiseTile ChooseDepthwiseTile(const kernels::Window& window, Isa isa, int rows, bool gathers) {
  const WindowAxis &x = window.x, &y = window.y;
  const int inputs = gathers ? 4 : 2;  // registers
  const int two_rows_columns = (VectorIsa(isa).registers() - inputs - 2 * x.filter) / 2;
  const bool share = y.stride == 1 && y.dilation == 1 && y.filter > 1 && y.output > 1;
  DepthwiseTile tile;
  if (rows > 1 && share && two_rows_columns >= 4) tile.rows = 2;
  // AVX2 has 8 accumulators beside 5 weights and 2 inputs. Seven divides the image sizes of most
  // models.
  const int most = tile.rows == 1 ? 8 : std::min(8, two_rows_columns);
  tile.columns = ChooseTile(x, most, [&](int outputs) {
    // Inputs that neighbours share, and the weights.
    const double loads = (outputs - 1) * std::min(x.stride, x.filter) + (1 + tile.rows) * x.filter;
    return std::max<double>({1.0 * tile.rows * outputs * x.filter, loads + 2, 7.0 * x.filter});
  });
  return tile;
}

Status CheckDepthwise(const DepthwiseSpec& spec) {
  const auto& [y, x] = spec.window;
  const size_t tiles = RowPatterns(spec).size() * SplitRow(x, spec.tile.columns).size();
  return CheckRow(
      spec.window,
      {.multiplies = static_cast<int64_t>(tiles) * 2 * spec.tile.rows * 8 * spec.window.taps() *
                     spec.inputs(),
       .most_multiplies = 60000,
       .above = int64_t{y.filter + spec.tile.rows - 1} * y.dilation * x.input * spec.pixel_bytes,
       .pixel_bytes = spec.pixel_bytes,
       .out_pixel_bytes =
           spec.out_pixel_bytes + (spec.tile.rows - 1) * x.output * spec.out_pixel_bytes});
}

Result<SharedCode> EmitDepthwise(const DepthwiseSpec& spec, const std::string& name) {
  return EmitFunctions<DepthwiseEmitter>(CodeKey(spec), name, spec, RowPatterns(spec));
}

}  // namespace fuselite::jit
