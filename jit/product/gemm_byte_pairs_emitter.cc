#include "jit/product/gemm_byte_pairs_emitter.h"

#include <cstddef>
#include <functional>

#include "jit/tail/sum_tail_emitter.h"

namespace fuselite::jit {
namespace {

using Xbyak::Reg64;

// The registers behind the sums and weights. None of them holds a sum when the depth is done.
constexpr int kValues = 12, kMagnitudes = 13, kSecond = 13, kProduct = 14, kOnes = 15;
constexpr int kWidth = 32;  // bytes of a vector
constexpr int kInt = sizeof(int32_t);

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
  Place ValuesAt(int row, const Reg64& group) const {
    return Place(a_).Plus(group) + spec_.a_runs.Offset(row, spec_.a_step);
  }

  void EmitTile() {
    LoadConst(kOnes, 0x00010001u);
    StartFromBias();
    lea(weights_, ptr[Bias(tile_.vectors * spec_.biases())]);
    const Place table = Place(panel_) + BytePairTableAt(spec_, tile_.vectors);
    lea(places_, ptr[table + kBytePairCounts * kInt]);
    EmitGroups(table, 2, [this] { MultiplyJoined(); });
    for (int kind = 0; kind < 1 << tile_.vectors; ++kind) {
      EmitGroups(table + (1 + kind) * kInt, 1, [&] { MultiplyGroup(kind); });
    }
    tail_.Finish(Sums(), weights_);
    add(a_, static_cast<uint32_t>(spec_.a_runs.Offset(tile_.rows, spec_.a_step)));
    add(out_, static_cast<uint32_t>(tile_.rows * spec_.out_step));
  }

  Place Bias(int vector) const { return Place(panel_) + vector * kWidth; }

  void StartFromBias() {
    if (spec_.tail.row_zero_points()) return StartFromZeroPoints();
    for (int v = 0; v < tile_.vectors; ++v) {
      vmovups(Vec(acc(0, v)), ptr[Bias(v)]);
      for (int row = 1; row < tile_.rows; ++row) vmovaps(Vec(acc(row, v)), Vec(acc(0, v)));
    }
  }

  void StartFromZeroPoints() {
    tail_.LoadRows();
    for (int v = 0; v < tile_.vectors; ++v) vmovups(Vec(weight(v)), ptr[Bias(v)]);
    for (int row = 0; row < tile_.rows; ++row) {
      vpbroadcastd(Vec(kValues), tail_.ZeroPoint(row));
      for (int v = 0; v < tile_.vectors; ++v) {
        vpmulld(Vec(acc(row, v)), Vec(weight(v)), Vec(kValues));
        vpaddd(Vec(acc(row, v)), Vec(acc(row, v)), ptr[Bias(tile_.vectors + v)]);
      }
    }
  }

  // Repeats `multiply`, which takes `groups` groups, as often as the int32 at `count` says: it may
  // be 0.
  void EmitGroups(const Place& count, int groups, const std::function<void()>& multiply) {
    Xbyak::Label next, end;
    mov(count_.cvt32(), dword[count]);
    test(count_, count_);
    jz(end, T_NEAR);
    align(16);
    L(next);
    mov(group_.cvt32(), dword[places_]);
    if (groups == 2) mov(second_.cvt32(), dword[places_ + kInt]);
    add(places_, groups * kInt);
    multiply();
    add(weights_, groups * tile_.vectors * kWidth);
    dec(count_);
    jnz(next, T_NEAR);
    L(end);
  }

  auto Weights(int group, int v) {
    return ptr[Place(weights_) + (group * tile_.vectors + v) * kWidth];
  }

  // Five rows leave a register for one vector of weights; each row reads the others from memory.
  void MultiplyJoined() {
    vmovups(Vec(weight(0)), Weights(0, 0));
    for (int row = 0; row < tile_.rows; ++row) {
      LoadUnsigned(kValues, row, group_);
      LoadUnsigned(kSecond, row, second_);
      for (int v = 0; v < tile_.vectors; ++v) {
        v == 0 ? vpmaddubsw(Vec(kProduct), Vec(kValues), Vec(weight(0)))
               : vpmaddubsw(Vec(kProduct), Vec(kValues), Weights(0, v));
        const int product = v + 1 < tile_.vectors ? weight(1) : kSecond;
        vpmaddubsw(Vec(product), Vec(kSecond), Weights(1, v));
        vpaddw(Vec(kProduct), Vec(kProduct), Vec(product));
        AddProduct(acc(row, v));
      }
    }
  }

