// A library that a host loads, uses and unloads: what a delegate is.
#include "runtime/build_identity.h"
#include "runtime/parallel.h"

extern "C" __attribute__((visibility("default"))) int RunRegion(int threads) {
  return fuselite::ParallelRegion(threads, [](int, int) {});
}

extern "C" __attribute__((visibility("default"))) uint64_t IdentityOfThis() {
  return fuselite::BuildIdentity().low;
}
