// Which features an x86 processor and its operating system have, of what they say of themselves.
#pragma once

#include <cstdint>

#include "runtime/cpu/isa.h"
#include "runtime/support/function_ref.h"

namespace fuselite::internal {

struct CpuidLeaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// How a machine is asked. Only what it has is asked for: leaves up to the last one that leaf 0
// names, subleaf 1 of leaf 7 where its first one names it, XCR0 where OSXSAVE is set, and tiles
// where XCR0 has them.
struct X86Machine {
  FunctionRef<CpuidLeaf(uint32_t leaf, uint32_t subleaf)> cpuid;
  FunctionRef<uint64_t()> xcr0;       // the registers whose state the system saves
  FunctionRef<bool()> may_use_tiles;  // asks for the permission
};

// The bits are those of Intel's manual, volume 2, CPUID, and of AMD's where they differ.
Isa DetectX86(const X86Machine& machine);

}  // namespace fuselite::internal
