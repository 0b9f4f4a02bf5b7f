// STABLEHLO_PAD: (input, value): along each dimension `interior` elements of the value between
// neighbours, `low` before the first and `high` behind the last; negative ones cut elements off.
#include <algorithm>
#include <cstring>

#include "kernels/by_element_bytes.h"
#include "kernels/make_kernel.h"
#include "kernels/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite_abi.h"

namespace fuselite::kernels {
namespace {

struct StablehloPadParams {
  IntList low, high, interior;
};
using tflite::TfLiteStablehloPadParams;
constexpr Field kFields[] = {
    {"edge_padding_low", FieldKind::kLongList, 0, offsetof(StablehloPadParams, low),
     offsetof(TfLiteStablehloPadParams, edge_padding_low)},
    {"edge_padding_high", FieldKind::kLongList, 1, offsetof(StablehloPadParams, high),
     offsetof(TfLiteStablehloPadParams, edge_padding_high)},
    {"interior_padding", FieldKind::kLongList, 2, offsetof(StablehloPadParams, interior),
     offsetof(TfLiteStablehloPadParams, interior_padding)},
};

Status InferStablehloPad(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const auto& params = op.params.as<StablehloPadParams>();
  if (op.inputs[1].type != in.type || op.inputs[1].elements() < 1) {
    return InvalidArgument("the padding's value must be one ", DataTypeName(in.type));
  }
  FUSELITE_RETURN_IF_ERROR(ElementBytes(in.type).status());
  std::vector<int64_t> dims;
  for (int d = 0; d < in.shape.rank(); ++d) {
    for (const IntList* list : {&params.low, &params.high, &params.interior}) {
      if (d >= list->count) return InvalidArgument("no padding of dimension ", d);
    }
    const int64_t interior = params.interior.values[d];
    if (interior < 0) return InvalidArgument("an interior padding of ", interior);
    const int64_t inside = in.shape[d] == 0 ? 0 : (in.shape[d] - 1) * (interior + 1) + 1;
    dims.push_back(std::max<int64_t>(0, inside + params.low.values[d] + params.high.values[d]));
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, in.type, shape);
}

// T: the unsigned integer of the element's width. One unit is a row of the output.
template <class T>
class StablehloPad {
 public:
  explicit StablehloPad(const OpDescription& op)
      : params_(op.params.as<StablehloPadParams>()),
        in_(op.inputs[0].shape),
        out_(op.outputs[0].shape) {}

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    const T value = LoadUnaligned<T>(args.inputs[1], 0);
    const int last = out_.rank() - 1;
    const int64_t width = last < 0 ? 1 : out_[last];
    for (int64_t row = begin; row < end; ++row) {
      T* out = static_cast<T*>(args.outputs[0]) + row * width;
      std::fill_n(out, width, value);
      const int64_t source = SourceRow(row);
      if (source < 0) continue;
      const T* in = static_cast<const T*>(args.inputs[0]) + source * (last < 0 ? 1 : in_[last]);
      if (last < 0) *out = *in;
      for (int64_t i = 0; last >= 0 && i < in_[last]; ++i) {
        const int64_t o = params_.low.values[last] + i * (params_.interior.values[last] + 1);
        if (o >= 0 && o < width) out[o] = in[i];
      }
    }
  }

 private:
  // The input's row that lies in a row of the output; -1 where none does.
  int64_t SourceRow(int64_t row) const {
    int64_t source = 0, stride = 1;
    for (int d = out_.rank() - 2; d >= 0; --d) {
      const int64_t place = row % out_[d] - params_.low.values[d];
      const int64_t step = params_.interior.values[d] + 1;
      if (place < 0 || place % step != 0 || place / step >= in_[d]) return -1;
      source += place / step * stride;
      stride *= in_[d];
      row /= out_[d];
    }
    return source;
  }

  StablehloPadParams params_;
  Shape in_, out_;
};

template <class T>
std::unique_ptr<Kernel> BuildOf(const OpDescription& op) {
  const Shape& out = op.outputs[0].shape;
  const int64_t width = out.rank() ? out.dim(-1) : 1;
  return MakeKernel("stablehlo_pad",
                    {.units = width ? out.elements() / width : 0, .grain = GrainFor(width)},
                    StablehloPad<T>(op));
}

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("STABLEHLO_PAD takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  return ByElementBytes(op.inputs[0].type, [&]<class T>() { return BuildOf<T>(op); });
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& StablehloPadOperator() {
  static const OperatorDef kDef = {
      .name = "STABLEHLO_PAD",
      .builtin_code = tflite::kTfLiteBuiltinStablehloPad,
      .options_type = kSecondUnion + 10,
      .fields = kFields,
      .params_bytes = sizeof(StablehloPadParams),
      .struct_bytes = sizeof(TfLiteStablehloPadParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .limits = "elements of 1, 2, 4 or 8 bytes",
      .infer = InferStablehloPad,
      .candidates = kCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
