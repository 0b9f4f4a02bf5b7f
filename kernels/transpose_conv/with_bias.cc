// MediaPipe's Convolution2DTransposeBias: TRANSPOSE_CONV of float32 whose output has the size that
// its own padding gives. Inputs: images NHWC, filters [O, KH, KW, I], biases [O].
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "kernels/micro_kernels/product_s16.h"
#include "kernels/shape_rules.h"
#include "kernels/transpose_conv/transpose_conv.h"

namespace fuselite::kernels {

const OperatorDef& TransposeConvOperator();

namespace {

constexpr DataType kF32 = DataType::kFloat32;
constexpr TypeRow kTypes[] = {{{kF32, kF32, kF32}, kF32}};

// What `size` positions of the input give.
Result<int32_t> OutputSize(int32_t size, int32_t filter, int32_t stride, Padding padding) {
  if (size < 1 || filter < 1 || stride < 1) {
    return InvalidArgument("an input of ", size, ", a filter of ", filter, ", a stride of ",
                           stride);
  }
  const int64_t reach = int64_t{stride} * (size - 1) + filter;
  const int64_t cut = padding == Padding::kSame ? std::max(0, filter - (size - 1) % stride - 1) : 0;
  if (reach - cut > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("an output of ", reach - cut);
  }
  return static_cast<int32_t>(reach - cut);
}

// The operation as TRANSPOSE_CONV. `shape` becomes the value of its first input.
Result<OpDescription> AsTransposeConv(const OpDescription& op, std::array<int32_t, 4>* shape) {
  if (!op.tail.empty()) return Unsupported("does not take a tail behind ", op.op->name);
  const Shape& in = op.inputs[0].shape;
  const Shape& filter = op.inputs[1].shape;
  if (in.rank() != 4 || filter.rank() != 4 || op.inputs[2].shape != Shape{filter[0]}) {
    return InvalidArgument("input ", in, ", filter ", filter, " and bias ", op.inputs[2].shape,
                           " do not fit together");
  }
  const auto& params = op.params.as<TransposeConvParams>();
  FUSELITE_ASSIGN_OR_RETURN(const int32_t height,
                            OutputSize(in[1], filter[1], params.stride_h, params.padding));
  FUSELITE_ASSIGN_OR_RETURN(const int32_t width,
                            OutputSize(in[2], filter[2], params.stride_w, params.padding));
  *shape = {in[0], height, width, filter[0]};
  OpDescription inner = op;
  inner.op = &TransposeConvOperator();
  TensorInfo size{.type = DataType::kInt32, .shape = {4}};
  size.data = shape->data();
  inner.inputs = {size, op.inputs[1], op.inputs[0], op.inputs[2]};
  return inner;
}

Status InferWithBias(OpDescription& op) {
  std::array<int32_t, 4> shape;
  FUSELITE_ASSIGN_OR_RETURN(OpDescription inner, AsTransposeConv(op, &shape));
  FUSELITE_RETURN_IF_ERROR(inner.op->infer(inner));
  return SetOutput(op, 0, kF32, inner.outputs[0].shape);
}

// A kernel of TRANSPOSE_CONV behind this operator's inputs.
class Reordered final : public Kernel {
 public:
  explicit Reordered(std::shared_ptr<const Kernel> inner) : inner_(std::move(inner)) {}
  std::string_view name() const override { return inner_->name(); }
  int phases() const override { return inner_->phases(); }
  int64_t units(int phase) const override { return inner_->units(phase); }
  int64_t grain(int phase) const override { return inner_->grain(phase); }
  size_t scratch_bytes() const override { return inner_->scratch_bytes(); }
  size_t shared_bytes() const override { return inner_->shared_bytes(); }
  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    const void* const inputs[] = {nullptr, args.inputs[1], args.inputs[0], args.inputs[2]};
    KernelArgs own = args;
    own.inputs = inputs;
    return inner_->Run(own, phase, begin, end);
  }

 private:
  std::shared_ptr<const Kernel> inner_;
};

constexpr Candidate kHighway{"highway", PlanHighwayProduct};
constexpr Candidate kReference{"reference", BuildTransposeConvReference};

template <const Candidate& kCandidate>
Result<KernelPlan> Plan(const OpDescription& op, const PlanContext& context) {
  std::array<int32_t, 4> shape;
  FUSELITE_ASSIGN_OR_RETURN(const OpDescription planned, AsTransposeConv(op, &shape));
  FUSELITE_ASSIGN_OR_RETURN(KernelPlan plan, kCandidate.Plan(planned, context));
  auto draft = std::make_unique<Reordered>(plan.draft());
  return KernelPlan::MadeLater(
      std::move(draft),
      [plan = std::move(plan)](const OpDescription& described,
                               const BuildContext& build) -> Result<std::unique_ptr<Kernel>> {
        std::array<int32_t, 4> dims;
        FUSELITE_ASSIGN_OR_RETURN(const OpDescription inner, AsTransposeConv(described, &dims));
        FUSELITE_ASSIGN_OR_RETURN(auto kernel, plan.Build(inner, build));
        return std::unique_ptr<Kernel>(std::make_unique<Reordered>(std::move(kernel)));
      });
}

constexpr Candidate kCandidates[] = {
    {"highway", Plan<kHighway>},
    {"reference", Plan<kReference>},
};

// The options of MediaPipe's Convolution2DTransposeBias: the first three fields of TFLite's struct
// of a transposed convolution.
Status ReadTransposeConvBiasOptions(std::span<const std::byte> options, void* params) {
  int32_t fields[3];
  if (options.size() < sizeof fields) {
    return InvalidArgument("has ", options.size(), " bytes of options");
  }
  std::memcpy(fields, options.data(), sizeof fields);
  constexpr int32_t kSame = 1, kValid = 2;
  if (fields[0] != kSame && fields[0] != kValid) {
    return InvalidArgument("padding ", fields[0], " is unknown");
  }
  auto& to = *static_cast<TransposeConvParams*>(params);
  to.padding = fields[0] == kSame ? Padding::kSame : Padding::kValid;
  to.stride_w = fields[1];
  to.stride_h = fields[2];
  return Status();
}

}  // namespace

const OperatorDef& Convolution2DTransposeBiasOperator() {
  static constexpr OperatorDef kDef = {
      .name = "Convolution2DTransposeBias",
      .read_custom = ReadTransposeConvBiasOptions,
      .params_bytes = sizeof(TransposeConvParams),
      .min_inputs = 3,
      .max_inputs = 3,
      .types = kTypes,
      .limits = "rank 4",
      .infer = InferWithBias,
      .candidates = kCandidates,
      .cost =
          [](const OpDescription& op) {
            return static_cast<double>(op.inputs[0].elements()) * op.inputs[1].shape.elements(0, 3);
          },
  };
  return kDef;
}

}  // namespace fuselite::kernels
