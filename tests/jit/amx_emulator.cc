#include "tests/jit/amx_emulator.h"

#if defined(__x86_64__) && defined(__linux__)

#include <ucontext.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace fuselite::jit::testing {
namespace {

// Intel's manual, volume 1, "Programming with Intel AMX": palette 1.
constexpr int kTiles = 8, kRows = 16, kRowBytes = 64;

struct Tile {
  int rows = 0, row_bytes = 0;
  uint8_t data[kRows][kRowBytes] = {};
  bool configured() const { return rows > 0; }
};

thread_local Tile tiles[kTiles];

// All that a signal handler may do about it.
[[noreturn]] void Die(std::string_view what) {
  constexpr std::string_view kWho = "emulated AMX: ";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, kWho.data(), kWho.size());
  written = write(STDERR_FILENO, what.data(), what.size());
  written = write(STDERR_FILENO, "\n", 1);
  _exit(EXIT_FAILURE);
}

Tile& Configured(int number) {
  if (number >= kTiles || !tiles[number].configured()) Die("a tile without a shape");
  return tiles[number];
}

// The instruction at which a thread stands: VEX with three bytes, an opcode, ModRM and what follows
// from it.
class Instruction {
 public:
  enum Prefix { kNone, k66, kF3, kF2 };

  explicit Instruction(ucontext_t& context)
      : registers_(context.uc_mcontext.gregs),
        at_(reinterpret_cast<const uint8_t*>(registers_[REG_RIP])) {
    constexpr int kVex3 = 0xC4, kMap0F38 = 2;
    const bool wide = at_[2] >> 7 != 0, long_vector = (at_[2] >> 2 & 1) != 0;
    if (at_[0] != kVex3 || (at_[1] & 0x1F) != kMap0F38 || wide || long_vector) {
      Die("not an instruction of AMX");
    }
  }

  int opcode() const { return at_[3]; }
  Prefix prefix() const { return static_cast<Prefix>(at_[2] & 3); }
  bool of_memory() const { return at_[4] >> 6 != 3; }
  // The registers named by ModRM.reg, ModRM.rm and VEX.vvvv.
  int reg() const { return (at_[4] >> 3 & 7) | Extended(0x80); }
  int rm() const { return (at_[4] & 7) | Extended(0x20); }
  int vvvv() const { return ~(at_[2] >> 3) & 15; }

  // An operand in memory: what a row begins at, and how far the next one is.
  struct Rows {
    uint8_t* data;
    int64_t stride;
    uint8_t* row(int i) const { return data + i * stride; }
  };
  // Moves length() behind it.
  Rows ReadMemory() {
    const int mod = at_[4] >> 6, low = at_[4] & 7;
    Rows rows{nullptr, 0};
    int base = rm();
    bool has_base = !(mod == 0 && low == 5);
    if (!has_base) Die("an address relative to the instruction");
    if (low == 4) {
      const uint8_t sib = at_[length_++];
      const int index = (sib >> 3 & 7) | Extended(0x40);
      if (index != 4) rows.stride = Register(index) << (sib >> 6);
      base = (sib & 7) | Extended(0x20);
      has_base = !(mod == 0 && (sib & 7) == 5);
    }
    int64_t address = has_base ? Register(base) : 0;
    if (mod == 1) address += static_cast<int8_t>(at_[length_++]);
    if (mod == 2 || !has_base) {
      int32_t displacement;
      std::memcpy(&displacement, at_ + length_, sizeof(displacement));
      length_ += static_cast<int>(sizeof(displacement));
      address += displacement;
    }
    rows.data = reinterpret_cast<uint8_t*>(address);
    return rows;
  }

  void Skip() { registers_[REG_RIP] += length_; }

 private:
  // The fourth bit of a register's number, which VEX holds inverted.
  int Extended(int bit) const { return (at_[1] & bit) != 0 ? 0 : 8; }
  int64_t Register(int number) const {
    constexpr int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};
    return registers_[kOrder[number]];
  }

  gregset_t& registers_;
  const uint8_t* at_;
  int length_ = 5;
};

void Configure(const uint8_t* config) {
  if (config[0] != 1) Die("a palette other than 1");
  for (int i = 0; i < 16; ++i) {
    uint16_t row_bytes;
    std::memcpy(&row_bytes, config + 16 + 2 * i, sizeof(row_bytes));
    const int rows = config[48 + i];
    if (rows > kRows || row_bytes > kRowBytes || (rows == 0) != (row_bytes == 0)) {
      Die("a tile of a shape that there is not");
    }
    if (i < kTiles) {
      tiles[i] = {.rows = rows, .row_bytes = row_bytes};
    } else if (rows > 0) {
      Die("more than eight tiles");
    }
  }
}

void Load(Tile& tile, const Instruction::Rows& from) {
  std::memset(tile.data, 0, sizeof(tile.data));
  for (int i = 0; i < tile.rows; ++i) {
    std::memcpy(tile.data[i], from.row(i), static_cast<size_t>(tile.row_bytes));
  }
}

void Store(const Tile& tile, const Instruction::Rows& to) {
  for (int i = 0; i < tile.rows; ++i) {
    std::memcpy(to.row(i), tile.data[i], static_cast<size_t>(tile.row_bytes));
  }
}

