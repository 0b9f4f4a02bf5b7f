#include "runtime/threads/parallel.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <utility>

#include "runtime/cpu/cpu_topology.h"
#include "runtime/support/log.h"
#include "runtime/support/process_lock.h"
#include "runtime/threads/parallel_team.h"

namespace fuselite {
namespace {

using internal::Team;

// Teams that no region uses. Never destroyed: threads of the host may outlive static destruction.
class TeamPool {
 public:
  static TeamPool& Get() {
    static TeamPool* const pool = new TeamPool;
    return *pool;
  }

  // How many threads a region gets that asks for `wanted`: all of them while no other region runs,
  // later ones what is left of the cores. Requests in parallel then run side by side on a core
  // each instead of taking turns on all cores.
  class Grant {
   public:
    Grant(TeamPool& pool, int wanted) : pool_(pool) {
      const int busy = pool_.busy_.load(std::memory_order_relaxed);
      threads_ = busy == 0 ? wanted : std::clamp(pool_.cores_.load() - busy, 1, wanted);
      pool_.busy_.fetch_add(threads_, std::memory_order_relaxed);
    }
    Grant(const Grant&) = delete;
    Grant& operator=(const Grant&) = delete;
    ~Grant() { pool_.busy_.fetch_sub(threads_, std::memory_order_relaxed); }
    int threads() const { return threads_; }

   private:
    TeamPool& pool_;
    int threads_;
  };
  bool HasCoreForEach(int threads) const {
    return threads <= cores_.load(std::memory_order_relaxed);
  }

  // A team with at least `helpers` helpers; nullptr where the system refuses threads, or memory.
  Team* Acquire(int helpers) {
    Team* outgrown = nullptr;
    {
      const std::lock_guard lock(mutex_);
      for (int i = 0; i < idle_count_; ++i) {
        if (idle_[i]->helpers() >= helpers) return TakeIdle(i);
      }
      if (idle_count_ > 0) outgrown = TakeIdle(0);
    }
    // A larger team does what the smaller one did, so the number of threads stays bounded.
    if (outgrown != nullptr) outgrown->Retire();
    try {
      cores_ = AllowedCores();
      return Team::Create(helpers);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  void Release(Team* team) {
    {
      const std::lock_guard lock(mutex_);
      if (idle_count_ < static_cast<int>(idle_.size())) {
        idle_[idle_count_++] = team;
        return;
      }
    }
    team->Retire();
  }

  void RetireIdle() {
    const std::lock_guard lock(mutex_);
    while (idle_count_ > 0) idle_[--idle_count_]->Retire();
  }

 private:
  TeamPool() : cores_(AllowedCores()) {
    // A child has none of its parent's helpers; the teams' memory is left as it is.
    static ForkHandler handler{.before = [] { Get().mutex_.lock(); },
                               .in_parent = [] { Get().mutex_.unlock(); },
                               .in_child =
                                   [] {
                                     Get().idle_count_ = 0;
                                     Get().busy_ = 0;
                                     Get().mutex_.unlock();
                                   }};
    AddForkHandler(handler);
  }

  // The last one used comes first: its helpers may still be spinning.
  Team* TakeIdle(int index) {
    Team* const team = idle_[index];
    std::swap(idle_[index], idle_[--idle_count_]);
    return team;
  }

  std::mutex mutex_;
  std::array<Team*, 64> idle_{};  // guarded by mutex_
  int idle_count_ = 0;            // guarded by mutex_
  std::atomic<int> busy_{0};      // threads inside regions
  std::atomic<int> cores_;
};

uint64_t Tagged(uint32_t tag, int64_t value) {
  return uint64_t{tag} << 32 | static_cast<uint32_t>(value);
}

// What a cell says to who uses `tag`: zero if it was written under another one.
int64_t Untagged(uint32_t tag, uint64_t word) {
  return word >> 32 == tag ? static_cast<int64_t>(word & 0xFFFFFFFFu) : 0;
}

}  // namespace

int AllowedCores() { return internal::AllowedCoreCount(); }

bool HasCoreForEach(int threads) { return TeamPool::Get().HasCoreForEach(threads); }

void ReleaseIdleThreads() { TeamPool::Get().RetireIdle(); }

int ParallelRegion(int threads, FunctionRef<void(int, int)> body) {
  if (threads <= 1) {
    body(0, 1);
    return 1;
  }
  TeamPool& pool = TeamPool::Get();
  const TeamPool::Grant grant(pool, threads);
  Team* const team = grant.threads() > 1 ? pool.Acquire(grant.threads() - 1) : nullptr;
  if (team == nullptr) {
    if (grant.threads() > 1) {
      FUSELITE_LOG(kWarning) << "the system refuses threads: one does all the work";
    }
    body(0, 1);
    return 1;
  }
  team->Run(grant.threads(), body);
  pool.Release(team);
  return grant.threads();
}

SharedWork::SharedWork(WorkCell* cells, uint32_t tag, int64_t units, int64_t grain, int threads)
    : cells_(cells), tag_(tag), threads_(threads), units_(units) {
  // Sixteen blocks for each thread leave at most a few per cent of a list to wait for.
  block_ = std::max({int64_t{1}, grain, units / (int64_t{16} * threads)});
  blocks_ = (units + block_ - 1) / block_;
}

bool SharedWork::Claim(int part, Range& range) {
  std::atomic<uint64_t>& cell = cells_[part].word;
  const int64_t begin = PartBegin(part), size = PartBegin(part + 1) - begin;
  uint64_t word = cell.load(std::memory_order_relaxed);
  while (true) {
    const int64_t taken = Untagged(tag_, word);
    if (taken >= size) return false;
    // Halves: few claims while there is much left, small ones near the end.
    const int64_t take = (size - taken + 1) / 2;
    if (cell.compare_exchange_weak(word, Tagged(tag_, taken + take), std::memory_order_relaxed)) {
      range.begin = (begin + taken) * block_;
      range.end = std::min(units_, (begin + taken + take) * block_);
      return true;
    }
  }
}

void SharedWork::Finish(int thread, int64_t units) {
  const int64_t blocks = (units + block_ - 1) / block_;
  cells_[threads_ + thread].word.store(Tagged(tag_, blocks), std::memory_order_seq_cst);
}

bool SharedWork::Begun() const {
  return Untagged(tag_, cells_[0].word.load(std::memory_order_relaxed)) > 0;
}

bool SharedWork::Done() const {
  int64_t done = 0;
  for (int thread = 0; thread < threads_; ++thread) {
    done += Untagged(tag_, cells_[threads_ + thread].word.load(std::memory_order_seq_cst));
  }
  return done == blocks_;
}

void ParallelFor(int threads, int64_t units, int64_t grain,
                 FunctionRef<void(int64_t, int64_t)> body) {
  if (units <= 0) return;
  constexpr int kMaxThreads = 63;
  grain = std::max<int64_t>(grain, 1);
  threads =
      static_cast<int>(std::clamp<int64_t>(units / grain, 1, std::clamp(threads, 1, kMaxThreads)));
  if (threads == 1) return body(0, units);
  std::array<WorkCell, SharedWork::kCells * kMaxThreads> cells;
  ParallelRegion(threads, [&](int thread, int count) {
    SharedWork work(cells.data(), 1, units, grain, count);
    SharedWork::Range range;
    for (int i = 0; i < count; ++i) {
      while (work.Claim((thread + i) % count, range)) body(range.begin, range.end);
    }
  });
}

}  // namespace fuselite
