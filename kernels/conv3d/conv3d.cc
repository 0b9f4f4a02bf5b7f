// The shape rules, and the reference: a unit is one position of the output with all its channels;
// products are added in the order of the window's taps, then of the input's channels.
#include "kernels/conv3d/conv3d.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/gemm/output_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/micro_kernels/product_f32.h"
#include "kernels/product/description.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

using tflite::TfLiteConv3DParams;
constexpr Field kFields[] = {
    {"padding", FieldKind::kPadding, 0, offsetof(Conv3DParams, padding),
     offsetof(TfLiteConv3DParams, padding)},
    {"stride_d", FieldKind::kInt32, 1, offsetof(Conv3DParams, stride_d),
     offsetof(TfLiteConv3DParams, stride_depth)},
    {"stride_w", FieldKind::kInt32, 2, offsetof(Conv3DParams, stride_w),
     offsetof(TfLiteConv3DParams, stride_width)},
    {"stride_h", FieldKind::kInt32, 3, offsetof(Conv3DParams, stride_h),
     offsetof(TfLiteConv3DParams, stride_height)},
    {"fused_activation_function", FieldKind::kActivation, 4, offsetof(Conv3DParams, activation),
     offsetof(TfLiteConv3DParams, activation)},
    {"dilation_d_factor", FieldKind::kInt32, 5, offsetof(Conv3DParams, dilation_d),
     offsetof(TfLiteConv3DParams, dilation_depth_factor), -1, 1, 1},
    {"dilation_w_factor", FieldKind::kInt32, 6, offsetof(Conv3DParams, dilation_w),
     offsetof(TfLiteConv3DParams, dilation_width_factor), -1, 1, 1},
    {"dilation_h_factor", FieldKind::kInt32, 7, offsetof(Conv3DParams, dilation_h),
     offsetof(TfLiteConv3DParams, dilation_height_factor), -1, 1, 1},
};
constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32;
constexpr TypeRow kTypes[] = {{{kF32, kF32, kF32}, kF32}};
constexpr TypeRow kTransposedTypes[] = {{{kI32, kF32, kF32}, kF32}};

Status CheckOperands(const OpDescription& op, int input, int bias, int channels) {
  for (const int i : {input, 1}) {
    if (op.inputs[i].shape.rank() != 5) {
      return InvalidArgument("input ", i, " has shape ", op.inputs[i].shape, ", not 5 dimensions");
    }
  }
  if (op.has_input(bias) &&
      (op.inputs[bias].type != kF32 || op.inputs[bias].elements() != channels)) {
    return InvalidArgument("a bias of ", DataTypeName(op.inputs[bias].type), op.inputs[bias].shape,
                           " for ", channels, " channels");
  }
  return Status();
}

Status SetVolume(OpDescription& op, const Shape& shape) {
  op.outputs[0].type = kF32;
  op.outputs[0].shape = shape;
  return MakeFloatTail(op, op.params.as<Conv3DParams>().activation).status();
}

Status InferConv3D(OpDescription& op) {
  const Shape& in = op.inputs[0].shape;
  const Shape& filter = op.inputs[1].shape;
  FUSELITE_RETURN_IF_ERROR(CheckOperands(op, 0, 2, filter.rank() == 5 ? filter[4] : 0));
  // A batch may be empty, a volume not.
  const bool none = std::min({in[1], in[2], in[3], in[4]}) == 0;
  if (in[4] != filter[3] || none || filter.elements() == 0) {
    return InvalidArgument("a filter of ", filter, " for an input of ", in);
  }
  FUSELITE_ASSIGN_OR_RETURN(const Window3D window, ResolveConv3D(op, in));
  const auto& [d, h, w] = window.axes;
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape,
                            MakeShape({in[0], d.output, h.output, w.output, filter[4]}));
  return SetVolume(op, shape);
}

