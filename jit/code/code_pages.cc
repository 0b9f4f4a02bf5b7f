#include "jit/code/code_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "runtime/support/process_lock.h"

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
    const ProcessLock lock(mutex_);
    if (bytes > static_cast<size_t>(end_ - next_) && !Renew(bytes)) return nullptr;
    next_ += bytes;
    if (next_ > present_) Populate();
    return next_ - bytes;
  }

 private:
  // Pages that are not touched cost nothing.
  static constexpr size_t kBytes = size_t{1} << 20;
  // Several functions' pages at a time: the call takes as long as some pages.
  static constexpr ptrdiff_t kAhead = 1 << 15;

  bool Renew(size_t bytes) {
    const size_t mapped = std::max(bytes, kBytes);
    void* memory =
        mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    if (end_ != next_) munmap(next_, static_cast<size_t>(end_ - next_));
    next_ = present_ = static_cast<uint8_t*>(memory);
    end_ = next_ + mapped;
    return true;
  }

  // All pages will be written: to have them at once takes less time than faults for them, where the
  // system knows the advice (Linux 5.14).
  void Populate() {
#ifdef MADV_POPULATE_WRITE
    uint8_t* const to = next_ + std::min(end_ - next_, kAhead);
    (void)madvise(present_, static_cast<size_t>(to - present_), MADV_POPULATE_WRITE);
    present_ = to;
#endif
  }

  std::mutex mutex_;
  uint8_t *next_ = nullptr, *end_ = nullptr;  // what is left
  uint8_t* present_ = nullptr;                // up to here pages are there
};

// Guards OpenBatches() and the pages of each batch.
std::mutex& BatchMutex() {
  static auto* const mutex = new std::mutex();  // outlives every static that may hold code
  return *mutex;
}
std::vector<CodeBatch*>& OpenBatches() {
  static auto* const batches = new std::vector<CodeBatch*>();
  return *batches;
}
std::atomic<int> open_batches{0};
thread_local CodeBatch* innermost = nullptr;
// Whether pages that were written became executable here: else nothing may wait for it.
std::atomic<bool> pages_become_executable{false};

bool Protect(uint8_t* memory, size_t mapped) {
  return mprotect(memory, mapped, PROT_READ | PROT_EXEC) == 0;
}

// Read+write. Null where there is no memory.
uint8_t* WriteToPages(std::span<const uint8_t> bytes, size_t mapped) {
  static auto* const pages = new CodePages();  // outlives every static that may hold code
  uint8_t* const memory = pages->Take(mapped);
  if (memory != nullptr) std::memcpy(memory, bytes.data(), bytes.size());
  return memory;
}

// Null where the system forbids pages to become executable.
uint8_t* WriteThenProtect(std::span<const uint8_t> bytes, size_t mapped) {
  uint8_t* const memory = WriteToPages(bytes, mapped);
  if (memory == nullptr) return nullptr;
  pages_become_executable = Protect(memory, mapped);
  if (pages_become_executable) return memory;
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

Status Refused() {
  return Unsupported("this system refuses executable memory (", std::strerror(errno), ")");
}

}  // namespace

Result<uint8_t*> MapExecutable(std::span<const uint8_t> bytes, size_t* mapped) {
  *mapped = MappedSize(bytes.size());
  if (innermost != nullptr && pages_become_executable) {
    uint8_t* const memory = WriteToPages(bytes, *mapped);
    if (memory == nullptr) return OutOfMemory("emitted code needs ", *mapped, " bytes");
    const ProcessLock lock(BatchMutex());
    innermost->pages_.emplace_back(memory, *mapped);
    return memory;
  }
  if (uint8_t* memory = WriteThenProtect(bytes, *mapped)) return memory;
  if (uint8_t* memory = MapMemoryFile(bytes, *mapped)) return memory;
  return Refused();
}

Status CheckExecutableMemory() {
  constexpr uint8_t kReturn[] = {0xC3};
  CodeBatch* const waiting = std::exchange(innermost, nullptr);
  size_t mapped = 0;
  const Result<uint8_t*> memory = MapExecutable(kReturn, &mapped);
  innermost = waiting;
  if (memory.ok()) munmap(*memory, mapped);
  return memory.status();
}

void ReleaseCode(uint8_t* base, size_t mapped) {
  if (open_batches > 0) {
    const ProcessLock lock(BatchMutex());
    for (CodeBatch* batch : OpenBatches()) {
      std::erase_if(batch->pages_, [&](std::span<uint8_t> pages) { return pages.data() == base; });
    }
  }
  munmap(base, mapped);
}

// A child has no threads that would end their batches, and their code in its caches.
void CodeBatch::EndInChild() {
  std::erase_if(OpenBatches(), [](CodeBatch* batch) {
    (void)batch->ProtectPages();
    return !batch->IsOfThisThread();
  });
  open_batches = static_cast<int>(OpenBatches().size());
}

bool CodeBatch::IsOfThisThread() const {
  const CodeBatch* batch = innermost;
  while (batch != nullptr && batch != this) batch = batch->outer_;
  return batch != nullptr;
}

CodeBatch::CodeBatch() : outer_(innermost) {
  static ForkHandler handler{.before = [] {}, .in_parent = [] {}, .in_child = &EndInChild};
  [[maybe_unused]] static const bool is_added = (AddForkHandler(handler), true);
  const ProcessLock lock(BatchMutex());
  OpenBatches().push_back(this);
  ++open_batches;
  innermost = this;
}

CodeBatch::~CodeBatch() {
  (void)Close();
  innermost = outer_;
  const ProcessLock lock(BatchMutex());
  std::erase(OpenBatches(), this);
  --open_batches;
}

Status CodeBatch::Close() {
  const ProcessLock lock(BatchMutex());
  return ProtectPages();
}

Status CodeBatch::ProtectPages() {
  std::ranges::sort(pages_, {}, [](std::span<uint8_t> pages) { return pages.data(); });
  bool all = true;
  for (size_t i = 0; i < pages_.size();) {
    uint8_t* const begin = pages_[i].data();
    uint8_t* end = begin;
    for (; i < pages_.size() && pages_[i].data() == end; ++i) end += pages_[i].size();
    all &= Protect(begin, static_cast<size_t>(end - begin));
  }
  pages_.clear();
  return all ? Status() : Refused();
}

Status CodeBatch::MakeExecutable(std::span<const uint8_t> code) {
  if (open_batches == 0) return Status();
  const ProcessLock lock(BatchMutex());
  for (CodeBatch* batch : OpenBatches()) {
    if (batch == innermost) continue;
    const auto at = std::ranges::find(batch->pages_, code.data(),
                                      [](std::span<uint8_t> pages) { return pages.data(); });
    if (at == batch->pages_.end()) continue;
    if (!Protect(at->data(), at->size())) return Refused();
    batch->pages_.erase(at);
  }
  return Status();
}

}  // namespace fuselite::jit
