#include "kernels/stablehlo/scatter.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/make_kernel.h"
#include "kernels/movement/movement.h"
#include "kernels/numbers/short_floats.h"
#include "kernels/numbers/truth.h"
#include "kernels/shape_rules.h"
#include "kernels/stablehlo/functions.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

using stablehlo::Larger, stablehlo::Product, stablehlo::Smaller, stablehlo::Sum;

using tflite::TfLiteStablehloScatterParams;
constexpr Field kFields[] = {
    {"indices_are_sorted", FieldKind::kBool, 0, offsetof(ScatterParams, indices_are_sorted),
     offsetof(TfLiteStablehloScatterParams, indices_are_sorted)},
    {"update_window_dims", FieldKind::kLongList, 1, offsetof(ScatterParams, window_dims),
     offsetof(TfLiteStablehloScatterParams, update_window_dims),
     offsetof(TfLiteStablehloScatterParams, num_update_window_dims)},
    {"inserted_window_dims", FieldKind::kLongList, 2, offsetof(ScatterParams, inserted_dims),
     offsetof(TfLiteStablehloScatterParams, inserted_window_dims),
     offsetof(TfLiteStablehloScatterParams, num_inserted_window_dims)},
    {"scatter_dims_to_operand_dims", FieldKind::kLongList, 3, offsetof(ScatterParams, index_map),
     offsetof(TfLiteStablehloScatterParams, scatter_dims_to_operand_dims),
     offsetof(TfLiteStablehloScatterParams, num_scatter_dims_to_operand_dims)},
    {"index_vector_dim", FieldKind::kInt64, 4, offsetof(ScatterParams, index_vector_dim),
     offsetof(TfLiteStablehloScatterParams, index_vector_dim)},
    {"unique_indices", FieldKind::kBool, 5, offsetof(ScatterParams, unique_indices),
     offsetof(TfLiteStablehloScatterParams, unique_indices)},
    {"update_computation_subgraph_index", FieldKind::kInt32, 6, offsetof(ScatterParams, subgraph),
     offsetof(TfLiteStablehloScatterParams, update_computation_subgraph_index)},
};
constexpr TypeRow Row(DataType type) { return {{type, DataType::kNone, type}, type}; }
constexpr TypeRow kTypes[] = {
    Row(DataType::kFloat16), Row(DataType::kFloat32), Row(DataType::kFloat64),
    Row(DataType::kInt8),    Row(DataType::kInt16),   Row(DataType::kInt32),
    Row(DataType::kInt64),   Row(DataType::kUInt8),   Row(DataType::kUInt16),
    Row(DataType::kUInt32),  Row(DataType::kUInt64),  Row(DataType::kBool)};

std::span<const int32_t> Entries(const IntList& list) {
  return std::span(list.values).first(static_cast<size_t>(list.count));
}
bool Contains(const IntList& list, int value) {
  return std::ranges::count(Entries(list), value) > 0;
}

Status CheckDims(std::string_view what, const IntList& list, int rank) {
  for (const int32_t d : Entries(list)) {
    if (d < 0 || d >= rank) return InvalidArgument(what, " has the entry ", d, " at rank ", rank);
  }
  return Status();
}

// The updates name the vectors of indices by their other dimensions, in order.
Status CheckVectors(const OpDescription& op) {
  const auto& p = op.params.as<ScatterParams>();
  const Shape &indices = op.inputs[1].shape, &updates = op.inputs[2].shape;
  if (p.index_vector_dim < 0 || p.index_vector_dim >= indices.rank()) {
    return InvalidArgument("vectors along dimension ", p.index_vector_dim, " of ", indices);
  }
  const auto axis = static_cast<int>(p.index_vector_dim);
  if (p.index_map.count != indices[axis]) {
    return InvalidArgument("vectors of ", indices[axis], " indices for ", p.index_map.count,
                           " dimensions");
  }
  std::vector<int> of_updates, of_indices;
  for (int d = 0; d < updates.rank(); ++d) {
    if (!Contains(p.window_dims, d)) of_updates.push_back(updates[d]);
  }
  for (int d = 0; d < indices.rank(); ++d) {
    if (d != axis) of_indices.push_back(indices[d]);
  }
  if (of_updates != of_indices) return InvalidArgument("updates of ", updates, " by ", indices);
  return Status();
}

Status InferScatter(OpDescription& op) {
  const auto& p = op.params.as<ScatterParams>();
  const Shape &in = op.inputs[0].shape, &updates = op.inputs[2].shape;
  const DataType index = op.inputs[1].type;
  if (index != DataType::kInt32 && index != DataType::kInt64) {
    return InvalidArgument("indices of type ", DataTypeName(index));
  }
  if (p.function == ScatterFunction::kUnknown) return InvalidArgument("no function");
  FUSELITE_RETURN_IF_ERROR(CheckDims("update_window_dims", p.window_dims, updates.rank()));
  FUSELITE_RETURN_IF_ERROR(CheckDims("inserted_window_dims", p.inserted_dims, in.rank()));
  FUSELITE_RETURN_IF_ERROR(CheckDims("scatter_dims_to_operand_dims", p.index_map, in.rank()));
  if (p.window_dims.count + p.inserted_dims.count != in.rank()) {
    return InvalidArgument("windows of ", p.window_dims.count, " dimensions and ",
                           p.inserted_dims.count, " more in an operand of ", in);
  }
  FUSELITE_RETURN_IF_ERROR(CheckVectors(op));
  return SetOutput(op, 0, op.inputs[0].type, in);
}

