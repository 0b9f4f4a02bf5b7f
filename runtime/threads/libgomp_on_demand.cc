// GCC's OpenMP runtime, loaded when the first region asks for threads. The shared libraries have
// this in place of a link to libgomp, which takes a fifth of the time in which a host loads them,
// and which a model that runs on one or two threads never calls.
//
// These are the functions that g++ calls for what parallel_openmp.cc writes. The libraries do not
// export them: a host's own OpenMP is not touched. Where there is no libgomp, threads of the
// standard library stand in.
#include <dlfcn.h>

#include "runtime/threads/parallel_team.h"

namespace {

using Body = void (*)(void*);

struct Runtime {
  void (*parallel)(Body body, void* data, unsigned threads, unsigned flags) = nullptr;
  int (*thread)() = nullptr;
  int (*threads)() = nullptr;
  bool whole() const { return parallel && thread && threads; }
};

template <class Function>
void Find(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(dlsym(library, name));
}

// It stays loaded: the team's threads run its code until the process ends.
Runtime Load() {
  Runtime runtime;
  void* const library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return runtime;
  Find(library, "GOMP_parallel", &runtime.parallel);
  Find(library, "omp_get_thread_num", &runtime.thread);
  Find(library, "omp_get_num_threads", &runtime.threads);
  return runtime;
}

const Runtime& Loaded() {
  static const Runtime runtime = Load();
  return runtime;
}

// This thread's number and its team's size, without libgomp.
thread_local int own_index = 0, own_count = 1;

}  // namespace

extern "C" {

void GOMP_parallel(Body body, void* data, unsigned threads, unsigned flags) {
  const Runtime& runtime = Loaded();
  if (runtime.whole()) return runtime.parallel(body, data, threads, flags);
  fuselite::internal::RunPlainTeam(static_cast<int>(threads), [&](int index, int count) {
    own_index = index;
    own_count = count;
    body(data);
  });
}

int omp_get_thread_num() { return Loaded().whole() ? Loaded().thread() : own_index; }

int omp_get_num_threads() { return Loaded().whole() ? Loaded().threads() : own_count; }

}  // extern "C"
