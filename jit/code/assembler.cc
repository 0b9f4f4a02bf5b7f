#include "jit/code/assembler.h"

#include <array>

namespace fuselite::jit {

using Xbyak::Xmm;
using Xbyak::Ymm;
using Xbyak::Zmm;

namespace {

constexpr int kVectors = 32;

// Registers of one width, as the class of all.
using Vectors = std::array<Xmm, kVectors>;
template <class Vector>
constexpr Vectors AllVectors() {
  Vectors all;
  for (int i = 0; i < kVectors; ++i) all[i] = Vector(i);
  return all;
}
constexpr Vectors kXmm = AllVectors<Xmm>(), kYmm = AllVectors<Ymm>(), kZmm = AllVectors<Zmm>();

}  // namespace

const Xmm& VectorOf(int i, int width) {
  return (width == 64 ? kZmm : width == 32 ? kYmm : kXmm)[i];
}

size_t Assembler::BeginFunction() {
  PlaceConstants();
  align(32);
  const size_t entry = getSize();
  for (const Xbyak::Reg64& reg : {rbx, rbp, r12, r13, r14, r15}) push(reg);
  return entry;
}

void Assembler::EndFunction() {
  for (const Xbyak::Reg64& reg : {r15, r14, r13, r12, rbp, rbx}) pop(reg);
  vzeroupper();
  ret();
  for (auto& [bits, constant] : constants_) constant.kept_in = kNowhere;
}

void Assembler::CountDown(const Xbyak::Address& count, const std::function<void()>& emit) {
  Xbyak::Label next, done;
  cmp(count, 0);
  je(done, T_NEAR);
  align(16);
  L(next);
  emit();
  dec(count);
  jnz(next, T_NEAR);
  L(done);
}

const Xbyak::Operand& Assembler::Const(uint32_t bits) {
  Constant& constant = constants_[bits];
  if (constant.kept_in != kNowhere) return Vec(constant.kept_in);
  if (!constant.address) {
    constant.address = isa_.avx512 ? ptr_b[rip + constant.label] : ptr[rip + constant.label];
  }
  return *constant.address;
}

const Xmm& Assembler::InRegister(float value, int vector) {
  const auto constant = constants_.find(std::bit_cast<uint32_t>(value));
  if (constant != constants_.end() && constant->second.kept_in != kNowhere) {
    return Vec(constant->second.kept_in);
  }
  LoadConst(vector, value);
  return Vec(vector);
}

void Assembler::KeepConstants(std::span<const uint32_t> constants, int first) {
  for (const uint32_t bits : constants) {
    LoadConst(first, bits);
    constants_[bits].kept_in = first++;
  }
}

std::vector<uint32_t> Assembler::ConstantsRead() const {
  std::vector<uint32_t> read;
  for (const auto& [bits, constant] : constants_) read.push_back(bits);
  return read;
}

Xbyak::Address Assembler::Const64(uint64_t bits) {
  Xbyak::Label& label = constants64_[bits].label;
  return isa_.avx512 ? ptr_b[rip + label] : ptr[rip + label];
}

Xbyak::Address Assembler::ConstLanes(const std::vector<uint32_t>& lanes) {
  return ptr[rip + constant_lanes_[lanes].label];
}

void Assembler::LoadConst64(int vector, uint64_t bits) {
  const Xbyak::Address from = ptr[rip + constants64_[bits].label];
  isa_.avx512 ? vbroadcastsd(Zmm(vector), from) : vbroadcastsd(Ymm(vector), from);
}

void Assembler::LoadConst(int vector, uint32_t bits) {
  if (bits == 0) return Zero(vector);
  Constant& constant = constants_[bits];
  if (constant.kept_in != kNowhere) return vmovaps(Vec(vector), Vec(constant.kept_in));
  vbroadcastss(Vec(vector), ptr[rip + constant.label]);
}

bool Assembler::Encode(const VectorForm& form, const Operand& to, const Operand* x,
                       const Operand& y) {
  if (size_ + kMostVectorBytes > maxSize_) return false;
  const size_t bytes = EncodeVector(form, to, x, y, top_ + size_);
  size_ += bytes;
  return bytes > 0;
}

bool Assembler::Encode(const VectorForm& form, const Operand& to, const Operand* x,
                       const Memory& y) {
  if (size_ + kMostVectorBytes > maxSize_) return false;
  const size_t bytes = EncodeVector(form, to, x, y, top_ + size_);
  size_ += bytes;
  return bytes > 0;
}

void Assembler::SetPartial(int lanes) {
  partial_ = lanes;
  if (!isa_.avx512 || lanes == isa_.lanes()) return;
  mov(eax, (1u << lanes) - 1);
  kmovw(k1, eax);
}

void Assembler::LoadLanes(int vector, const Place& address, bool partial) {
  if (!partial || partial_ == isa_.lanes()) {
    vmovups(Vec(vector), ptr[address]);
  } else if (isa_.avx512) {
    vmovups(Vec(vector, true) | k1 | T_z, ptr[address]);
  } else if (partial_ == 4) {
    vmovups(Xmm(vector), ptr[address]);
  } else {
    vmovups(Ymm(vector), ptr[rip + masks_[partial_].label]);
    vmaskmovps(Ymm(vector), Ymm(vector), ptr[address]);
  }
}

void Assembler::LoadBf16Lanes(int vector, const Place& address, bool partial) {
  const bool whole = !partial || partial_ == isa_.lanes();
  const Xbyak::Zmm to(vector);
  vpmovzxwd(whole ? to : to | k1 | T_z, ptr[address]);
  vpslld(to, to, 16);
}

void Assembler::LoadPieces(int vector, const Place& address, int bytes) {
  const Xmm v(vector);
  int at = 0;
  if (bytes & 8) {
    vmovq(v, ptr[address]);
    at = 8;
  } else {
    vpxor(v, v, v);
  }
  for (const int piece : {4, 2, 1}) {
    if (!(bytes & piece)) continue;
    const Place from = address + at;
    switch (piece) {
      case 4: vpinsrd(v, v, ptr[from], at / 4); break;
      case 2: vpinsrw(v, v, ptr[from], at / 2); break;
      default: vpinsrb(v, v, ptr[from], at); break;
    }
    at += piece;
  }
}

void Assembler::StoreLanes(const Place& address, int vector, bool partial, int temporary) {
  if (!partial || partial_ == isa_.lanes()) {
    vmovups(ptr[address], Vec(vector));
  } else if (isa_.avx512) {
    vmovups(ptr[address] | k1, Vec(vector, true));
  } else {
    // Piece by piece: masked stores are microcoded on several processors.
    Xmm rest(vector);
    Place to = address;
    if (partial_ & 4) {
      vmovups(ptr[to], rest);
      vextractf128(Xmm(temporary), Ymm(vector), 1);
      rest = Xmm(temporary);
      to = to + 16;
    }
    if (partial_ & 2) {
      vmovlps(ptr[to], rest);
      if (partial_ & 1) vmovhlps(Xmm(temporary), rest, rest);
      rest = Xmm(temporary);
      to = to + 8;
    }
    if (partial_ & 1) vmovss(ptr[to], rest);
  }
}

void Assembler::StoreBf16Lanes(const Place& address, int vector, bool partial) {
  const Xbyak::Ymm rounded(vector);
  vcvtneps2bf16(rounded, Xbyak::Zmm(vector));
  if (!partial || partial_ == isa_.lanes()) return vmovups(ptr[address], rounded);
  vmovdqu16(ptr[address] | k1, rounded);
}

void Assembler::PlaceConstants() {
  const int copies = isa_.avx512 ? 1 : isa_.lanes();
  PlaceEach(&constant_lanes_, isa_.bytes, [this](const std::vector<uint32_t>& lanes) {
    for (const uint32_t lane : lanes) dd(lane);
  });
  PlaceEach(&constants64_, isa_.avx512 ? 8 : 32, [&](uint64_t bits) {
    for (int i = 0; i < (copies + 1) / 2; ++i) dq(bits);
  });
  PlaceEach(&constants_, isa_.avx512 ? 4 : 32, [&](uint32_t bits) {
    for (int i = 0; i < copies; ++i) dd(bits);
  });
  PlaceEach(&masks_, 32, [this](int lanes) {
    for (int i = 0; i < isa_.lanes(); ++i) dd(i < lanes ? ~0u : 0u);
  });
}

CodeBytes Assembler::Finish(std::vector<size_t> entries) {
  for (const auto& emit : at_end_) emit();
  PlaceConstants();
  ready();
  return {{getCode(), getCode() + getSize()}, std::move(entries)};
}

}  // namespace fuselite::jit
