// The only OpenMP in the library. Built without it (FUSELITE_OPENMP=none), a team is made of
// threads of the standard library: ThreadSanitizer understands these, and nothing has to be
// shipped.
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/threads/parallel_team.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace fuselite::internal {

void RunPlainTeam(int threads, FunctionRef<void(int index, int count)> body) {
  std::vector<std::thread> others;
  others.reserve(static_cast<size_t>(threads));
  try {
    for (int i = 1; i < threads; ++i) others.emplace_back([=] { body(i, threads); });
  } catch (const std::system_error&) {  // the system refuses more
  }
  body(0, threads);
  for (std::thread& other : others) other.join();
}

void RunOpenMpTeam(int threads, FunctionRef<void(int index, int count)> body) {
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
  body(omp_get_thread_num(), omp_get_num_threads());
#else
  RunPlainTeam(threads, body);
#endif
}

}  // namespace fuselite::internal
