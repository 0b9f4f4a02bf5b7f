// What LiteRT 2 loads to accelerate CompiledModel: a library of this name in the environment's
// runtime directory, which takes the slot of the GPU accelerator and says that it is the CPU.
// LiteRT then applies it before XNNPACK, which gets the nodes that are left.
#include <charconv>
#include <cstdio>
#include <string_view>

#include "fuselite/common.h"
#include "fuselite/delegate.h"
#include "partitioner/litert/accelerator_abi.h"

namespace fuselite::litert {
namespace {

// The name under which LiteRT knows that a delegate's nodes read and write the host's memory; it
// takes all others for a GPU's, and then does not tell CPU nodes beside them where their tensors
// are.
constexpr char kCpuNodeName[] = "TfLiteXNNPackDelegate";

// The identifier of the options that a program makes with CpuOptions; their data is TOML.
constexpr char kCpuOptions[] = "xnnpack";

struct CpuOptions {
  int num_threads = 0;
  bool wants_delegate = true;  // false: the program asks for LiteRT's own kernels
};

// Without the blanks and quotes at both ends.
std::string_view Trim(std::string_view text) {
  constexpr char kBlanks[] = " \t\"";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

CpuOptions ParseCpuOptions(std::string_view toml) {
  CpuOptions options;
  while (!toml.empty()) {
    const std::string_view line = toml.substr(0, toml.find('\n'));
    toml.remove_prefix(line.size() < toml.size() ? line.size() + 1 : line.size());
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = Trim(line.substr(0, equals)),
                           value = Trim(line.substr(equals + 1));
    if (key == "num_threads") {
      std::from_chars(value.data(), value.data() + value.size(), options.num_threads);
    } else if (key == "kernel_mode") {
      options.wants_delegate = value == "delegate";
    }
  }
  return options;
}

// LiteRT has no place for an accelerator's words but the standard error output, where its own are.
LiteRtStatus Refuse(LiteRtStatus status, const char* reason) {
  std::fprintf(stderr, "fuselite: the CompiledModel is not accelerated: %s\n", reason);
  return status;
}

LiteRtStatus CheckRuntime(const RuntimeContext* runtime) {
  if (runtime == nullptr) return Refuse(kInvalidArgument, "LiteRT gives no table of functions");
  const AbiHeader& header = runtime->header;
  if (header.major_version == 1 && header.struct_size >= sizeof(RuntimeContext) &&
      runtime->wrap_delegate != nullptr) {
    return kOk;
  }
  char reason[160];
  std::snprintf(reason, sizeof reason,
                "LiteRT's interface has version %d.%d and %d bytes, known is version 1; a newer "
                "fuselite may know it",
                header.major_version, header.minor_version, header.struct_size);
  return Refuse(kWrongVersion, reason);
}

LiteRtStatus ReadCpuOptions(const RuntimeContext& runtime, void* options, CpuOptions& result) {
  if (options == nullptr || runtime.get_opaque_options == nullptr ||
      runtime.find_opaque_options_data == nullptr) {
    return kOk;
  }
  void* opaque = nullptr;
  if (runtime.get_opaque_options(options, &opaque) != kOk) return kOk;
  void* data = nullptr;
  const LiteRtStatus status = runtime.find_opaque_options_data(opaque, kCpuOptions, &data);
  if (status != kOk && status != kNotFound) return status;
  if (status == kOk && data != nullptr) result = ParseCpuOptions(static_cast<const char*>(data));
  return kOk;
}

LiteRtStatus GetName(const void*, const char** name) {
  if (name == nullptr) return kInvalidArgument;
  *name = "fuselite";
  return kOk;
}

LiteRtStatus GetVersion(const void*, ApiVersion* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = {1, 0, 0};
  return kOk;
}

LiteRtStatus GetHardwareSupport(const void*, int32_t* hardware) {
  if (hardware == nullptr) return kInvalidArgument;
  *hardware = kHardwareCpu;
  return kOk;
}

LiteRtStatus CompilesJustInTime(const void*, bool* does) {
  if (does == nullptr) return kInvalidArgument;
  *does = true;
  return kOk;
}

void Destroy(void* delegate) { FuseliteDelegateDelete(static_cast<TfLiteDelegate*>(delegate)); }

LiteRtStatus CreateDelegate(RuntimeContext* runtime, void* /*environment*/,
                            const void* /*accelerator*/, void* options, void** wrapper) {
  if (const LiteRtStatus status = CheckRuntime(runtime); status != kOk) return status;
  if (wrapper == nullptr) return kInvalidArgument;
  CpuOptions cpu;
  if (const LiteRtStatus status = ReadCpuOptions(*runtime, options, cpu); status != kOk) {
    return Refuse(status, "the options for the CPU cannot be read");
  }
  *wrapper = nullptr;
  if (!cpu.wants_delegate) return kOk;
  FuseliteDelegateOptions ours = FuseliteDelegateOptionsDefault();
  if (cpu.num_threads > 0) ours.num_threads = cpu.num_threads;
  ours.node_name = kCpuNodeName;
  ours.report_error = [](const char* message) { Refuse(kInvalidArgument, message); };
  TfLiteDelegate* delegate = FuseliteDelegateCreate(&ours);
  if (delegate == nullptr) return kRuntimeFailure;
  const LiteRtStatus status = runtime->wrap_delegate(delegate, Destroy, wrapper);
  if (status != kOk) FuseliteDelegateDelete(delegate);
  return status;
}

}  // namespace

// What LiteRT looks up.
// NOLINTBEGIN(readability-identifier-naming): the name is the interface's
extern "C" FUSELITE_EXPORT const AcceleratorDefinition LiteRtAcceleratorImpl;
const AcceleratorDefinition LiteRtAcceleratorImpl = {
    .header = {.struct_size = sizeof(AcceleratorDefinition),
               .major_version = 1,
               .minor_version = 0,
               .reserved = 0},
    .get_name = GetName,
    .get_version = GetVersion,
    .get_hardware_support = GetHardwareSupport,
    .compiles_just_in_time = CompilesJustInTime,
    .create_delegate = CreateDelegate,
    .metrics = {},
    .buffer_handlers = {},
};
// NOLINTEND(readability-identifier-naming)

}  // namespace fuselite::litert