// Products of 4 bytes added to each sum of 32 bits, without saturation.
template <class Left, class Right>
void AddProducts(Tile& sums, const Tile& a, const Tile& b) {
  for (int i = 0; i < sums.rows; ++i) {
    for (int k = 0; k < b.rows; ++k) {
      for (int j = 0; j < sums.row_bytes; j += 4) {
        uint32_t sum;
        std::memcpy(&sum, &sums.data[i][j], sizeof(sum));
        for (int e = 0; e < 4; ++e) {
          const int left = static_cast<Left>(a.data[i][4 * k + e]);
          const int right = static_cast<Right>(b.data[k][j + e]);
          sum += static_cast<uint32_t>(left * right);
        }
        std::memcpy(&sums.data[i][j], &sum, sizeof(sum));
      }
    }
  }
}

// What the instructions of bfloat16 take a denormal number for, and give in place of one.
float Flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}

float Bf16(const uint8_t* from) {
  uint16_t bits;
  std::memcpy(&bits, from, sizeof(bits));
  return Flushed(std::bit_cast<float>(uint32_t{bits} << 16));
}

// Products of two bfloat16 added to each sum of float32: those of all even and of all odd values by
// themselves, then both together to the sum.
void AddFloatProducts(Tile& sums, const Tile& a, const Tile& b) {
  for (int i = 0; i < sums.rows; ++i) {
    for (int j = 0; j < sums.row_bytes; j += 4) {
      float parts[2] = {};
      for (int k = 0; k < b.rows; ++k) {
        for (int e = 0; e < 2; ++e) {
          const float left = Bf16(&a.data[i][4 * k + 2 * e]), right = Bf16(&b.data[k][j + 2 * e]);
          parts[e] = Flushed(std::fma(left, right, parts[e]));
        }
      }
      float sum;
      std::memcpy(&sum, &sums.data[i][j], sizeof(sum));
      sum = Flushed(Flushed(sum) + Flushed(parts[0] + parts[1]));
      std::memcpy(&sums.data[i][j], &sum, sizeof(sum));
    }
  }
}

void Multiply(const Instruction& instruction) {
  Tile& sums = Configured(instruction.reg());
  const Tile &a = Configured(instruction.rm()), &b = Configured(instruction.vvvv());
  if (&sums == &a || &sums == &b || &a == &b) Die("a product of a tile with itself");
  if (sums.rows != a.rows || sums.row_bytes != b.row_bytes || a.row_bytes != 4 * b.rows ||
      b.row_bytes % 4 != 0) {
    Die("a product of tiles whose shapes do not fit");
  }
  constexpr int kOfFloats = 0x5C;
  if (instruction.opcode() == kOfFloats) {
    if (instruction.prefix() != Instruction::kF3) Die("not an instruction of AMX");
    return AddFloatProducts(sums, a, b);
  }
  switch (instruction.prefix()) {
    case Instruction::kNone: return AddProducts<uint8_t, uint8_t>(sums, a, b);
    case Instruction::k66: return AddProducts<uint8_t, int8_t>(sums, a, b);
    case Instruction::kF3: return AddProducts<int8_t, uint8_t>(sums, a, b);
    case Instruction::kF2: return AddProducts<int8_t, int8_t>(sums, a, b);
  }
}

// LDTILECFG, TILERELEASE and TILEZERO.
void ChangeState(Instruction& instruction) {
  if (instruction.prefix() == Instruction::kF2) {
    Tile& tile = Configured(instruction.reg());
    std::memset(tile.data, 0, sizeof(tile.data));
  } else if (instruction.prefix() != Instruction::kNone) {
    Die("not an instruction of AMX");
  } else if (instruction.of_memory()) {
    Configure(instruction.ReadMemory().data);
  } else {
    for (Tile& tile : tiles) tile = Tile();
  }
}

void MoveTile(Instruction& instruction) {
  if (instruction.prefix() == Instruction::kNone) Die("not an instruction of AMX");
  Tile& tile = Configured(instruction.reg());
  const Instruction::Rows rows = instruction.ReadMemory();
  instruction.prefix() == Instruction::kF3 ? Store(tile, rows) : Load(tile, rows);
}

void Handle(int /*signal*/, siginfo_t* /*info*/, void* context) {
  Instruction instruction(*static_cast<ucontext_t*>(context));
  switch (instruction.opcode()) {
    case 0x49: ChangeState(instruction); break;
    case 0x4B: MoveTile(instruction); break;
    case 0x5C:
    case 0x5E: Multiply(instruction); break;
    default: Die("not an instruction of AMX");
  }
  instruction.Skip();
}

}  // namespace

bool EmulateAmx() {
  struct sigaction action = {};
  action.sa_sigaction = &Handle;
  action.sa_flags = SA_SIGINFO;
  return sigaction(SIGILL, &action, nullptr) == 0;
}

}  // namespace fuselite::jit::testing

#else

namespace fuselite::jit::testing {

bool EmulateAmx() { return false; }

}  // namespace fuselite::jit::testing

#endif

namespace fuselite::jit::testing {

std::optional<Isa> IsaWithTiles(Feature feature) {
  const Isa machine = DetectIsa();
  if (machine.has(Feature::kAmxInt8) && machine.has(Feature::kAmxBf16)) return machine;
  if (!machine.has(feature) || !EmulateAmx()) return std::nullopt;
  return machine.with(Feature::kAmxInt8).with(Feature::kAmxBf16).with(Trait::kTwoVectorPorts);
}

}  // namespace fuselite::jit::testing
