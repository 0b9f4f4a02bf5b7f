#include "jit/code/code_cache.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "runtime/support/caught.h"
#include "runtime/support/environment.h"
#include "runtime/support/log.h"
#include "runtime/support/process_lock.h"
#include "runtime/support/write_file.h"
#include "runtime/weights/hash.h"

namespace fuselite::jit {
namespace {

std::string FileName(const std::string& name) {
  std::string result;
  for (char c : name) result += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return result;
}

void Dump(const std::string& key, const std::string& name, std::span<const uint8_t> bytes) {
  const std::optional<std::string> folder = ReadEnvironment("JIT_DUMP");
  if (!folder) return;
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016zx",
                static_cast<size_t>(HashBytes(key.data(), key.size()).low));
  std::error_code exists;
  std::filesystem::create_directories(*folder, exists);
  const std::string path = *folder + "/" + FileName(name) + "." + hash + ".bin";
  const Status status = WriteFile(path, {AsText(std::as_bytes(bytes))});
  if (!status.ok()) {
    FUSELITE_LOG(kWarning) << status.message();
  }
}

void AppendPerfMap(const std::string& name, std::span<const uint8_t> bytes) {
  const std::optional<std::string> form = ReadEnvironment("JIT_PROFILE");
  if (!form) return;
  if (*form != "perfmap") {
    FUSELITE_LOG(kWarning) << "FUSELITE_JIT_PROFILE is '" << *form << "', expected perfmap";
    return;
  }
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  if (std::FILE* file = std::fopen(path.c_str(), "a")) {
    std::fprintf(file, "%zx %zx fuselite: %s\n", reinterpret_cast<size_t>(bytes.data()),
                 bytes.size(), name.c_str());
    std::fclose(file);
  }
}

}  // namespace

Code::~Code() { ReleaseCode(base_, mapped_); }

Result<SharedCode> CodeCache::GetOrEmit(const std::string& key, const std::string& name,
                                        const Emit& emit) {
  const auto slot = codes_.SlotFor(key);
  const ProcessLock lock(slot->making);
  if (SharedCode code = slot->value.lock()) {
    FUSELITE_RETURN_IF_ERROR(CodeBatch::MakeExecutable(code->bytes()));
    return code;
  }
  FUSELITE_ASSIGN_OR_RETURN(SharedCode code, Place(key, name, emit));
  slot->value = code;
  return code;
}

Result<SharedCode> CodeCache::Place(const std::string& key, const std::string& name,
                                    const Emit& emit) {
  Result<CodeBytes> emitted = Guarded("emitting " + name, emit);
  if (!emitted.ok()) return emitted.status();
  size_t mapped = 0;
  FUSELITE_ASSIGN_OR_RETURN(uint8_t * base, map_(emitted->bytes, &mapped));
  SharedCode code(new Code(base, emitted->bytes.size(), mapped, std::move(emitted->entries)));
  Dump(key, name, code->bytes());
  AppendPerfMap(name, code->bytes());
  return code;
}

CodeCache& ProcessCodeCache() {
  static auto* const cache = new CodeCache();  // outlives every static that may hold code
  return *cache;
}

}  // namespace fuselite::jit
