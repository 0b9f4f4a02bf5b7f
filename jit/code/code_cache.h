// Emitted code: generated once per key, shared by the process, never writable while executable.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "jit/code/code_pages.h"
#include "runtime/support/shared_by_key.h"
#include "runtime/support/status.h"

namespace fuselite::jit {

// Machine code before it is placed: position-independent bytes and the offsets of its functions.
struct CodeBytes {
  std::vector<uint8_t> bytes;
  std::vector<size_t> entries;
};

// Placed code: mapped read+execute, unmapped with its last owner.
class Code {
 public:
  ~Code();
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  template <class Function>
  Function* entry(size_t i) const {
    return reinterpret_cast<Function*>(base_ + entries_[i]);
  }
  std::span<const uint8_t> bytes() const { return {base_, size_}; }

 private:
  friend class CodeCache;
  Code(uint8_t* base, size_t size, size_t mapped, std::vector<size_t> entries)
      : base_(base), size_(size), mapped_(mapped), entries_(std::move(entries)) {}
  uint8_t* base_;
  size_t size_, mapped_;
  std::vector<size_t> entries_;
};

using SharedCode = std::shared_ptr<const Code>;

class CodeCache {
 public:
  using Map = Result<uint8_t*>(std::span<const uint8_t> bytes, size_t* mapped);
  using Emit = std::function<Result<CodeBytes>()>;

  // `map` is replaced in tests only.
  explicit CodeCache(Map* map = MapExecutable) : map_(map) {}

  // The code for `key`, emitted by the first who asks; others with the same key wait for it, those
  // with another are not held up. A failure is returned to those who waited and tried again by the
  // next. `name` names the code in dumps and profiles. Exceptions of the assembler become
  // kInternal, and want of memory kOutOfMemory.
  //
  // FUSELITE_JIT_DUMP=<folder> writes each blob to <folder>/<name>.<hash of key>.bin;
  // FUSELITE_JIT_PROFILE=perfmap appends its place to /tmp/perf-<pid>.map. Both are best effort.
  Result<SharedCode> GetOrEmit(const std::string& key, const std::string& name, const Emit& emit);

 private:
  Result<SharedCode> Place(const std::string& key, const std::string& name, const Emit& emit);

  Map* map_;
  SharedByKey<std::string, Code, std::unordered_map> codes_;
};

CodeCache& ProcessCodeCache();

}  // namespace fuselite::jit
