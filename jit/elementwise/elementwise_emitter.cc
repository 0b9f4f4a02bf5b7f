#include "jit/elementwise/elementwise_emitter.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "jit/tail/tail_emitter.h"

namespace fuselite::jit {

using kernels::ChainRowsArgs;
using Xbyak::Reg64;

namespace {

// Vectors that go through the stages together: enough that the loop's own instructions are few
// beside theirs.
constexpr int kBlock = 4;

class ElementwiseEmitter : public Assembler {
 public:
  explicit ElementwiseEmitter(const ElementwiseSpec& spec)
      : Assembler(spec.isa), spec_(spec), tail_constants_(TailConstants()) {}

  size_t EmitFunction(int64_t length) {
    const size_t entry = BeginFunction();
    KeepConstants(tail_constants_, kBlock);
    const auto last_lanes = static_cast<int>(length % isa().lanes());
    const int64_t vectors = length / isa().lanes() + (last_lanes != 0);
    SetPartial(last_lanes != 0 ? last_lanes : isa().lanes());
    mov(in_, ptr[args_ + offsetof(ChainRowsArgs, in)]);
    mov(out_, ptr[args_ + offsetof(ChainRowsArgs, out)]);
    mov(rows_, ptr[args_ + offsetof(ChainRowsArgs, rows)]);
    if (const auto together = static_cast<int>(kBlock / vectors); together > 1) {
      EmitRowLoop(together, vectors);
    }
    EmitRowLoop(1, vectors);
    EndFunction();
    return entry;
  }

 private:
  // What the tail reads, as many as there are registers between a block's vectors and the
  // temporaries.
  std::vector<uint32_t> TailConstants() const {
    Assembler probe(isa().features);
    const TileValue value{};
    TailOn(probe, false).Emit({&value, 1});
    std::vector<uint32_t> read = probe.ConstantsRead();
    read.resize(std::min(read.size(), static_cast<size_t>(Top(kTemporaries - 1) - kBlock)));
    return read;
  }

  // As long as there are `rows` rows.
  void EmitRowLoop(int rows, int64_t vectors) {
    Xbyak::Label next, done;
    sub(rows_, rows);
    jl(done, T_NEAR);
    align(32);
    L(next);
    EmitRow(rows, vectors);
    Tail(false).AdvanceRows(rows);
    add(in_, static_cast<uint32_t>(rows * spec_.rows.in_step));
    add(out_, static_cast<uint32_t>(rows * spec_.rows.out_step));
    sub(rows_, rows);
    jge(next, T_NEAR);
    L(done);
    add(rows_, rows);
  }

  // All channels of `rows` rows, which are one where there is more than a block.
  void EmitRow(int rows, int64_t vectors) {
    const int64_t blocks = vectors > 2 * kBlock ? (vectors - 1) / kBlock : 0;
    const bool moves = blocks > 0;
    if (moves) {
      xor_(channel_.cvt32(), channel_.cvt32());
      Xbyak::Label next;
      align(32);
      L(next);
      EmitBlock(1, 0, kBlock, false, true);
      add(channel_, kBlock * isa().lanes());
      cmp(channel_, static_cast<uint32_t>(blocks * kBlock * isa().lanes()));
      jb(next, T_NEAR);
    }
    const auto rest = static_cast<int>(vectors - blocks * kBlock);
    for (int first = 0; first < rest; first += kBlock) {
      const int count = std::min(kBlock, rest - first);
      EmitBlock(rows, first, count, first + count == rest, moves);
    }
  }

  // Vectors [first, first + count) of each row, from channel_ on where it `moves`.
  void EmitBlock(int rows, int first, int count, bool ends, bool moves) {
    std::vector<TileValue> values;
    for (int row = 0; row < rows; ++row) {
      for (int v = 0; v < count; ++v) {
        const auto reg = static_cast<int>(values.size());
        values.push_back({reg, row, first + v, ends && v == count - 1});
      }
    }
    const auto address = [&](const Reg64& base, const TileValue& value, int64_t step, bool bf16) {
      const int bytes = bf16 ? 2 : 4;
      const Place at = Place(base) + (value.row * step + value.vector * isa().lanes() * bytes);
      return moves ? at.Plus(channel_, bytes) : at;
    };
    const kernels::ChainRowsSpec& s = spec_.rows;
    for (const TileValue& value : values) {
      const Place from = address(in_, value, s.in_step, s.bf16_in);
      LoadFloats(value.reg, from, value.partial, s.bf16_in);
    }
    Tail(moves).Emit(values);
    for (const TileValue& value : values) {
      const Place to = address(out_, value, s.out_step, s.bf16_out);
      StoreFloats(to, value.reg, value.partial, s.bf16_out, Top(0));
    }
  }

  TailEmitter Tail(bool moves) { return TailOn(*this, moves); }
  TailEmitter TailOn(Assembler& assembler, bool moves) const {
    TailRegisters registers{.slots_base = args_,
                            .slots_offset = offsetof(ChainRowsArgs, operands),
                            .pointer = pointer_,
                            .temporaries = {Top(0), Top(1), Top(2), Top(3)}};
    if (moves) registers.channel = channel_;
    return TailEmitter(assembler, spec_.rows.tail, registers, FiniteClamp::kEmit);
  }
  static constexpr int kTemporaries = 4;
  int Top(int i) const { return isa().registers() - 1 - i; }

  const ElementwiseSpec& spec_;
  const Reg64 args_ = rdi, in_ = rsi, out_ = rdx, rows_ = rcx;
  const Reg64 channel_ = r8, pointer_ = r9;
  const std::vector<uint32_t> tail_constants_;  // behind the registers, which it reads
};

}  // namespace

std::string CodeKey(const ElementwiseSpec& spec, std::span<const int64_t> lengths) {
  std::string key = internal::Join("elementwise f32 ", spec.isa.bits(), " in", spec.rows.in_step,
                                   " out", spec.rows.out_step, spec.rows.bf16_in ? " bf16 in" : "",
                                   spec.rows.bf16_out ? " bf16 out" : "", " of");
  for (const int64_t length : lengths) key += internal::Join(' ', length);
  return key + TailKey(spec.rows.tail);
}

Status CheckElementwise(const ElementwiseSpec& spec) {
  constexpr int64_t kReach = int64_t{1} << 30;
  const int64_t furthest = std::max(spec.rows.in_step, spec.rows.out_step) * kBlock;
  if (furthest > kReach)
    return Unsupported("does not take rows ", spec.rows.in_step, " bytes apart");
  return Status();
}

Result<SharedCode> EmitElementwise(const ElementwiseSpec& spec, std::span<const int64_t> lengths,
                                   const std::string& name) {
  return EmitFunctions<ElementwiseEmitter>(CodeKey(spec, lengths), name, spec, lengths);
}

}  // namespace fuselite::jit
