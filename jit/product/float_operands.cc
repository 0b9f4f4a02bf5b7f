#include "jit/product/float_operands.h"

#include "jit/code/assembler.h"
#include "kernels/widened.h"

namespace fuselite::jit {

Status CheckBf16(const kernels::PlanContext& context) {
  if (context.precision != kernels::Precision::kFast) {
    return Unsupported("bfloat16 arithmetic is for the option precision=fast");
  }
  if (!context.isa.has(Feature::kAvx512Bf16)) {
    return Unsupported("bfloat16 arithmetic needs AVX512-BF16 (isa=", IsaName(context.isa), ")");
  }
  return Status();
}

Status CheckFloats(const kernels::OpDescription& op, const TensorInfo& x,
                   const kernels::PlanContext& context) {
  if (!VectorIsa::Supported(context.isa)) {
    return Unsupported("nothing is emitted below avx2 (isa=", IsaName(context.isa), ")");
  }
  for (const DataType type : {x.type, op.outputs[0].type}) {
    if (type != DataType::kFloat32 && type != DataType::kBFloat16) {
      return Unsupported("takes float32, not ", DataTypeName(type));
    }
  }
  return kernels::AnyBFloat16(op) ? CheckBf16(context) : Status();
}

}  // namespace fuselite::jit
