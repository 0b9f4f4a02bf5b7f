// What every emitter stands on: vectors of the ISA at hand, constants, masks, a function's frame.
#pragma once

#include <xbyak/xbyak.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "jit/code/code_cache.h"
#include "jit/code/emission_buffer.h"
#include "jit/code/vector_encoding.h"
#include "runtime/cpu/isa.h"

namespace fuselite::jit {

// The vectors of one set of instructions.
struct VectorIsa {
  explicit VectorIsa(Isa isa)
      : features(isa),
        avx512(isa.has(Feature::kAvx512)),
        vbmi(isa.has(Feature::kAvx512Vbmi)),
        dot(isa.has_vnni()),
        divides_fast(avx512 && isa.has(Trait::kDividesFast)),
        bytes(avx512 ? 64 : 32) {}

  Isa features;
  bool avx512, vbmi, dot;
  bool divides_fast;                       // Trait::kDividesFast, with vectors of 64 bytes
  int bytes;                               // of a vector
  int lanes() const { return bytes / 4; }  // of 32 bits
  int registers() const { return avx512 ? 32 : 16; }
  const char* name() const { return avx512 ? "avx512" : "avx2"; }
  // The name for kernels that use dot products where there are any.
  const char* dot_name() const { return !dot ? name() : avx512 ? "avx512vnni" : "avxvnni"; }
  // Below AVX2 nothing is emitted.
  static bool Supported(Isa isa) { return isa.has(Feature::kAvx2); }
};

// The vector register `i` with `width` bytes: 16, 32 or 64. Made once: Xbyak's operands are fields
// of bits, and a fresh one is read before its last field has left the store buffer.
const Xbyak::Xmm& VectorOf(int i, int width);

// The end of a jump instruction whose distance is not known yet.
struct ForwardJump {
  size_t end;
};

// An assembler that writes position-independent code to memory of its own. Errors are exceptions
// (Xbyak's), which CodeCache turns into a Status. Functions follow the System V ABI and take one
// pointer. Vector registers are addressed by number; in AVX2 code only the lower 16 exist.
class Assembler : public Xbyak::CodeGenerator {
 public:
  using Xmm = Xbyak::Xmm;
  using Operand = Xbyak::Operand;

  explicit Assembler(Isa isa) : Assembler(isa, EmissionBuffer::Take()) {}

  // In place of Xbyak's.
  const MemoryFrame ptr{false}, ptr_b{true};

  const VectorIsa& isa() const { return isa_; }
  // A whole vector; its lower half (of zmm) or quarter.
  const Xbyak::Xmm& Vec(int i) const { return VectorOf(i, isa_.bytes); }
  Xbyak::Ymm Half(int i) const { return Xbyak::Ymm(i); }

  // Starts a function: saves what the callee must save. Returns its place, an entry of Finish.
  size_t BeginFunction();
  void EndFunction();
  // What `emit` emits runs `count` times, which counts down to 0: not at all where it is 0 before.
  void CountDown(const Xbyak::Address& count, const std::function<void()>& emit);

  // A 32-bit constant in every lane, as the last operand of an arithmetic instruction: the register
  // that keeps it, else a place in memory.
  const Operand& Const(uint32_t bits);
  const Operand& Const(float value) { return Const(std::bit_cast<uint32_t>(value)); }
  // As Const(), for 64-bit lanes.
  Xbyak::Address Const64(uint64_t bits);
  // Declares a constant that many instructions of the next function read, which then lies before
  // it: for a place that is not known yet the assembler keeps a list of its readers, with an
  // allocation for each.
  void ExpectConst(uint32_t bits) { constants_[bits]; }
  void LoadConst(int vector, uint32_t bits);
  void LoadConst64(int vector, uint64_t bits);
  void LoadConst(int vector, float value) { LoadConst(vector, std::bit_cast<uint32_t>(value)); }
  // The register that keeps a constant, else register `vector`, which is loaded with it.
  const Xmm& InRegister(float value, int vector);
  // Loads constants into the registers from `first` on, which keep them until the function ends. A
  // vector of a polynomial reads about as many constants as it computes steps, and a core loads two
  // vectors in the time of two steps.
  void KeepConstants(std::span<const uint32_t> constants, int first);
  // The 32-bit constants that what was emitted reads.
  std::vector<uint32_t> ConstantsRead() const;
  // 32-bit lanes of their own, one after the other, as a memory operand.
  Xbyak::Address ConstLanes(const std::vector<uint32_t>& lanes);
  void Zero(int vector) { vxorps(Xbyak::Xmm(vector), Xbyak::Xmm(vector), Xbyak::Xmm(vector)); }