Status InferTransposed(OpDescription& op) {
  const Shape& in = op.inputs[2].shape;
  const Shape& filter = op.inputs[1].shape;
  FUSELITE_RETURN_IF_ERROR(CheckOperands(op, 2, 3, filter.rank() == 5 ? filter[3] : 0));
  if (in[4] != filter[4]) return InvalidArgument("a filter of ", filter, " for an input of ", in);
  if (op.inputs[0].shape != Shape{5}) return InvalidArgument("a shape of ", op.inputs[0].shape);
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> dims,
                            ReadIntegers(op.inputs[0], "the shape", IntegerTypes::kInt32));
  FUSELITE_ASSIGN_OR_RETURN(const Shape out, MakeShape(dims));
  FUSELITE_ASSIGN_OR_RETURN(const Window3D window, ResolveConv3D(op, out));
  const auto& [d, h, w] = window.axes;
  if (out[0] != in[0] || out[4] != filter[3] || d.output != in[1] || h.output != in[2] ||
      w.output != in[3]) {
    return InvalidArgument("an output of ", out, " for an input of ", in, " and a filter of ",
                           filter);
  }
  return SetVolume(op, out);
}

// Where tap `k` of the window at output position `o` reads; -1: nowhere.
struct Forward {
  static int64_t Source(const WindowAxis& axis, int64_t o, int64_t k) {
    const int64_t i = o * axis.stride - axis.before + k * axis.dilation;
    return i >= 0 && i < axis.input ? i : -1;
  }
};
// The taps of the transposed form, whose windows lie on the output.
struct Transposed {
  static int64_t Source(const WindowAxis& axis, int64_t o, int64_t k) {
    const int64_t scaled = o + axis.before - k * axis.dilation;
    if (scaled < 0 || scaled % axis.stride != 0) return -1;
    const int64_t i = scaled / axis.stride;
    return i < axis.output ? i : -1;
  }
};

template <class Form>
class Conv3D {
 public:
  Conv3D(const OpDescription& op, const Window3D& window, int input, int bias, FloatTail tail)
      : window_(window),
        input_(input),
        bias_(op.has_input(bias) ? bias : -1),
        in_(op.inputs[input].shape),
        in_pitch_(op.inputs[input].pitch()),
        output_(op.outputs[0]),
        out_(op.outputs[0].shape),
        transposed_(IsConv3DTransposed(op)),
        tail_(std::move(tail)) {}

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    const int64_t channels = out_[4];
    auto* const sums = reinterpret_cast<float*>(args.scratch);
    for (int64_t unit = begin; unit < end; ++unit) {
      std::fill_n(sums, channels, 0.0F);
      Add(args, unit, sums);
      const float* bias = bias_ < 0 ? nullptr : static_cast<const float*>(args.inputs[bias_]);
      for (int64_t k = 0; bias != nullptr && k < channels; ++k) sums[k] += bias[k];
      StoreFloatRow(tail_, args, output_, unit, sums);
    }
  }

 private:
  void Add(const KernelArgs& args, int64_t unit, float* out) const {
    const auto& [d, h, w] = window_.axes;
    const int64_t x = unit % out_[3], y = unit / out_[3] % out_[2];
    const int64_t z = unit / out_[3] / out_[2] % out_[1], n = unit / out_.elements(1, 4);
    for (int64_t kd = 0; kd < d.filter; ++kd) {
      const int64_t in_z = Form::Source(d, z, kd);
      for (int64_t kh = 0; in_z >= 0 && kh < h.filter; ++kh) {
        const int64_t in_y = Form::Source(h, y, kh);
        for (int64_t kw = 0; in_y >= 0 && kw < w.filter; ++kw) {
          const int64_t in_x = Form::Source(w, x, kw);
          if (in_x < 0) continue;
          const int64_t place = ((n * in_[1] + in_z) * in_[2] + in_y) * in_[3] + in_x;
          AddTap(args, place, (kd * h.filter + kh) * w.filter + kw, out);
        }
      }
    }
  }

  void AddTap(const KernelArgs& args, int64_t place, int64_t tap, float* out) const {
    const int64_t inputs = in_[4], channels = out_[4];
    const float* x = static_cast<const float*>(args.inputs[input_]) + place * in_pitch_;
    const float* f = static_cast<const float*>(args.inputs[1]) + tap * inputs * channels;
    const int64_t from_input = transposed_ ? 1 : channels, from_output = transposed_ ? inputs : 1;
    for (int64_t c = 0; c < inputs; ++c) {
      for (int64_t k = 0; k < channels; ++k) out[k] += x[c] * f[c * from_input + k * from_output];
    }
  }

  Window3D window_;
  int input_, bias_;
  Shape in_;
  int64_t in_pitch_;
  TensorInfo output_;
  Shape out_;
  bool transposed_;
  FloatTail tail_;
};

