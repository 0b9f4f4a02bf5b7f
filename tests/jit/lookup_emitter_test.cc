// Tables in registers, by every method and vector width that the machine runs.
#include "jit/tail/lookup_emitter.h"

#include <array>
#include <cstring>

#include "jit/tail/integer_tail_emitter.h"
#include "tests/jit/jit_cases.h"

namespace fuselite::jit::testing {
namespace {

struct Args {
  const uint8_t* in;
  uint8_t* out;
  const std::byte* table;
};

// A function that looks up 256 bytes, `width` of them at a time.
class LookupFunction : public Assembler {
 public:
  LookupFunction(Isa isa, LookupMethod method, int width) : Assembler(isa) {
    const Xbyak::Reg64 args = rdi, in = r8, out = r9, table = r10;
    const int reg = isa_registers() - 1, t0 = 0, t1 = 3;
    BeginFunction();
    mov(in, ptr[args + offsetof(Args, in)]);
    mov(out, ptr[args + offsetof(Args, out)]);
    mov(table, ptr[args + offsetof(Args, table)]);
    LookupEmitter lookup(*this, method, table, t0, t1);
    for (int at = 0; at < 256; at += width) {
      vmovups(VectorOf(reg, width), ptr[in + at]);
      lookup.Emit(reg, width);
      vmovups(ptr[out + at], VectorOf(reg, width));
    }
    EndFunction();
  }

 private:
  int isa_registers() const { return isa().registers(); }
};

void ExpectLooksUp(Isa isa, LookupMethod method, int width) {
  SCOPED_TRACE(std::string(IsaName(isa)) + " width " + std::to_string(width));
  CodeCache cache;
  const auto code = cache.GetOrEmit("lookup", "lookup", [&]() -> Result<CodeBytes> {
    LookupFunction function(isa, method, width);
    return function.Finish({0});
  });
  ASSERT_TRUE(code.ok()) << code.status().ToString();
  Random random(width);
  std::array<uint8_t, 256> table, in, out, expected;
  for (int i = 0; i < 256; ++i) {
    table[i] = static_cast<uint8_t>(random.Int(0, 255));
    in[i] = static_cast<uint8_t>(i * 77 + 5);  // each byte once
    expected[i] = 0;
  }
  for (int i = 0; i < 256; ++i) expected[i] = table[in[i]];
  const AlignedBuffer encoded = EncodeLookup(table, method);
  Args args{in.data(), out.data(), encoded.data()};
  (*code)->entry<void(Args*)>(0)(&args);
  EXPECT_EQ(out, expected);
}

TEST(LookupEmitterTest, EveryByteByEveryMethod) {
  for (const Isa isa : EmittedIsas()) {
    const VectorIsa vectors(isa);
    for (const int width : {16, 32, 64}) {
      if (width > vectors.bytes) continue;
      ExpectLooksUp(isa, LookupMethod::kShuffles, width);
      if (vectors.vbmi) ExpectLooksUp(isa, LookupMethod::kPermutes, width);
    }
  }
}

TEST(LookupEmitterTest, PermutesNeedTheirFeature) {
  const auto permutes = [](Isa isa) {
    return BestLookup(VectorIsa(isa)) == LookupMethod::kPermutes;
  };
  EXPECT_TRUE(permutes(Isa::kAvx512Vnni));
  EXPECT_FALSE(permutes(Isa::kAvx512Vnni.without(Feature::kAvx512Vbmi)));
  EXPECT_FALSE(permutes(Isa::kAvx512));
  EXPECT_FALSE(permutes(Isa::kAvx2));
}

}  // namespace
}  // namespace fuselite::jit::testing