  // Declares how many lanes a partial vector of this function has; clobbers eax on AVX-512. The
  // mask lives in k1 there.
  void SetPartial(int lanes);
  // The vector register `i`; where it is `partial` and its lanes fit into half of a vector of 64
  // bytes, that half: it is multiplied in half the time on cores that halve the larger ones (Zen
  // 4), and elsewhere in no more. Writing it zeroes the other half.
  const Xbyak::Xmm& Vec(int i, bool partial) const {
    const bool half = partial && isa_.avx512 && partial_ * 2 <= isa_.lanes();
    return VectorOf(i, half ? isa_.bytes / 2 : isa_.bytes);
  }
  // 32-bit lanes; `partial`: only the first lanes of SetPartial(), the others read as 0 and stay
  // untouched in memory. Nothing is read or written beyond.
  void LoadLanes(int vector, const Place& address, bool partial);
  // Bytes, fewer than 16, behind which zeros follow: for AVX2, which has no loads masked by bytes.
  // Nothing is read beyond.
  void LoadPieces(int vector, const Place& address, int bytes);
  // As LoadLanes(), of bfloat16 that become float32. With AVX-512.
  void LoadBf16Lanes(int vector, const Place& address, bool partial);
  // Clobbers `temporary` for a partial vector of AVX2.
  void StoreLanes(const Place& address, int vector, bool partial, int temporary);
  // float32 lanes rounded to bfloat16, in the register too. With AVX512-BF16.
  void StoreBf16Lanes(const Place& address, int vector, bool partial);
  // Floats of either type in memory.
  void LoadFloats(int vector, const Place& address, bool partial, bool bf16) {
    bf16 ? LoadBf16Lanes(vector, address, partial) : LoadLanes(vector, address, partial);
  }
  void StoreFloats(const Place& address, int vector, bool partial, bool bf16, int temporary) {
    bf16 ? StoreBf16Lanes(address, vector, partial)
         : StoreLanes(address, vector, partial, temporary);
  }

