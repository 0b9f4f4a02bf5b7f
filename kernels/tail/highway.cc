#include "kernels/tail/apply.h"

namespace fuselite::kernels {

ApplyTailFunction* ApplyTail(Isa) { return ApplyTailReference; }

}  // namespace fuselite::kernels
