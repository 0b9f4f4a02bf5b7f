// Where emitted code lies: in pages that are at no time writable and executable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/support/status.h"

namespace fuselite::jit {

// Places `bytes` in memory that ends read+execute and is at no time writable and executable:
// returns its address, a multiple of the page size, and in `mapped` how much to release. Fails with
// kUnsupported where the system refuses executable memory.
Result<uint8_t*> MapExecutable(std::span<const uint8_t> bytes, size_t* mapped);

// Whether MapExecutable works now: its failure where it does not. Takes about 10 us.
Status CheckExecutableMemory();

// Unmaps what MapExecutable or a batch has placed.
void ReleaseCode(uint8_t* base, size_t mapped);

// While one lives, code that this thread places stays writable, and becomes executable with all the
// others at once: for a model's hundred functions that takes 0.3 ms less. Nobody may run such code
// before Close(), or before MakeExecutable() of it. Batches of one thread nest.
class CodeBatch {
 public:
  CodeBatch();
  CodeBatch(const CodeBatch&) = delete;
  CodeBatch& operator=(const CodeBatch&) = delete;
  ~CodeBatch();

  // Makes the code executable. Fails where the system has come to refuse that.
  Status Close();

  // For code that another thread may just have placed: makes it executable where an open batch has
  // it that is not this thread's innermost one.
  static Status MakeExecutable(std::span<const uint8_t> code);

 private:
  friend Result<uint8_t*> MapExecutable(std::span<const uint8_t> bytes, size_t* mapped);
  friend void ReleaseCode(uint8_t* base, size_t mapped);
  static void EndInChild();
  bool IsOfThisThread() const;
  Status ProtectPages();  // under the mutex of all batches, or in a process of one thread

  std::vector<std::span<uint8_t>> pages_;  // guarded by the mutex of all batches
  CodeBatch* outer_;
};

}  // namespace fuselite::jit
