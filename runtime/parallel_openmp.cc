// The only OpenMP in the library.
#include <omp.h>

#include "runtime/parallel_team.h"

namespace fuselite::internal {

void RunOpenMpTeam(int threads, FunctionRef<void(int index, int count)> body) {
#pragma omp parallel num_threads(threads)
  body(omp_get_thread_num(), omp_get_num_threads());
}

}  // namespace fuselite::internal