std::array<int64_t, Shape::kMaxRank> Strides(const Shape& shape) {
  std::array<int64_t, Shape::kMaxRank> strides{};
  int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

// The only unit: two updates may be for one element.
template <class T>
class Scatter {
 public:
  explicit Scatter(const OpDescription& op)
      : p_(op.params.as<ScatterParams>()),
        in_(op.inputs[0].shape),
        updates_(op.inputs[2].shape),
        strides_(Strides(in_)),
        index_type_(op.inputs[1].type) {
    const Shape& indices = op.inputs[1].shape;
    const auto index_strides = Strides(indices);
    const auto axis = static_cast<int>(p_.index_vector_dim);
    vector_stride_ = index_strides[axis];
    int of_indices = 0, of_window = 0;
    for (int d = 0; d < updates_.rank(); ++d) {
      if (Contains(p_.window_dims, d)) continue;
      of_indices += of_indices == axis ? 1 : 0;
      index_strides_[d] = index_strides[of_indices++];
    }
    // Dimension d of the operand is that of the window which the updates have there.
    window_dim_.fill(-1);
    for (int d = 0; d < in_.rank(); ++d) {
      if (!Contains(p_.inserted_dims, d)) window_dim_[d] = p_.window_dims.values[of_window++];
    }
  }

  void operator()(const KernelArgs& args, int64_t, int64_t) const {
    auto* out = static_cast<T*>(args.outputs[0]);
    const int64_t bytes = in_.elements() * static_cast<int64_t>(sizeof(T));
    if (args.inputs[0] != out && bytes > 0) std::memcpy(out, args.inputs[0], bytes);
    switch (p_.function) {
      case ScatterFunction::kAdd: return Apply(args, out, Sum());
      case ScatterFunction::kMultiply: return Apply(args, out, Product());
      case ScatterFunction::kMinimum: return Apply(args, out, Smaller());
      case ScatterFunction::kMaximum: return Apply(args, out, Larger());
      default: return Apply(args, out, [](T, T update) { return update; });
    }
  }

 private:
  template <class F>
  void Apply(const KernelArgs& args, T* out, F function) const {
    const auto* updates = static_cast<const T*>(args.inputs[2]);
    std::array<int64_t, Shape::kMaxRank> at{};
    for (int64_t i = 0; i < updates_.elements(); ++i) {
      const int64_t place = Place(args.inputs[1], at);
      if (place >= 0) out[place] = static_cast<T>(function(out[place], updates[i]));
      for (int d = updates_.rank() - 1; d >= 0 && ++at[d] == updates_[d]; --d) at[d] = 0;
    }
  }

  // The place in the operand of the update at `at`; -1 outside of it.
  int64_t Place(const void* indices, const std::array<int64_t, Shape::kMaxRank>& at) const {
    std::array<int64_t, Shape::kMaxRank> to{};
    int64_t vector = 0;
    for (int d = 0; d < updates_.rank(); ++d) vector += at[d] * index_strides_[d];
    for (int i = 0; i < p_.index_map.count; ++i) {
      to[p_.index_map.values[i]] = LoadIndex(index_type_, indices, vector + i * vector_stride_);
    }
    int64_t place = 0;
    for (int d = 0; d < in_.rank(); ++d) {
      if (to[d] < -int64_t{INT32_MAX} || to[d] > INT32_MAX) return -1;
      if (window_dim_[d] >= 0) to[d] += at[window_dim_[d]];
      if (to[d] < 0 || to[d] >= in_[d]) return -1;
      place += to[d] * strides_[d];
    }
    return place;
  }

  ScatterParams p_;
  Shape in_, updates_;
  std::array<int64_t, Shape::kMaxRank> strides_;
  std::array<int64_t, Shape::kMaxRank> index_strides_{};  // of the updates' dimensions
  std::array<int, Shape::kMaxRank> window_dim_{};         // of the updates; -1: inserted
  int64_t vector_stride_ = 1;
  DataType index_type_;
};

template <class T>
std::unique_ptr<Kernel> BuildOf(const OpDescription& op) {
  return MakeKernel("stablehlo_scatter", {.in_place_input = 0}, Scatter<T>(op));
}

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("STABLEHLO_SCATTER takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  switch (op.inputs[0].type) {
    case DataType::kFloat16: return BuildOf<Half>(op);
    case DataType::kFloat32: return BuildOf<float>(op);
    case DataType::kFloat64: return BuildOf<double>(op);
    case DataType::kInt8: return BuildOf<int8_t>(op);
    case DataType::kInt16: return BuildOf<int16_t>(op);
    case DataType::kInt32: return BuildOf<int32_t>(op);
    case DataType::kInt64: return BuildOf<int64_t>(op);
    case DataType::kUInt8: return BuildOf<uint8_t>(op);
    case DataType::kUInt16: return BuildOf<uint16_t>(op);
    case DataType::kUInt32: return BuildOf<uint32_t>(op);
    case DataType::kBool: return BuildOf<Truth>(op);
    default: return BuildOf<uint64_t>(op);
  }
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& StablehloScatterOperator() {
  static constexpr OperatorDef kDef = {
      .name = "STABLEHLO_SCATTER",
      .builtin_code = tflite::kTfLiteBuiltinStablehloScatter,
      .options_type = kSecondUnion + 7,
      .fields = kFields,
      .params_bytes = sizeof(ScatterParams),
      .struct_bytes = sizeof(TfLiteStablehloScatterParams),
      .min_inputs = 3,
      .max_inputs = 3,
      .types = kTypes,
      .limits =
          "int32 and int64 indices; its subgraph gives the update, or is one "
          "STABLEHLO_ADD, MULTIPLY, MINIMUM or MAXIMUM",
      .infer = InferScatter,
      .candidates = kCandidates,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