template <class Form>
Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  const bool transposed = IsConv3DTransposed(op);
  FUSELITE_RETURN_IF_ERROR(RequireDenseInputs(op, {1, transposed ? 3U : 2U}));
  const Shape& out = op.outputs[0].shape;
  FUSELITE_ASSIGN_OR_RETURN(const Window3D window,
                            ResolveConv3D(op, transposed ? out : op.inputs[0].shape));
  FUSELITE_ASSIGN_OR_RETURN(FloatTail tail,
                            MakeFloatTail(op, op.params.as<Conv3DParams>().activation));
  return MakeKernel(
      transposed ? "conv3d transposed f32 reference" : "conv3d f32 reference",
      {.units = out.elements(0, 4),
       .grain = GrainFor(op.inputs[1].elements()),
       .scratch_bytes = out[4] * sizeof(float)},
      Conv3D<Form>(op, window, transposed ? 2 : 0, transposed ? 3 : 2, std::move(tail)));
}

template <class Form>
constexpr Candidate kCandidates[] = {{"highway", PlanHighwayProductF32},
                                     {"reference", Build<Form>}};

double Cost(const OpDescription& op) {
  const int channels = IsConv3DTransposed(op) ? 3 : 4;
  return static_cast<double>(op.outputs[0].elements()) *
         static_cast<double>(op.inputs[1].elements()) / op.inputs[1].shape[channels];
}

}  // namespace

bool IsConv3DTransposed(const OpDescription& op) {
  return op.op->builtin_code == tflite::kTfLiteBuiltinConv3dTranspose;
}

Result<Window3D> ResolveConv3D(const OpDescription& op, const Shape& volume) {
  const auto& p = op.params.as<Conv3DParams>();
  const Shape& filter = op.inputs[1].shape;
  return ResolveWindow3D({.input = {volume[1], volume[2], volume[3]},
                          .filter = {filter[0], filter[1], filter[2]},
                          .stride = {p.stride_d, p.stride_h, p.stride_w},
                          .dilation = {p.dilation_d, p.dilation_h, p.dilation_w},
                          .padding = p.padding});
}

const OperatorDef& Conv3DOperator() {
  static constexpr OperatorDef kDef = {
      .name = "CONV_3D",
      .builtin_code = tflite::kTfLiteBuiltinConv3d,
      .options_type = 106,
      .fields = kFields,
      .params_bytes = sizeof(Conv3DParams),
      .struct_bytes = sizeof(TfLiteConv3DParams),
      .min_inputs = 2,
      .max_inputs = 3,
      .types = kTypes,
      .limits = "rank 5",
      .infer = InferConv3D,
      .candidates = kCandidates<Forward>,
      .product = DescribeConv3DProduct,
      .product_inputs = ProductInputs{},
      .cost = Cost,
      .takes_tail = true,
  };
  return kDef;
}

const OperatorDef& Conv3DTransposeOperator() {
  static constexpr OperatorDef kDef = {
      .name = "CONV_3D_TRANSPOSE",
      .builtin_code = tflite::kTfLiteBuiltinConv3dTranspose,
      .options_type = 106,
      .fields = kFields,
      .params_bytes = sizeof(Conv3DParams),
      .struct_bytes = sizeof(TfLiteConv3DParams),
      .min_inputs = 3,
      .max_inputs = 4,
      .types = kTransposedTypes,
      .limits = "rank 1 (the output's shape, 5)",
      .infer = InferTransposed,
      .candidates = kCandidates<Transposed>,
      .product = DescribeConv3DProduct,
      .product_inputs = ProductInputs{.x = 2, .weights = 1, .bias = 3},
      .cost = Cost,
      .takes_tail = true,
  };
  return kDef;
}

}  // namespace fuselite::kernels
