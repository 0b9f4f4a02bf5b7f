#include "jit/code/code_cache.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>

#include "runtime/environment.h"
#include "runtime/hash.h"
#include "runtime/log.h"
#include "runtime/write_file.h"

namespace fuselite::jit {
namespace {

size_t MappedSize(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

// Where functions of emitted code lie side by side: one mapping for many, each on pages of its own,
// which are read+write until they are made read+execute, once. Owners unmap their pages one by one,
// in any order; who asks for more than the rest of a mapping gets another one.
class CodePages {
 public:
  // Pages that nobody has had, read+write. Null where there is no memory. `bytes` is a multiple of
  // the page size.
  uint8_t* Take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > static_cast<size_t>(end_ - next_) && !Renew(bytes)) return nullptr;
    next_ += bytes;
    return next_ - bytes;
  }

 private:
  // Pages that are not touched cost nothing.
  static constexpr size_t kBytes = size_t{1} << 20;

  bool Renew(size_t bytes) {
    const size_t mapped = std::max(bytes, kBytes);
    void* memory =
        mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    if (end_ != next_) munmap(next_, static_cast<size_t>(end_ - next_));
    next_ = static_cast<uint8_t*>(memory);
    end_ = next_ + mapped;
    return true;
  }

  std::mutex mutex_;
  uint8_t *next_ = nullptr, *end_ = nullptr;  // what is left
};

// Null where the system forbids pages to become executable. All pages will be written: to have them
// at once takes less time than faults for them, where the system knows the advice (Linux 5.14).
uint8_t* WriteThenProtect(std::span<const uint8_t> bytes, size_t mapped) {
  static auto* const pages = new CodePages();  // outlives every static that may hold code
  uint8_t* const memory = pages->Take(mapped);
  if (memory == nullptr) return nullptr;
#ifdef MADV_POPULATE_WRITE
  (void)madvise(memory, mapped, MADV_POPULATE_WRITE);
#endif
  std::memcpy(memory, bytes.data(), bytes.size());
  if (mprotect(memory, mapped, PROT_READ | PROT_EXEC) == 0) return memory;
  munmap(memory, mapped);
  return nullptr;
}

// Systems that forbid pages to become executable (SELinux's execmem, PR_SET_MDWE) may still map a
// file as executable from the start.
uint8_t* MapMemoryFile(std::span<const uint8_t> bytes, size_t mapped) {
  const int file = memfd_create("fuselite-jit", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(mapped)) == 0 &&
      write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
    memory = mmap(nullptr, mapped, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  }
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
}

std::string FileName(const std::string& name) {
  std::string result;
  for (char c : name) result += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return result;
}

void Dump(const std::string& key, const std::string& name, std::span<const uint8_t> bytes) {
  const std::optional<std::string> folder = ReadEnvironment("JIT_DUMP");
  if (!folder) return;
  char hash[17];
  std::snprintf(hash, sizeof(hash), "%016zx", std::hash<std::string>()(key));
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

Result<uint8_t*> MapExecutable(std::span<const uint8_t> bytes, size_t* mapped) {
  *mapped = MappedSize(bytes.size());
  if (uint8_t* memory = WriteThenProtect(bytes, *mapped)) return memory;
  if (uint8_t* memory = MapMemoryFile(bytes, *mapped)) return memory;
  return Unsupported("this system refuses executable memory (", std::strerror(errno), ")");
}

Status CheckExecutableMemory() {
  constexpr uint8_t kReturn[] = {0xC3};
  size_t mapped = 0;
  FUSELITE_ASSIGN_OR_RETURN(uint8_t* const memory, MapExecutable(kReturn, &mapped));
  munmap(memory, mapped);
  return Status();
}

Code::~Code() { munmap(base_, mapped_); }

Result<SharedCode> CodeCache::GetOrEmit(const std::string& key, const std::string& name,
                                        const Emit& emit) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Entry>& slot = entries_[key];
    if (slot == nullptr) slot = std::make_shared<Entry>();
    entry = slot;
  }
  const std::lock_guard lock(entry->mutex);
  if (SharedCode code = entry->code.lock()) return code;
  FUSELITE_ASSIGN_OR_RETURN(SharedCode code, Place(key, name, emit));
  entry->code = code;
  Sweep();
  return code;
}

Result<SharedCode> CodeCache::Place(const std::string& key, const std::string& name,
                                    const Emit& emit) {
  Result<CodeBytes> emitted = [&]() -> Result<CodeBytes> {
    try {
      return emit();
    } catch (const std::exception& error) {
      return Internal("emitting ", name, ": ", error.what());
    }
  }();
  if (!emitted.ok()) return emitted.status();
  size_t mapped = 0;
  FUSELITE_ASSIGN_OR_RETURN(uint8_t * base, map_(emitted->bytes, &mapped));
  SharedCode code(new Code(base, emitted->bytes.size(), mapped, std::move(emitted->entries)));
  Dump(key, name, code->bytes());
  AppendPerfMap(name, code->bytes());
  return code;
}

void CodeCache::Sweep() {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const auto& item) {
    return item.second.use_count() == 1 && item.second->code.expired();
  });
}

CodeCache& ProcessCodeCache() {
  static auto* const cache = new CodeCache();  // outlives every static that may hold code
  return *cache;
}

}  // namespace fuselite::jit
