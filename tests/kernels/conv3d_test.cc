// Convolutions of volumes as matrix products against the reference, within the bound of
// docs/design.md.
#include "tests/kernels/conv3d_cases.h"

namespace fuselite::kernels::testing {
namespace {

void Compare(bool transposed) {
  CompareRandomly(
      80, [=](Random& random) { return RandomConv3D(random, transposed); },
      [](OpTester& tester, Random& random) {
        AddRandomTail(tester, random);
        return CompareCandidates(tester, ProductBounds<Conv3DParams>(tester, Conv3DDepth(tester)),
                                 random);
      });
}

TEST(Conv3DTest, AgreesWithTheReference) { Compare(false); }
TEST(Conv3DTest, TransposedAgreesWithTheReference) { Compare(true); }

}  // namespace
}  // namespace fuselite::kernels::testing
