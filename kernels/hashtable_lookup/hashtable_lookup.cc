// HASHTABLE_LOOKUP: (lookups, keys, rows): for each lookup the row of its key, zeros where there is
// none; whether there was one. Keys are sorted.
#include <cstring>

#include "kernels/make_kernel.h"
#include "kernels/movement/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kI32 = DataType::kInt32;
constexpr TypeRow kTypes[] = {{{kI32, kI32}, DataType::kNone}};

Status InferLookup(OpDescription& op) {
  const Shape& lookups = op.inputs[0].shape;
  const TensorInfo& rows = op.inputs[2];
  if (lookups.rank() != 1 || op.inputs[1].shape.rank() != 1 || rows.shape.rank() < 1 ||
      rows.shape[0] != op.inputs[1].shape[0]) {
    return InvalidArgument("lookups ", lookups, ", keys ", op.inputs[1].shape, ", rows ",
                           rows.shape);
  }
  FUSELITE_RETURN_IF_ERROR(ElementBytes(rows.type).status());
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kUInt8, lookups));
  Shape shape = rows.shape;
  shape.set(0, lookups[0]);
  return SetOutput(op, 0, rows.type, shape);
}

// The place of `key` among `count` sorted ones, or -1. Of equal ones, that which halving meets
// first.
int64_t Find(const int32_t* keys, int64_t count, int32_t key) {
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (keys[middle] == key) return middle;
    (key < keys[middle] ? high : low) = key < keys[middle] ? middle : middle + 1;
  }
  return -1;
}

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("HASHTABLE_LOOKUP takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  FUSELITE_ASSIGN_OR_RETURN(const int bytes, ElementBytes(op.inputs[2].type));
  const Shape& rows = op.inputs[2].shape;
  return MakeKernel("hashtable_lookup", {.units = op.inputs[0].elements(), .grain = 256},
                    [count = int64_t{rows[0]}, row_bytes = bytes * rows.elements(1, rows.rank())](
                        const KernelArgs& args, int64_t begin, int64_t end) -> Status {
                      if (count == 0) return InvalidArgument("a table without rows");
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t row = Find(static_cast<const int32_t*>(args.inputs[1]), count,
                                                 static_cast<const int32_t*>(args.inputs[0])[i]);
                        auto* out = static_cast<std::byte*>(args.outputs[0]) + i * row_bytes;
                        if (row < 0) {
                          std::memset(out, 0, row_bytes);
                        } else {
                          std::memcpy(
                              out, static_cast<const std::byte*>(args.inputs[2]) + row * row_bytes,
                              row_bytes);
                        }
                        static_cast<uint8_t*>(args.outputs[1])[i] = row < 0 ? 0 : 1;
                      }
                      return Status();
                    });
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& HashtableLookupOperator() {
  static constexpr OperatorDef kDef = {
      .name = "HASHTABLE_LOOKUP",
      .builtin_code = tflite::kTfLiteBuiltinHashtableLookup,
      .min_inputs = 3,
      .max_inputs = 3,
      .min_outputs = 2,
      .max_outputs = 2,
      .types = kTypes,
      .limits = "rank 1; rows of any type of 8 bits or more",
      .infer = InferLookup,
      .candidates = kCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