  // `wide`: bit v is set where vector v is.
  void MultiplyGroup(int wide) {
    for (int v = 0; v < tile_.vectors; ++v) vmovups(Vec(weight(v)), Weights(0, v));
    for (int row = 0; row < tile_.rows; ++row) MultiplyRow(row, wide);
  }

  void MultiplyRow(int row, int wide) {
    const auto is_wide = [&](int v) { return (wide >> v & 1) != 0; };
    if (wide != 0) LoadSigned(row);
    for (int v = 0; v < tile_.vectors; ++v) {
      if (!is_wide(v)) continue;
      vpsignb(Vec(kProduct), Vec(weight(v)), Vec(kValues));
      vpmaddubsw(Vec(kProduct), Vec(kMagnitudes), Vec(kProduct));
      AddProduct(acc(row, v));
    }
    if (wide + 1 == 1 << tile_.vectors) return;
    wide != 0 && !spec_.split_rows ? Flip(kValues) : LoadUnsigned(kValues, row, group_);
    for (int v = 0; v < tile_.vectors; ++v) {
      if (is_wide(v)) continue;
      vpmaddubsw(Vec(kProduct), Vec(kValues), Vec(weight(v)));
      AddProduct(acc(row, v));
    }
  }

  // The signed values and their magnitudes.
  void LoadSigned(int row) {
    if (spec_.split_rows) {
      const int64_t form_bytes = spec_.a_step / 3;
      vpbroadcastd(Vec(kValues), ptr[ValuesAt(row, group_) + form_bytes]);
      vpbroadcastd(Vec(kMagnitudes), ptr[ValuesAt(row, group_) + 2 * form_bytes]);
      return;
    }
    vpbroadcastd(Vec(kValues), ptr[ValuesAt(row, group_)]);
    if (!spec_.flips) Flip(kValues);
    vpabsb(Vec(kMagnitudes), Vec(kValues));
  }

  void LoadUnsigned(int to, int row, const Reg64& group) {
    vpbroadcastd(Vec(to), ptr[ValuesAt(row, group)]);
    if (spec_.flips && !spec_.split_rows) Flip(to);
  }

  // Makes uint8 values int8, or int8 ones uint8.
  void Flip(int values) { vpxor(Vec(values), Vec(values), Const(0x80808080u)); }

  void AddProduct(int sum) {
    vpmaddwd(Vec(kProduct), Vec(kProduct), Vec(kOnes));
    vpaddd(Vec(sum), Vec(sum), Vec(kProduct));
  }

  const GemmS8Spec& spec_;
  Tile tile_;
  const Reg64 args_ = rdi, panel_ = rsi, out_ = rdx, layer_ = rcx;
  const Reg64 a_ = rbp, rows_ = r12, weights_ = r14, pointer_ = r15;
  // How many groups, or twos of them, are left of a sort; where a row has the values of the group
  // at hand, and of the one that it is joined with; where the next groups' places are.
  const Reg64 count_ = r8, group_ = rax, second_ = r9, places_ = rbx;
  SumTailEmitter tail_;
};

}  // namespace

int MaxBytePairRows(int vectors) { return vectors > 2 ? 0 : (kValues - vectors) / vectors; }

int64_t BytePairTableAt(const GemmS8Spec& spec, int vectors) {
  const int64_t groups = DepthGroups(spec) + std::ssize(spec.again);
  return vectors * (groups * spec.weight_bytes() + VectorConstantsBytes(spec));
}

int64_t BytePairTableBytes(int64_t groups) { return (kBytePairCounts + groups) * kInt; }

Result<SharedCode> EmitBytePairs(const GemmS8Spec& spec, std::span<const Tile> tiles,
                                 const std::string& name) {
  return EmitFunctions<BytePairsEmitter>(CodeKey(spec, tiles), name, spec, tiles);
}

}  // namespace fuselite::jit