  // Xbyak's instructions, of which those on plain operands take less time (vector_encoding.h).
  using CodeGenerator::vmovaps, CodeGenerator::vmovups, CodeGenerator::vpbroadcastd,
      CodeGenerator::vpaddd, CodeGenerator::vpmaxsd, CodeGenerator::vpminsd,
      CodeGenerator::vpmaddwd, CodeGenerator::vpcmpeqd, CodeGenerator::vpackssdw,
      CodeGenerator::vpaddsw, CodeGenerator::vpacksswb, CodeGenerator::vpackuswb,
      CodeGenerator::vpunpcklbw, CodeGenerator::vpunpckhbw, CodeGenerator::vpunpcklwd,
      CodeGenerator::vpunpckhwd, CodeGenerator::vaddps, CodeGenerator::vmaxps,
      CodeGenerator::vminps;
  template <class From>
  void vmovaps(const Xmm& to, const From& from) {
    if (!Encode(vector_forms::kMove, to, nullptr, from)) CodeGenerator::vmovaps(to, from);
  }
  template <class From>
  void vmovups(const Xmm& to, const From& from) {
    if (!Encode(vector_forms::kLoad, to, nullptr, from)) CodeGenerator::vmovups(to, from);
  }
  void vmovups(const Memory& to, const Xmm& from) {
    if (!Encode(vector_forms::kStore, from, nullptr, to)) CodeGenerator::vmovups(to, from);
  }
  template <class From>
  void vbroadcastss(const Xmm& to, const From& from) {
    if (!Encode(vector_forms::kBroadcast, to, nullptr, from)) CodeGenerator::vbroadcastss(to, from);
  }
  template <class From>
  void vpbroadcastd(const Xmm& to, const From& from) {
    if (!Encode(vector_forms::kBroadcastIntegers, to, nullptr, from))
      CodeGenerator::vpbroadcastd(to, from);
  }
  template <class From>
  void vcvtdq2ps(const Xmm& to, const From& from) {
    if (!Encode(vector_forms::kToFloats, to, nullptr, from)) CodeGenerator::vcvtdq2ps(to, from);
  }
  template <class From>
  void vcvtps2dq(const Xmm& to, const From& from) {
    if (!Encode(vector_forms::kToIntegers, to, nullptr, from)) CodeGenerator::vcvtps2dq(to, from);
  }
  template <class Y>
  void vpaddd(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kAdd, to, &x, y)) CodeGenerator::vpaddd(to, x, y);
  }
  template <class Y>
  void vpxord(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kXor, to, &x, y)) CodeGenerator::vpxord(to, x, y);
  }
  template <class Y>
  void vpmaxsd(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kMaxIntegers, to, &x, y)) CodeGenerator::vpmaxsd(to, x, y);
  }
  template <class Y>
  void vpminsd(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kMinIntegers, to, &x, y)) CodeGenerator::vpminsd(to, x, y);
  }
  template <class Y>
  void vpmaddwd(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kMultiplyWords, to, &x, y)) CodeGenerator::vpmaddwd(to, x, y);
  }
  template <class Y>
  void vpackssdw(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kPackWords, to, &x, y)) CodeGenerator::vpackssdw(to, x, y);
  }
  template <class Y>
  void vpaddsw(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kAddWords, to, &x, y)) CodeGenerator::vpaddsw(to, x, y);
  }
  template <class Y>
  void vpacksswb(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kPackBytes, to, &x, y)) CodeGenerator::vpacksswb(to, x, y);
  }
  template <class Y>
  void vpackuswb(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kPackUnsignedBytes, to, &x, y)) CodeGenerator::vpackuswb(to, x, y);
  }
  template <class Y>
  void vpunpcklbw(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kLowBytes, to, &x, y)) CodeGenerator::vpunpcklbw(to, x, y);
  }
  template <class Y>
  void vpunpckhbw(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kHighBytes, to, &x, y)) CodeGenerator::vpunpckhbw(to, x, y);
  }
  template <class Y>
  void vpunpcklwd(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kLowWords, to, &x, y)) CodeGenerator::vpunpcklwd(to, x, y);
  }
  template <class Y>
  void vpunpckhwd(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kHighWords, to, &x, y)) CodeGenerator::vpunpckhwd(to, x, y);
  }
  template <class Y>
  void vpermi2b(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kPermuteBytes, to, &x, y)) CodeGenerator::vpermi2b(to, x, y);
  }
  template <class Y>
  void vaddps(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kAddFloats, to, &x, y)) CodeGenerator::vaddps(to, x, y);
  }
  template <class Y>
  void vmaxps(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kMaxFloats, to, &x, y)) CodeGenerator::vmaxps(to, x, y);
  }
  template <class Y>
  void vminps(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kMinFloats, to, &x, y)) CodeGenerator::vminps(to, x, y);
  }
  template <class Y>
  void vfmadd213ps(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kMultiplyAdd213, to, &x, y)) CodeGenerator::vfmadd213ps(to, x, y);
  }
  template <class Y>
  void vfmadd231ps(const Xmm& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kMultiplyAdd231, to, &x, y)) CodeGenerator::vfmadd231ps(to, x, y);
  }
  template <class Y>
  void vpcmpeqd(const Xbyak::Opmask& to, const Xmm& x, const Y& y) {
    if (!Encode(vector_forms::kEqual, to, &x, y)) CodeGenerator::vpcmpeqd(to, x, y);
  }
  template <class Y>
  void vpternlogd(const Xmm& to, const Xmm& x, const Y& y, uint8_t function) {
    if (!Encode(vector_forms::kTernary, to, &x, y)) {
      return CodeGenerator::vpternlogd(to, x, y, function);
    }
    db(function);
  }
  template <class Y>
  void vpdpbusd(const Xmm& to, const Xmm& x, const Y& y,
                Xbyak::PreferredEncoding encoding = Xbyak::DefaultEncoding) {
    const VectorForm& form =
        encoding == Xbyak::VexEncoding ? vector_forms::kDot : vector_forms::kEvexDot;
    if (!Encode(form, to, &x, y)) CodeGenerator::vpdpbusd(to, x, y, encoding);
  }

  // A jump to code that is emitted later, where Land says so. A Label serves it, too, at the price
  // of three allocations each, and every vector of a tile's outputs has such jumps.
  ForwardJump JumpForwardIfLess() {
    jl(getCurr());
    return {getSize()};
  }
  ForwardJump JumpForwardIfNotEqual() {
    jne(getCurr());
    return {getSize()};
  }
  void Land(const ForwardJump& jump) {
    rewrite(jump.end - sizeof(int32_t), getSize() - jump.end, sizeof(int32_t));
  }

  // What `emit` emits comes behind the last function.
  void AtEnd(std::function<void()> emit) { at_end_.push_back(std::move(emit)); }
  // Writes the constants behind the code and gives the bytes. The last call.
  CodeBytes Finish(std::vector<size_t> entries);

 private:
  Assembler(Isa isa, EmissionBuffer buffer)
      : CodeGenerator(EmissionBuffer::kBytes, buffer.data()),
        isa_(isa),
        buffer_(std::move(buffer)) {
    setDefaultJmpNEAR(true);
  }

  // False where EncodeVector has no such instruction, or Xbyak has to say that there is no room.
  bool Encode(const VectorForm& form, const Operand& to, const Operand* x, const Operand& y);
  bool Encode(const VectorForm& form, const Operand& to, const Operand* x, const Memory& y);

  struct Constant {
    Xbyak::Label label;
    bool placed = false;
    int kept_in = kNowhere;                   // the register that keeps it
    std::optional<Xbyak::Address> address{};  // as an operand
  };
  static constexpr int kNowhere = -1;
  template <class Lanes>
  using Constants = std::map<Lanes, Constant>;
  // Places those that are not yet; `write` writes one.
  template <class Lanes, class Write>
  void PlaceEach(Constants<Lanes>* constants, int alignment, const Write& write) {
    for (auto& [lanes, constant] : *constants) {
      if (constant.placed) continue;
      align(alignment);
      L(constant.label);
      write(lanes);
      constant.placed = true;
    }
  }
  void PlaceConstants();

  VectorIsa isa_;
  EmissionBuffer buffer_;
  std::vector<std::function<void()>> at_end_;
  Constants<std::vector<uint32_t>> constant_lanes_;
  Constants<uint32_t> constants_;
  Constants<uint64_t> constants64_;
  Constants<int> masks_;  // AVX2: lanes -> mask vector
  int partial_ = 0;
};

// The code under `key` (CodeCache::GetOrEmit) with one entry for each of `variants`, equal ones
// the same. An Emitter is an Assembler made of `spec`; its EmitFunction(variant) returns the entry.
template <class Emitter, class Spec, class Variants>
Result<SharedCode> EmitFunctions(const std::string& key, const std::string& name, const Spec& spec,
                                 const Variants& variants) {
  return ProcessCodeCache().GetOrEmit(key, name, [&]() -> Result<CodeBytes> {
    Emitter emitter(spec);
    std::vector<size_t> entries;
    for (auto variant = std::begin(variants); variant != std::end(variants); ++variant) {
      const auto same = std::find(std::begin(variants), variant, *variant);
      entries.push_back(same == variant ? emitter.EmitFunction(*variant)
                                        : entries[same - std::begin(variants)]);
    }
    return emitter.Finish(std::move(entries));
  });
}

}  // namespace fuselite::jit
