// Which instructions this machine has, and how far the user lets us go.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuselite {

// Levels, each named after the instructions that it adds. Code for a level may use everything
// that Includes() says the level has.
enum class Isa {
  kScalar,
  kSsse3,
  kSse4,
  kAvx2,     // with FMA and F16C
  kAvxVnni,  // AVX2 and the VEX form of the 8-bit dot product
  kAvx512,   // F, BW, CD, DQ, VL
  kAvx512Vnni,
  kAvx512Bf16,  // with VNNI
  kNeon,        // aarch64's baseline
};

std::string_view IsaName(Isa isa);                      // "avx512vnni"
std::optional<Isa> IsaFromName(std::string_view name);  // nullopt for an unknown name

// Whether code written for `need` may run where the level is `have`. kAvx512 does not include
// kAvxVnni, kAvx512Vnni does not either (it has the EVEX form instead).
bool Includes(Isa have, Isa need);

// Instructions that no level implies: machines of the same level differ in them. Their code asks
// for a level, too, and a cap below it turns them off.
enum class CpuFeature {
  kAvx512Vbmi,  // with kAvx512
};
// Whether the machine has the feature and the level that it needs.
bool HasFeature(CpuFeature feature);

// The best level of the machine that the process runs on, the operating system's state included.
Isa DetectIsa();
// Every level that this machine can run, from kScalar up: what tests iterate over.
std::vector<Isa> RunnableIsas();

struct CpuInfo {
  std::string model;       // "AMD EPYC ..." or empty where the system does not tell
  int logical_cores = 1;   // that affinity and cgroup quota allow this process
  int physical_cores = 1;  // of those
  long l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;  // 0 where unknown
};
// Reads the system afresh: affinity can change while a process runs.
CpuInfo ReadCpuInfo();

}  // namespace fuselite
