// A library that a host loads, uses and unloads: what a delegate is.
#include "runtime/threads/parallel.h"
#include "runtime/weights/build_identity.h"

extern "C" __attribute__((visibility("default"))) int RunRegion(int threads) {
  return fuselite::ParallelRegion(threads, [](int, int) {});
}

extern "C" __attribute__((visibility("default"))) uint64_t IdentityOfThis() {
  return fuselite::BuildIdentity().low;
}
