// The part of LiteRT 2's accelerator interface that is used here: what an accelerator's library
// exports, and what the runtime hands to it. Declared from its documented layout, of version 1.0 of
// the definition and 1.0 and newer of the runtime's table (ai-edge-litert 2.3). Both begin with
// their size and version: within a major version members are only appended.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fuselite::litert {

// Zero is success.
using LiteRtStatus = int32_t;
inline constexpr LiteRtStatus kOk = 0;
inline constexpr LiteRtStatus kInvalidArgument = 1;
inline constexpr LiteRtStatus kRuntimeFailure = 3;
inline constexpr LiteRtStatus kNotFound = 6;
inline constexpr LiteRtStatus kWrongVersion = 8;

inline constexpr int32_t kHardwareCpu = 1;

struct AbiHeader {
  uint16_t struct_size;
  uint16_t major_version;
  uint16_t minor_version;
  uint16_t reserved;
};

struct ApiVersion {
  int major, minor, patch;
};

// The runtime's functions. Those between are not used.
struct RuntimeContext {
  AbiHeader header;
  void* buffers[9];
  LiteRtStatus (*get_opaque_options)(void* options, void** opaque_options);
  LiteRtStatus (*find_opaque_options_data)(void* opaque_options, const char* identifier,
                                           void** data);
  void* environment[6];
  LiteRtStatus (*wrap_delegate)(void* delegate, void (*destroy)(void* delegate), void** wrapper);
};
static_assert(offsetof(RuntimeContext, get_opaque_options) == 80);
static_assert(offsetof(RuntimeContext, find_opaque_options_data) == 88);
static_assert(offsetof(RuntimeContext, wrap_delegate) == 144);

struct AcceleratorDefinition {
  AbiHeader header;
  LiteRtStatus (*get_name)(const void* accelerator, const char** name);
  LiteRtStatus (*get_version)(const void* accelerator, ApiVersion* version);
  LiteRtStatus (*get_hardware_support)(const void* accelerator, int32_t* hardware);
  LiteRtStatus (*compiles_just_in_time)(const void* accelerator, bool* does);
  LiteRtStatus (*create_delegate)(RuntimeContext* runtime, void* environment,
                                  const void* accelerator, void* options, void** wrapper);
  void* metrics[2];           // optional
  void* buffer_handlers[17];  // all zero: tensors in the host's memory
};
static_assert(offsetof(AcceleratorDefinition, create_delegate) == 40);
static_assert(sizeof(AcceleratorDefinition) == 200);

}  // namespace fuselite::litert
