#include <cmath>
#include <cstring>
#include <limits>

#include "interpreter/file/loader_internal.h"
#include "interpreter/file/options.h"
#include "interpreter/strings.h"
#include "kernels/sparse.h"

namespace fuselite::interpreter::loader {
namespace {

Result<Shape> ReadShape(const schema::Tensor& tensor) {
  Shape shape;
  if (tensor.shape() == nullptr) return shape;
  const std::span dims(tensor.shape()->data(), tensor.shape()->size());
  if (dims.size() > Shape::kMaxRank) {
    return Unsupported("rank ", dims.size(), " is more than ", int{Shape::kMaxRank});
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) return InvalidArgument("dimension ", i, " is ", dims[i]);
  }
  const auto checked = Shape::FromDims(dims);
  if (!checked) return InvalidArgument("the number of elements overflows");
  return *checked;
}

Status ReadSignature(const schema::Tensor& tensor, ModelTensor& out) {
  if (tensor.shape_signature() == nullptr || tensor.shape_signature()->size() == 0) return Status();
  out.shape_signature.assign(tensor.shape_signature()->begin(), tensor.shape_signature()->end());
  if (out.shape_signature.size() != static_cast<size_t>(out.shape.rank())) {
    return InvalidArgument("its shape signature has ", out.shape_signature.size(),
                           " dimensions, its shape ", out.shape.rank());
  }
  bool unknown = false;
  for (int32_t dim : out.shape_signature) {
    if (dim < -1) return InvalidArgument("dimension ", dim, " in its shape signature");
    unknown |= dim == -1;
  }
  if (!unknown) out.shape_signature.clear();
  return Status();
}

bool IsQuantizedType(DataType type) {
  switch (type) {
    case DataType::kUInt8:
    case DataType::kInt8:
    case DataType::kInt4:
    case DataType::kUInt4:
    case DataType::kInt2:
    case DataType::kInt16:
    case DataType::kUInt16:
    case DataType::kInt32:
    case DataType::kInt64: return true;
    default: return false;
  }
}

// The values that a zero point of this type may take.
std::pair<int64_t, int64_t> ZeroPointRange(DataType type) {
  switch (type) {
    case DataType::kUInt8: return {0, 255};
    case DataType::kInt8: return {-128, 127};
    case DataType::kInt4: return {-8, 7};
    case DataType::kUInt4: return {0, 15};
    case DataType::kInt2: return {-2, 1};
    case DataType::kInt16: return {-32768, 32767};
    case DataType::kUInt16: return {0, 65535};
    default: return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  }
}

// Element `i`. FlatBuffers' verifier keeps a vector inside of the file and its length aligned, but
// elements of 8 bytes may lie at any multiple of 4.
int64_t ReadInt64(const flatbuffers::Vector<int64_t>& from, uint32_t i) {
  int64_t value;
  std::memcpy(&value, from.Data() + i * sizeof(value), sizeof(value));
  return flatbuffers::EndianScalar(value);
}

Status ReadScales(const schema::QuantizationParameters& from, ModelTensor& tensor) {
  const auto& scales = *from.scale();
  if (from.zero_point() == nullptr || from.zero_point()->size() != scales.size()) {
    return InvalidArgument("has ", scales.size(), " scales, but ",
                           from.zero_point() ? from.zero_point()->size() : 0, " zero points");
  }
  const int axis = from.quantized_dimension();
  if (scales.size() > 1) {
    if (axis < 0 || axis >= tensor.shape.rank()) {
      return InvalidArgument("quantized dimension ", axis, " of rank ", tensor.shape.rank());
    }
    if (static_cast<uint32_t>(tensor.shape[axis]) != scales.size()) {
      return InvalidArgument("has ", scales.size(), " scales for dimension ", axis, " of size ",
                             tensor.shape[axis]);
    }
  }
  const auto [low, high] = ZeroPointRange(tensor.type);
  Quantization& to = tensor.quantization;
  to.axis = scales.size() > 1 ? axis : 0;
  std::vector<int32_t> zero_points(scales.size());
  for (uint32_t i = 0; i < scales.size(); ++i) {
    const float scale = scales.Get(i);
    const int64_t zero_point = ReadInt64(*from.zero_point(), i);
    // Converters give a scale of 0 to values that were always 0 in their calibration, to channels
    // of weights that are all 0, and to biases where they know none. Kernels that compute with it
    // refuse it, many only compare or pass it on.
    if (!(scale >= 0) || !std::isfinite(scale)) {
      return InvalidArgument("scale ", i, " is ", scale, ", expected no negative number");
    }
    if (zero_point < low || zero_point > high) {
      return InvalidArgument("zero point ", zero_point, " is out of range for ",
                             DataTypeName(tensor.type));
    }
    zero_points[i] = static_cast<int32_t>(zero_point);
  }
  to.scales = std::vector<float>(scales.begin(), scales.end());
  to.zero_points = std::move(zero_points);
  return Status();
}

// Notes of converters on tensors of other types (ranges, scales of floats) say nothing and are left
// out.
Status ReadQuantization(const schema::Tensor& from, ModelTensor& tensor) {
  const schema::QuantizationParameters* quantization = from.quantization();
  if (quantization == nullptr || !IsQuantizedType(tensor.type)) return Status();
  switch (quantization->details_type()) {
    case schema::QuantizationDetails::BlockwiseQuantization: {
      const auto* details = quantization->details_as_BlockwiseQuantization();
      if (details == nullptr || details->block_size() <= 0) {
        return InvalidArgument("its block-wise quantization has no block size");
      }
      tensor.blockwise = {details->scales(), details->zero_points(), details->block_size(),
                          quantization->quantized_dimension()};
      return Status();
    }
    case schema::QuantizationDetails::NONE:
    case schema::QuantizationDetails::CustomQuantization: break;  // a note beside the scales
    default: return Unsupported("this kind of quantization is unknown");
  }
  if (quantization->scale() == nullptr || quantization->scale()->size() == 0) return Status();
  return ReadScales(*quantization, tensor);
}

// Indices may be of 8, 16 or 32 bits.
template <class Vector>
void Append(const Vector* from, std::vector<int32_t>& to) {
  if (from == nullptr || from->values() == nullptr) return;
  for (const auto value : *from->values()) to.push_back(static_cast<int32_t>(value));
}

void Append(const flatbuffers::Vector<int32_t>* from, std::vector<int32_t>& to) {
  if (from != nullptr) to.assign(from->begin(), from->end());
}

Result<kernels::SparseLayout> ReadSparsity(const Source& source,
                                           const schema::SparsityParameters& from) {
  kernels::SparseLayout layout;
  Append(from.traversal_order(), layout.traversal_order);
  Append(from.block_map(), layout.block_map);
  if (from.dim_metadata() == nullptr) return layout;
  for (const schema::DimensionMetadata* level : *from.dim_metadata()) {
    kernels::SparseLevel& to = layout.levels.emplace_back();
    to.compressed = level->format() != schema::DimensionType::DENSE;
    to.dense_size = level->dense_size();
    Append(level->array_segments_as_Int32Vector(), to.segments);
    Append(level->array_segments_as_Uint16Vector(), to.segments);
    Append(level->array_segments_as_Uint8Vector(), to.segments);
    Append(level->array_indices_as_Int32Vector(), to.indices);
    Append(level->array_indices_as_Uint16Vector(), to.indices);
    Append(level->array_indices_as_Uint8Vector(), to.indices);
    FUSELITE_RETURN_IF_ERROR(source.allowance->Take(
        sizeof(to) + (to.segments.size() + to.indices.size()) * sizeof(int32_t)));
  }
  return layout;
}

// Sparse constants become dense ones here: every reader finds what it expects.
Status ReadSparse(const Source& source, const schema::SparsityParameters& from,
                  ModelTensor& tensor) {
  TensorInfo info;
  info.type = tensor.type;
  info.shape = tensor.shape;
  FUSELITE_ASSIGN_OR_RETURN(const kernels::SparseLayout layout, ReadSparsity(source, from));
  FUSELITE_ASSIGN_OR_RETURN(tensor.unpacked,
                            kernels::Unpack(layout, info, tensor.data, ProcessPackedStore()));
  FUSELITE_RETURN_IF_ERROR(source.allowance->Take(info.bytes()));
  tensor.data = {tensor.unpacked->data(), info.bytes()};
  tensor.constant = true;
  return Status();
}

Status ReadConstant(const Source& source, const schema::Tensor& from, ModelTensor& tensor) {
  // Buffer 0 is the empty one, whatever it holds.
  if (from.buffer() == 0) return Status();
  FUSELITE_ASSIGN_OR_RETURN(tensor.data, BufferBytes(source, from.buffer()));
  if (tensor.data.data() == nullptr) return Status();
  const int64_t elements = tensor.shape.elements();
  // Converters write empty vectors for values without constant data.
  if (tensor.data.empty() && elements > 0) return Status();
  if (tensor.is_variable) return InvalidArgument("is a variable, but has constant data");
  if (from.sparsity() != nullptr) return ReadSparse(source, *from.sparsity(), tensor);
  if (tensor.type == DataType::kString) {
    FUSELITE_RETURN_IF_ERROR(source.allowance->Take(tensor.data.size()));
    FUSELITE_RETURN_IF_ERROR(ReadStringTable(tensor.data, elements).status());
  } else {
    if (BitWidth(tensor.type) == 0) {
      return Unsupported("constants of type ", DataTypeName(tensor.type), " are not taken");
    }
    TensorInfo info;
    info.type = tensor.type;
    info.shape = tensor.shape;
    const size_t expected = info.bytes();
    if (tensor.data.size() < expected) {
      return InvalidArgument("has ", tensor.data.size(), " bytes of data, but ",
                             DataTypeName(tensor.type), tensor.shape.ToString(), " takes ",
                             expected);
    }
    tensor.data = tensor.data.first(expected);  // as LiteRT, which does not read the rest either
  }
  tensor.constant = true;
  return Status();
}

}  // namespace

Result<ModelTensor> ReadTensor(const Source& source, const schema::Tensor& from) {
  ModelTensor tensor;
  if (from.name() != nullptr) tensor.name = from.name()->str();
  const int schema_type = static_cast<int>(from.type());
  const auto type = DataTypeFromSchema(schema_type);
  if (!type) return Unsupported("element type ", schema_type, " is unknown");
  tensor.type = *type;
  FUSELITE_ASSIGN_OR_RETURN(tensor.shape, ReadShape(from));
  if (TensorInfo{tensor.type, tensor.shape}.estimated_bytes() > kMostTensorBytes) {
    return InvalidArgument(tensor.shape.ToString(), " is too large for any machine");
  }
  FUSELITE_RETURN_IF_ERROR(ReadSignature(from, tensor));
  tensor.is_variable = from.is_variable();
  if (from.external_buffer() != 0) return Unsupported("constants in other files are not taken");
  FUSELITE_RETURN_IF_ERROR(ReadConstant(source, from, tensor));
  FUSELITE_RETURN_IF_ERROR(ReadQuantization(from, tensor));
  return tensor;
}

}  // namespace fuselite::interpreter::loader
