#include "jit/product/gemm_byte_pairs_emitter.h"

#include <cstddef>

#include "jit/tail/sum_tail_emitter.h"

namespace fuselite::jit {
namespace {

using Xbyak::Reg64;

// The registers behind the sums and weights. None of them holds a sum when the depth is done.
constexpr int kValues = 12, kMagnitudes = 13, kProduct = 14, kOnes = 15;
constexpr int kWidth = 32;  // bytes of a vector
constexpr int kInt = sizeof(int32_t);

// The forms of a row's values: uint8; int8, 128 less; the magnitudes of these.
enum Form { kUnsigned, kSigned, kMagnitude };
constexpr uint32_t kSigns = 0x80808080u;  // what makes either of the first two of the other

class BytePairsEmitter : public Assembler {
 public:
  explicit BytePairsEmitter(const GemmS8Spec& spec)
      : Assembler(spec.isa),
        spec_(spec),
        tail_(*this, spec.tail,
              {.args = args_,
               .args_at = offsetof(GemmS8Args, tail),
               .out = out_,
               .out_step = spec.out_step,
               .layer = layer_,
               .rows = rows_,
               .pointer = pointer_,
               .temporaries = {kValues, kMagnitudes, kProduct, kOnes}}) {}

  size_t EmitFunction(const Tile& tile) {
    tile_ = tile;
    const size_t entry = BeginFunction();
    tail_.Prepare(Sums());
    mov(panel_, qword[args_ + offsetof(GemmS8Args, panel)]);
    mov(out_, qword[args_ + offsetof(GemmS8Args, out)]);
    mov(a_, qword[args_ + offsetof(GemmS8Args, a)]);
    CountDown(qword[args_ + offsetof(GemmS8Args, tiles)], [this] { EmitTile(); });
    EndFunction();
    return entry;
  }

 private:
  int acc(int row, int v) const { return row * tile_.vectors + v; }
  int weight(int v) const { return kValues - 1 - v; }
  SumTile Sums() const {
    return {.rows = tile_.rows,
            .vectors = tile_.vectors,
            .width = kWidth,
            .channels = (tile_.vectors - 1) * isa().lanes() + tile_.last_lanes,
            .reg = [this](int row, int v) { return acc(row, v); }};
  }
  Place ValuesAt(int row) const {
    return Place(a_).Plus(group_) + spec_.a_runs.Offset(row, spec_.a_step);
  }

  void EmitTile() {
    LoadConst(kOnes, 0x00010001u);
    for (int v = 0; v < tile_.vectors; ++v) {
      vmovups(Vec(acc(0, v)), ptr[Place(panel_) + v * kWidth]);
      for (int row = 1; row < tile_.rows; ++row) vmovaps(Vec(acc(row, v)), Vec(acc(0, v)));
    }
    lea(weights_, ptr[Place(panel_) + tile_.vectors * kWidth]);
    const int kinds = 1 << tile_.vectors;
    const int64_t table = BytePairTableAt(spec_, tile_.vectors);
    lea(places_, ptr[Place(panel_) + (table + kinds * kInt)]);
    for (int kind = 0; kind < kinds; ++kind) {
      mov(count_.cvt32(), dword[Place(panel_) + (table + kind * kInt)]);
      EmitGroups(kind);
    }
    tail_.Finish(Sums(), weights_);
    add(a_, static_cast<uint32_t>(spec_.a_runs.Offset(tile_.rows, spec_.a_step)));
    add(out_, static_cast<uint32_t>(tile_.rows * spec_.out_step));
  }

  // As many as count_ tells, which may be none. `wide`: bit v is set where vector v is.
  void EmitGroups(int wide) {
    Xbyak::Label next, end;
    test(count_, count_);
    jz(end, T_NEAR);
    align(16);
    L(next);
    mov(group_.cvt32(), dword[places_]);
    add(places_, kInt);
    for (int v = 0; v < tile_.vectors; ++v) {
      vmovups(Vec(weight(v)), ptr[Place(weights_) + v * kWidth]);
    }
    for (int row = 0; row < tile_.rows; ++row) Multiply(row, wide);
    add(weights_, tile_.vectors * kWidth);
    dec(count_);
    jnz(next, T_NEAR);
    L(end);
  }

  void Multiply(int row, int wide) {
    const auto is_wide = [&](int v) { return (wide >> v & 1) != 0; };
    if (wide != 0) LoadSigned(row);
    for (int v = 0; v < tile_.vectors; ++v) {
      if (!is_wide(v)) continue;
      vpsignb(Vec(kProduct), Vec(weight(v)), Vec(kValues));
      vpmaddubsw(Vec(kProduct), Vec(kMagnitudes), Vec(kProduct));
      AddProduct(acc(row, v));
    }
    if (wide + 1 != 1 << tile_.vectors) LoadUnsigned(row, wide != 0);
    for (int v = 0; v < tile_.vectors; ++v) {
      if (is_wide(v)) continue;
      vpmaddubsw(Vec(kProduct), Vec(kValues), Vec(weight(v)));
      AddProduct(acc(row, v));
    }
  }

  void LoadForm(int to, int row, Form form) {
    vpbroadcastd(Vec(to), ptr[ValuesAt(row) + form * (spec_.a_step / 3)]);
  }

  // The signed values and their magnitudes.
  void LoadSigned(int row) {
    if (spec_.split_rows) {
      LoadForm(kValues, row, kSigned);
      LoadForm(kMagnitudes, row, kMagnitude);
      return;
    }
    vpbroadcastd(Vec(kValues), ptr[ValuesAt(row)]);
    if (!spec_.flips) vpxor(Vec(kValues), Vec(kValues), Const(kSigns));
    vpabsb(Vec(kMagnitudes), Vec(kValues));
  }

  // `are_signed`: LoadSigned() brought the same ones.
  void LoadUnsigned(int row, bool are_signed) {
    if (spec_.split_rows) return LoadForm(kValues, row, kUnsigned);
    if (!are_signed) vpbroadcastd(Vec(kValues), ptr[ValuesAt(row)]);
    if (are_signed || spec_.flips) vpxor(Vec(kValues), Vec(kValues), Const(kSigns));
  }

  void AddProduct(int sum) {
    vpmaddwd(Vec(kProduct), Vec(kProduct), Vec(kOnes));
    vpaddd(Vec(sum), Vec(sum), Vec(kProduct));
  }

  const GemmS8Spec& spec_;
  Tile tile_;
  const Reg64 args_ = rdi, panel_ = rsi, out_ = rdx, layer_ = rcx;
  const Reg64 a_ = rbp, rows_ = r12, weights_ = r14, pointer_ = r15;
  // Of the groups: how many are left of a kind; the next one's place, and those behind it.
  const Reg64 count_ = r8, group_ = rax, places_ = rbx;
  SumTailEmitter tail_;
};

}  // namespace

int MaxBytePairRows(int vectors) { return vectors > 2 ? 0 : (kValues - vectors) / vectors; }

int64_t BytePairTableAt(const GemmS8Spec& spec, int vectors) {
  const int64_t groups = DepthGroups(spec) + std::ssize(spec.again);
  return vectors * (groups * spec.weight_bytes() + VectorConstantsBytes(spec));
}

Result<SharedCode> EmitBytePairs(const GemmS8Spec& spec, std::span<const Tile> tiles,
                                 const std::string& name) {
  return EmitFunctions<BytePairsEmitter>(CodeKey(spec, tiles), name, spec, tiles);
}

}  // namespace fuselite::jit
