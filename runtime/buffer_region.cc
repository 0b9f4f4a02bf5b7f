#include "runtime/buffer_region.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/aligned_buffer.h"

namespace fuselite {
namespace {

// Behind the huge pages, small ones for what reaches over their end: one short of a huge page.
constexpr size_t kBeyond = kHugePage - 4096;

struct Memory {
  explicit Memory(size_t huge_bytes) : huge(huge_bytes), pages(huge_bytes + kBeyond) {}
  size_t huge;
  AlignedBuffer pages;
  size_t used = 0;                  // guarded by the regions' mutex
  const std::byte* last = nullptr;  // what was taken last
  int holders = 1;                  // the buffers inside, and the region while it is open
};

// By their first byte, from the last to the first, so that a lower bound finds whose an address is.
struct Regions {
  std::mutex mutex;
  std::map<const std::byte*, std::unique_ptr<Memory>, std::greater<>> all;  // guarded by `mutex`
};

Regions& AllRegions() {
  // Never destroyed: threads of the host may outlive static destruction.
  static auto* const regions = new Regions;
  return *regions;
}

thread_local Memory* open = nullptr;

}  // namespace

BufferRegion::BufferRegion(size_t bytes) {
#ifndef __SANITIZE_ADDRESS__  // which tells buffers apart by what lies between them
  const size_t pages = bytes / kHugePage;
  if (pages == 0 || open != nullptr) return;
  auto memory = std::make_unique<Memory>(pages * kHugePage);
  const std::byte* const first = memory->pages.data();
  if (first == nullptr) return;
  open = memory.get();
  opened_ = true;
  Regions& regions = AllRegions();
  const std::lock_guard lock(regions.mutex);
  regions.all.emplace(first, std::move(memory));
#endif
}

BufferRegion::~BufferRegion() {
  if (opened_) Release(std::exchange(open, nullptr)->pages.data());
}

std::byte* BufferRegion::Take(size_t bytes) {
  if (open == nullptr) return nullptr;
  const std::lock_guard lock(AllRegions().mutex);
  if (open->used >= open->huge || bytes > open->pages.size() - open->used) return nullptr;
  std::byte* const data = open->pages.data() + open->used;
  open->used += AlignUp(bytes);
  open->last = data;
  ++open->holders;
  return data;
}

bool BufferRegion::Release(const std::byte* data) {
  Regions& regions = AllRegions();
  std::unique_ptr<Memory> unused;  // freed when nothing is locked
  const std::lock_guard lock(regions.mutex);
  const auto region = regions.all.lower_bound(data);
  if (region == regions.all.end()) return false;
  const AlignedBuffer& pages = region->second->pages;
  if (data >= pages.data() + pages.size()) return false;
  // What a packing needs for a moment leaves no gap.
  if (data == region->second->last) region->second->used = data - pages.data();
  if (--region->second->holders > 0) return true;
  unused = std::move(region->second);
  regions.all.erase(region);
  return true;
}

}  // namespace fuselite
