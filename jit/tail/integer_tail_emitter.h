// Requantization in registers, and the store of its bytes: the integer counterpart of the tail.
//
// Vectors of sums come in groups of 4, 2 or 1, whose lanes hold the channels such that packing,
// which works in each 16 bytes apart, gives them in order (ChannelOfLane).
#pragma once

#include <array>
#include <map>
#include <span>
#include <vector>

#include "jit/code/assembler.h"
#include "jit/tail/requantization.h"

namespace fuselite::jit {

// The channel, relative to its group's first, in lane `lane` of vector `v` of a group of `group`.
inline int ChannelOfLane(int group, int v, int lane) {
  return lane / 4 * 4 * group + v * 4 + lane % 4;
}
// Vectors of a group, times its rows that are stored at once.
inline constexpr int kMostTogether = 4;
// The size of the next group where `vectors` are left.
inline int GroupSize(int vectors) { return vectors >= 4 ? 4 : vectors >= 2 ? 2 : 1; }
// The size of the next group where the last of the vectors may be narrower and then is alone.
inline int GroupSize(int vectors, bool last_alone) {
  return vectors == 1 ? 1 : GroupSize(vectors - (last_alone ? 1 : 0));
}
// So many rows of a group fill a vector with bytes: they are packed, clamped and looked up at once.
inline int RowsTogether(int group) { return kMostTogether / group; }

// A group in one row, or in RowsTogether rows, on its way from values to bytes in memory.
struct BytesOfRows {
  std::array<int, kMostTogether> regs{};  // a row behind the other
  size_t count = 0;                       // of registers
  int group = 0, width = 0;               // of the values' vectors
  // What is packed lies in regs[0], and nothing in the others any more.
  int packed = 0;  // bytes

  std::span<const int> all() const { return std::span(regs).first(count); }
};

// Clobbers k3 to k5 on AVX-512.
class IntegerTailEmitter {
 public:
  // `temporaries`: vector registers, clobbered. `layer` reads the layer's constants and, behind
  // them, the encoded table where there is one.
  IntegerTailEmitter(Assembler& assembler, const Requantization& plan,
                     const std::array<int, 3>& temporaries, const LayerReader& layer);

  // Once in each function. Partial stores (fewer bytes than a group gives) have `partial_bytes` of
  // them; clobbers rax.
  void Prepare(int partial_bytes);
  // Sums in `regs`, one vector of channels in several rows, each of `width` bytes, become values
  // that are not clamped yet, without Requantization::store_offset. A rescaling takes whole vectors
  // only. `constants`: the vector's; not relative to rax or rsp. Where another call of this width
  // and with these constants has more rows behind the same first ones, their registers are
  // clobbered.
  void Requantize(std::span<const int> regs, int width, const Place& constants);
  // Makes bytes of the values, clamped.
  void Pack(BytesOfRows* rows);
  // Looks them up where there is a table, after Pack().
  void LookUp(std::span<const BytesOfRows> all);
  // Whether it looks up the bytes of several together in less time than one after the other.
  bool LooksUpTogether() const { return plan_.lookup == LookupMethod::kShuffles; }
  // Stores the first `bytes` of the group's channels in each row; the rows' bytes lie `row_step`
  // apart. Clobbers the registers.
  void Store(const BytesOfRows& rows, const Place& address, int64_t row_step, int bytes);
  // As Store(), of one row's group whose bytes are `parts` equal parts of 16 bytes and more: stores
  // the first `bytes` of each, `part_step` bytes apart.
  void StoreParts(const BytesOfRows& rows, const Place& address, int parts, int64_t part_step,
                  int bytes);
  // What the functions emitted so far jump to for vectors that floats do not fit. Behind the last.
  void EmitOtherForms();

 private:
  // Where code leaves the floats for a vector of another form, and comes back: to the floats, or
  // behind them.
  struct Exit {
    ForwardJump enter;
    const uint8_t *floats, *back;
  };
  // The function that serves exits of the same constants. Each has the first of these registers:
  // shorter tiles are served by what the longest one takes.
  struct Detour {
    std::vector<int> regs;
    int width;
    Place constants;
    std::vector<Exit> exits;
  };
  // That of these, which may be a new one.
  Detour& DetourOf(std::span<const int> regs, int width, const Place& constants);
  static constexpr int kPartialMask = 4;  // k4: the bytes of a partial store
  // The scale and the addend are in t_[1] and t_[0].
  void RequantizeFloats(std::span<const int> regs, int width);
  void EmitDetour(const Detour& detour);
  void EmitExit(const Exit& exit, const uint8_t* detour);
  // Adds 1 to the sums that are equal to those of the slot, or subtracts it.
  void MoveSums(const Detour& detour, RequantizationSlot slot);
  // Functions of t_[2], of `width` bytes, whose constants are at [rax].
  void EmitOtherForm(int width);
  void EmitNarrow(int width);
  void EmitWide(int width);
  void EmitDoubles();
  Memory Constant(int slot, int width) { return a_.ptr[Place(a_.rax) + slot * width]; }
  void And(const Xbyak::Xmm& to, const Xbyak::Xmm& x, const Xbyak::Operand& y);
  // The odd lanes of x behind the even ones' in `even_and_result`.
  void TakeOddLanes(int even_and_result, int odd, int width);
  void AddStoreOffset(std::initializer_list<int> words, int width);
  // Narrows values to bytes in regs[0]; returns how many.
  int Narrow(std::span<const int> regs, int width);
  // As Narrow(), for four vectors, of one row or several: in each 16 bytes a row's behind the
  // other's.
  void NarrowFour(std::span<const int> regs, int width);
  void Clamp(int reg, int bytes);
  void StoreBytes(int reg, const Place& address, int available, int bytes);
  void StorePieces(int reg, Place address, int bytes);
  // The rows of RowsTogether, as NarrowFour lays them out.
  void StoreRows(int reg, int group, int width, const Place& address, int64_t row_step, int bytes);
  // A row of `available` bytes, in order, of those in `reg`; in the register that is returned.
  int RowOf(int reg, int row, int width, int available);

  Assembler& a_;
  Requantization plan_;
  std::array<int, 3> t_;
  LayerReader layer_;
  std::vector<Detour> detours_;
  std::map<int, const uint8_t*> other_forms_;  // by width
};

}  // namespace fuselite::jit
