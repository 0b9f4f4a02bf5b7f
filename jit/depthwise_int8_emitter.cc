#include "jit/depthwise_int8_emitter.h"

#include <algorithm>
#include <cstddef>

namespace fuselite::jit {

using kernels::WindowAxis;
using Xbyak::Reg64;
using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

namespace {

constexpr int kQuad = 4;  // columns, and vectors of 32-bit lanes for one of bytes

// Where the columns of quad `q` begin, as a filter column of output `output`.
int Shift(const WindowAxis& x, int q, int output) { return kQuad * q - output * x.stride; }

bool Meets(const WindowAxis& x, int shift) { return shift + kQuad > 0 && shift < x.filter; }

class DepthwiseInt8Emitter : public Assembler {
 public:
  explicit DepthwiseInt8Emitter(const DepthwiseInt8Spec& spec)
      : Assembler(spec.isa),
        spec_(spec),
        x_(spec.window.x),
        y_(spec.window.y),
        plan_(PlanColumns(VectorIsa(spec.isa), x_)),
        row_bytes_(spec.pixel_bytes * x_.input) {}

  size_t EmitRow(const Taps& rows, int channels) {
    align(32);
    const size_t entry = getSize();
    channels_ = channels;
    BeginFunction();
    TailEmitter::Prepare(*this, spec_.tail);
    if (isa().avx512 && channels < isa().bytes) {
      mov(rax, (uint64_t{1} << channels) - 1);
      kmovq(k1, rax);
    }
    mov(in_, ptr[args_ + offsetof(DepthwiseInt8Args, in)]);
    mov(out_, ptr[args_ + offsetof(DepthwiseInt8Args, out)]);
    mov(weights_, ptr[args_ + offsetof(DepthwiseInt8Args, weights)]);
    const auto zero =
        static_cast<uint32_t>((spec_.zero_point ^ (spec_.is_signed ? 0x80 : 0)) & 255);
    LoadConst(padding(), zero * 0x01010101u);
    for (const TileRun& run : SplitRow(x_, plan_.outputs)) {
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
  // Accumulators from 0 up: four for each output. At the top: padding, then the interleaved
  // columns, which the tail uses as temporaries; two more are in use while they are made.
  int acc(int output, int i) const { return output * kQuad + i; }
  int padding() const { return isa().registers() - 1; }
  int column(int i) const { return isa().registers() - 2 - i; }

  void EmitTile(const Taps& rows, const std::vector<Taps>& columns) {
    const auto outputs = static_cast<int>(columns.size());
    for (int i = 0; i < kQuad; ++i) {
      vmovups(Vec(acc(0, i)), ptr[weights_ + i * isa().bytes]);
      for (int o = 1; o < outputs; ++o) vmovaps(Vec(acc(o, i)), Vec(acc(0, i)));
    }
    for (int32_t ky = 0; ky < y_.filter; ++ky) {
      const bool inside = rows.first <= ky && ky < rows.last;
      for (int q = 0; q < plan_.quads; ++q) {
        const bool met = Interleave(ky, q, inside, columns);
        for (int o = 0; o < outputs; ++o) MultiplyQuad(ky, q, o, met);
      }
    }
    FinishTile(outputs);
    add(in_, static_cast<uint32_t>(outputs * x_.stride * spec_.pixel_bytes));
    add(out_, static_cast<uint32_t>(outputs * spec_.out_pixel_bytes));
  }

  // Whether column `c` is one that a window reads, and lies inside of the image.
  bool InImage(int c, const std::vector<Taps>& columns) const {
    for (size_t o = 0; o < columns.size(); ++o) {
      const int kx = c - static_cast<int>(o) * x_.stride;
      if (columns[o].first <= kx && kx < columns[o].last) return true;
    }
    return false;
  }

  // Loads the quad's columns and interleaves their bytes into column(0) to column(3). False where
  // they are all padding, whose register then serves as it is.
  bool Interleave(int32_t ky, int q, bool row_inside, const std::vector<Taps>& columns) {
    int source[kQuad];
    bool any = false;
    for (int b = 0; b < kQuad; ++b) {
      const int c = kQuad * q + b;
      source[b] = padding();
      if (!row_inside || !InImage(c, columns)) continue;
      source[b] = column(b);
      any = true;
      const int64_t offset = ky * y_.dilation * row_bytes_ + c * x_.dilation * spec_.pixel_bytes;
      LoadColumn(column(b), static_cast<int>(offset));
    }
    if (!any) return false;
    const Xmm a = Vec(source[0]), b = Vec(source[1]), c = Vec(source[2]), d = Vec(source[3]);
    const Xmm low = Vec(column(4)), high = Vec(column(5));
    vpunpcklbw(low, a, b);
    vpunpckhbw(high, a, b);
    vpunpcklbw(Vec(column(0)), c, d);
    vpunpckhbw(Vec(column(2)), c, d);
    vpunpckhwd(Vec(column(1)), low, Vec(column(0)));
    vpunpcklwd(Vec(column(0)), low, Vec(column(0)));
    vpunpckhwd(Vec(column(3)), high, Vec(column(2)));
    vpunpcklwd(Vec(column(2)), high, Vec(column(2)));
    return true;
  }

  void LoadColumn(int vector, int offset) {
    if (isa().avx512) {
      if (channels_ == 64) {
        vmovups(Zmm(vector), ptr[in_ + offset]);
      } else if (channels_ == 32) {
        vmovups(Ymm(vector), ptr[in_ + offset]);
      } else if (channels_ == 16) {
        vmovups(Xmm(vector), ptr[in_ + offset]);
      } else {
        vmovdqu8(Zmm(vector) | k1 | T_z, ptr[in_ + offset]);
      }
      if (spec_.is_signed) vpxord(Zmm(vector), Zmm(vector), Const(0x80808080u));
    } else {
      vmovups(Ymm(vector), ptr[in_ + offset]);
      if (spec_.is_signed) vpxor(Ymm(vector), Ymm(vector), Const(0x80808080u));
    }
  }

  void MultiplyQuad(int32_t ky, int q, int output, bool interleaved) {
    const int shift = Shift(x_, q, output);
    if (!Meets(x_, shift)) return;
    const auto index =
        std::find(plan_.shifts.begin(), plan_.shifts.end(), shift) - plan_.shifts.begin();
    const auto set = static_cast<int>(1 + ky * static_cast<int>(plan_.shifts.size()) + index);
    for (int i = 0; i < kQuad; ++i) {
      vpdpbusd(Vec(acc(output, i)), Vec(interleaved ? column(i) : padding()),
               ptr[weights_ + (set * kQuad + i) * isa().bytes],
               isa().avx512 ? Xbyak::EvexEncoding : Xbyak::VexEncoding);
    }
  }

  // Requantizes, and packs as the interleaving unpacked: channels are in order again.
  void FinishTile(int outputs) {
    const auto sets = static_cast<int>(1 + y_.filter * plan_.shifts.size());
    TailEmitter tail(*this, spec_.tail,
                     {.slots_base = args_,
                      .slots_offset = 0,
                      .pointer = rax,
                      .temporaries = {column(0), column(1), column(2), column(3)},
                      .channel_data = weights_,
                      .channel_data_offset = sets * kQuad * isa().bytes,
                      .is_signed = spec_.is_signed});
    std::vector<TileValue> values;
    for (int o = 0; o < outputs; ++o) {
      for (int i = 0; i < kQuad; ++i) values.push_back({acc(o, i), o, i, false});
    }
    tail.Emit(values);
    for (int o = 0; o < outputs; ++o) {
      const Xmm r0 = Vec(acc(o, 0)), r1 = Vec(acc(o, 1)), r2 = Vec(acc(o, 2)), r3 = Vec(acc(o, 3));
      vpackssdw(r0, r0, r1);
      vpackssdw(r2, r2, r3);
      spec_.is_signed ? vpacksswb(r0, r0, r2) : vpackuswb(r0, r0, r2);
      const auto to = out_ + static_cast<int>(o * spec_.out_pixel_bytes);
      StoreChannels(to, acc(o, 0));
    }
  }

  // Masked stores of bytes are slow on Zen: layers of whole blocks take a tenth less time without.
  void StoreChannels(const Xbyak::RegExp& to, int vector) {
    if (channels_ == 64) {
      vmovups(ptr[to], Zmm(vector));
    } else if (channels_ == 32) {
      vmovups(ptr[to], Ymm(vector));
    } else if (channels_ == 16) {
      vmovups(ptr[to], Xmm(vector));
    } else {
      vmovdqu8(ptr[to] | k1, Zmm(vector));
    }
  }

  const DepthwiseInt8Spec& spec_;
  const WindowAxis &x_, &y_;
  const ColumnPlan plan_;
  const int64_t row_bytes_;
  int channels_ = 0;  // of the block

  const Reg64 args_ = rdi, in_ = rsi, out_ = rdx, weights_ = r8, tiles_ = rcx;
};

std::string Key(const DepthwiseInt8Spec& spec) {
  std::string key = internal::Join("depthwise i8 ", static_cast<int>(spec.isa), ' ', spec.is_signed,
                                   " z", spec.zero_point, " in", spec.pixel_bytes, " out",
                                   spec.out_pixel_bytes, " c", spec.partial_channels());
  for (const WindowAxis& axis : {spec.window.y, spec.window.x}) {
    key += internal::Join(" w", axis.input, '.', axis.filter, '.', axis.stride, '.', axis.dilation,
                          '.', axis.output, '.', axis.before);
  }
  return key + TailKey(spec.tail);
}

}  // namespace

// The fewest instructions for an output and a filter row: 8 shuffles for each quad, 2 for each
// column (load, offset), 4 multiplications for each quad that an output meets.
ColumnPlan PlanColumns(const VectorIsa& isa, const WindowAxis& x) {
  ColumnPlan best;
  double best_cost = 1e300;
  for (int outputs : {1, 2, 4}) {
    // Beside the accumulators: the padding, four columns, two temporaries.
    const bool fits = outputs * kQuad + 7 <= isa.registers();
    if (outputs > 1 && (!fits || x.dilation != 1 || x.output < outputs)) break;
    ColumnPlan plan{.outputs = outputs, .quads = 0, .shifts = {}};
    const int columns = (outputs - 1) * x.stride + x.filter;
    plan.quads = (columns + kQuad - 1) / kQuad;
    int met = 0;
    for (int q = 0; q < plan.quads; ++q) {
      for (int o = 0; o < outputs; ++o) {
        const int shift = Shift(x, q, o);
        if (!Meets(x, shift)) continue;
        ++met;
        if (std::find(plan.shifts.begin(), plan.shifts.end(), shift) == plan.shifts.end()) {
          plan.shifts.push_back(shift);
        }
      }
    }
    const double cost = (8.0 * plan.quads + 2.0 * columns + 4.0 * met) / outputs;
    if (cost >= best_cost) continue;
    best_cost = cost;
    best = std::move(plan);
  }
  return best;
}

int64_t DepthwiseInt8BlockBytes(const DepthwiseInt8Spec& spec) {
  const auto shifts =
      static_cast<int64_t>(PlanColumns(VectorIsa(spec.isa), spec.window.x).shifts.size());
  const int64_t sets = 1 + spec.window.y.filter * shifts + ChannelDataVectors(spec.tail);
  return sets * kQuad * VectorIsa(spec.isa).bytes;
}

Status CheckDepthwiseInt8(const DepthwiseInt8Spec& spec) {
  const VectorIsa isa(spec.isa);
  const auto& [y, x] = spec.window;
  if (spec.tail.stages.size() != 1) return Unsupported("a tail of several stages has no emitter");
  const int64_t runs = static_cast<int64_t>(SplitRow(x, PlanColumns(isa, x).outputs).size());
  const int64_t size = static_cast<int64_t>(RowPatterns(y).size()) * runs * y.filter *
                       PlanColumns(isa, x).quads * 40;
  if (size > 60000) {
    return Unsupported("windows of ", y.filter, 'x', x.filter, " are too large to be unrolled");
  }
  constexpr int64_t kReach = int64_t{1} << 30;
  const int64_t columns = int64_t{8} * x.stride + int64_t{x.filter + 8} * x.dilation;
  const int64_t extent = (int64_t{y.filter} * y.dilation * x.input + columns) * spec.pixel_bytes;
  if (extent > kReach || spec.out_pixel_bytes * 8 > kReach) {
    return Unsupported("a tile of ", extent, " bytes' extent");
  }
  return Status();
}

Result<SharedCode> EmitDepthwiseInt8(const DepthwiseInt8Spec& spec, const std::string& name) {
  return ProcessCodeCache().GetOrEmit(Key(spec), name, [&]() -> Result<CodeBytes> {
    DepthwiseInt8Emitter emitter(spec);
    std::vector<size_t> entries;
    const int partial = spec.partial_channels() ? spec.partial_channels() : spec.block_channels();
    for (const Taps& rows : RowPatterns(spec.window.y)) {
      entries.push_back(emitter.EmitRow(rows, spec.block_channels()));
      entries.push_back(partial == spec.block_channels() ? entries.back()
                                                         : emitter.EmitRow(rows, partial));
    }
    return emitter.Finish(std::move(entries));
  });
}

}  // namespace fuselite::jit
