#include "kernels/import.h"

#include <algorithm>

#include "kernels/blockwise/blockwise.h"
#include "kernels/fully_connected/fully_connected.h"
#include "kernels/lstm/lstm.h"
#include "runtime/support/is_index.h"
#include "runtime/support/short_list.h"
#include "runtime/tflite/arrays.h"

namespace fuselite::kernels {
namespace {

using namespace tflite;

// Points to something for constants without elements, whose pointer may be null in the host.
constexpr std::byte kNoBytes{};

Status ImportAffine(const TfLiteAffineQuantization& from, const Shape& shape, Quantization& to) {
  const std::span<const float> scales = Elements(from.scale);
  const std::span<const int> zero_points = Elements(from.zero_point);
  if (scales.empty()) return Status();
  if (zero_points.size() > 1 && zero_points.size() != scales.size()) {
    return InvalidArgument("has ", scales.size(), " scales and ", zero_points.size(),
                           " zero points");
  }
  if (scales.size() > 1) {
    const int axis = from.quantized_dimension;
    if (axis < 0 || axis >= shape.rank() || shape[axis] != static_cast<int32_t>(scales.size())) {
      return InvalidArgument("has ", scales.size(), " scales along dimension ", axis, " of ",
                             shape);
    }
    to.axis = axis;
  }
  to.scales = ChannelValues<float>(scales);
  to.zero_points = zero_points.size() > 1
                       ? ChannelValues<int32_t>(zero_points)
                       : ChannelValues<int32_t>::Repeated(scales.size(),
                                                          zero_points.empty() ? 0 : zero_points[0]);
  return Status();
}

Status ImportQuantization(const TfLiteTensor& tensor, const Shape& shape, Quantization& to) {
  switch (tensor.quantization.type) {
    case kTfLiteAffineQuantization:
      if (tensor.quantization.params == nullptr) return Status();
      return ImportAffine(*static_cast<const TfLiteAffineQuantization*>(tensor.quantization.params),
                          shape, to);
    case kTfLiteNoQuantization:
      // Some hosts keep the per-tensor form only.
      if (tensor.params.scale != 0) {
        to.scales = {tensor.params.scale};
        to.zero_points = {tensor.params.zero_point};
      }
      return Status();
    // Its scales are an operand of their own (TakeBlockScales).
    case kTfLiteBlockwiseQuantization: return Status();
    default:
      return Unsupported("has a quantization of unknown kind ",
                         static_cast<int>(tensor.quantization.type));
  }
}

Status CheckSize(const TfLiteTensor& tensor, const TfLiteTensor& scales, int block_size) {
  const std::span<const int> dims = Elements(tensor.dims), blocks = Elements(scales.dims);
  if (!dims.empty() && !blocks.empty() && block_size > 0 && dims.back() % block_size == 0 &&
      dims.back() / block_size == blocks.back()) {
    return Status();
  }
  return InvalidArgument("is quantized in blocks of ", block_size, ", which its scales do not fit");
}

Result<int> BlockScalesOf(const TfLiteTensor& tensor, const TfLiteContext& context) {
  if (tensor.quantization.type != kTfLiteBlockwiseQuantization) return -1;
  const auto* blocks = static_cast<const TfLiteBlockwiseQuantization*>(tensor.quantization.params);
  if (blocks == nullptr || blocks->scale < 0 ||
      static_cast<size_t>(blocks->scale) >= context.tensors_size) {
    return InvalidArgument("has block scales that the graph does not have");
  }
  if (blocks->zero_point >= 0) return Unsupported("is quantized in blocks with zero points");
  FUSELITE_RETURN_IF_ERROR(CheckSize(tensor, context.tensors[blocks->scale], blocks->blocksize));
  return blocks->scale;
}

bool IsConstant(const TfLiteTensor& tensor, Constants constants) {
  return tensor.allocation_type == kTfLiteMmapRo ||
         (constants == Constants::kPrepared && tensor.allocation_type == kTfLitePersistentRo);
}

}  // namespace

Result<TensorInfo> ImportTensor(const TfLiteContext& /*context*/, const TfLiteTensor& tensor,
                                Constants constants) {
  if (!IsKnownDataType(tensor.type) || tensor.type == kTfLiteNoType) {
    return Unsupported("is of unknown type ", static_cast<int>(tensor.type));
  }
  TensorInfo info;
  info.type = static_cast<DataType>(tensor.type);
  const std::span<const int> dims = Elements(tensor.dims);
  const std::optional<Shape> shape = Shape::FromDims(dims);
  if (!shape) {
    return Unsupported("has ", dims.size(),
                       " dimensions that are negative, too large, or more than ", Shape::kMaxRank);
  }
  info.shape = *shape;
  FUSELITE_RETURN_IF_ERROR(ImportQuantization(tensor, info.shape, info.quantization));
  if (!IsConstant(tensor, constants) || tensor.sparsity != nullptr) return info;
  if (tensor.bytes < info.bytes()) {
    return InvalidArgument("has ", tensor.bytes, " bytes of ", info.bytes());
  }
  info.data = tensor.data.data != nullptr || info.bytes() > 0 ? tensor.data.data : &kNoBytes;
  return info;
}

void TakeForm(std::span<const int> inputs, const Params& params, const TfLiteContext& context,
              const OperatorDef** op) {
  const bool shuffled = *op == &FullyConnectedOperator() &&
                        params.as<FullyConnectedParams>().weights_format == kShuffledWeights;
  if (shuffled) *op = &ShuffledFullyConnectedOperator();
  if (*op != &LstmOperator() || inputs.size() != 5) return;
  const auto keeps = [&](int i) {
    const int tensor = inputs[static_cast<size_t>(i)];
    return tensor >= 0 && context.tensors[tensor].is_variable;
  };
  const OperatorDef& basic = BasicLstmOperator();
  *op = std::ranges::any_of(basic.state_inputs, keeps) ? &basic : &BasicLstmStepOperator();
}

Status TakeBlockScales(const TfLiteContext& context, const OperatorDef** op,
                       std::vector<int>* inputs) {
  ShortList<int, 8> scales;
  for (int tensor : *inputs) {
    scales.push_back(-1);
    if (!IsIndex(tensor, context.tensors_size)) continue;
    const Result<int> found = BlockScalesOf(context.tensors[tensor], context);
    if (!found.ok()) return found.status().In(internal::Join("input ", scales.size() - 1));
    scales.back() = *found;
  }
  return UseBlockScales({scales.begin(), scales.size()}, op, inputs);
}

Status CheckState(const OperatorDef& op, std::span<const int> inputs,
                  const TfLiteContext& context) {
  for (int i : op.state_inputs) {
    const int tensor = i < static_cast<int>(inputs.size()) ? inputs[i] : -1;
    if (tensor >= 0 && context.tensors[tensor].is_variable) continue;
    return Unsupported("input ", i, " must be a variable tensor");
  }
  return Status();
}

Result<std::vector<Quantization>> ImportIntermediates(const TfLiteContext& context,
                                                      std::span<const int> tensors) {
  std::vector<Quantization> quantizations;
  for (int tensor : tensors) {
    Quantization& quantization = quantizations.emplace_back();
    if (tensor < 0) continue;
    Result<TensorInfo> info = ImportTensor(context, context.tensors[tensor], Constants::kOfModel);
    if (!info.ok()) return info.status().In(internal::Join("intermediate tensor ", tensor));
    quantization = std::move(info->quantization);
  }
  return quantizations;
}

}  // namespace fuselite::kernels
