#include "kernels/reduce_window/reduce_window.h"

#include <array>
#include <type_traits>

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite_abi.h"

namespace fuselite::kernels {
namespace {

constexpr int kMaxRank = 6;

constexpr Field kFields[] = {
    {"reduce_function", FieldKind::kInt32, 0, offsetof(ReduceWindowParams, function),
     offsetof(tflite::TfLiteReduceWindowParams, reduce_function)},
};
constexpr TypeRow Row(DataType type) { return {{type, type, DataType::kInt64}, type}; }
constexpr TypeRow kTypes[] = {
    Row(DataType::kFloat32), Row(DataType::kFloat64), Row(DataType::kInt8),  Row(DataType::kUInt8),
    Row(DataType::kInt16),   Row(DataType::kInt32),   Row(DataType::kInt64), Row(DataType::kBool)};

struct WindowDim {
  int64_t size, stride, dilation;
};

Result<std::vector<WindowDim>> ReadWindow(const OpDescription& op) {
  const int rank = op.inputs[0].shape.rank();
  std::vector<WindowDim> dims(rank);
  for (int input = 2; input < 5; ++input) {
    const TensorInfo& info = op.inputs[input];
    if (info.type != DataType::kInt64 || info.elements() != rank) {
      return InvalidArgument("window, strides and dilations must be ", rank, " of int64");
    }
    FUSELITE_ASSIGN_OR_RETURN(const std::vector<int64_t> values, ReadIntegers(info, "the window"));
    for (int d = 0; d < rank; ++d) {
      if (values[d] < 1 || values[d] > INT32_MAX) {
        return InvalidArgument("a window, stride or dilation of ", values[d], " is not possible");
      }
      (input == 2 ? dims[d].size : input == 3 ? dims[d].stride : dims[d].dilation) = values[d];
    }
  }
  return dims;
}

Status InferReduceWindow(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const auto function = static_cast<int>(op.params.as<ReduceWindowParams>().function);
  if (function < static_cast<int>(WindowFunction::kAdd) ||
      function > static_cast<int>(WindowFunction::kAny)) {
    return InvalidArgument("the function ", function, " is unknown");
  }
  if (in.shape.rank() < 1 || in.shape.rank() > kMaxRank) {
    return Unsupported("rank ", in.shape.rank(), ", not 1 to ", kMaxRank);
  }
  if (op.inputs[1].elements() < 1) return InvalidArgument("no initial value");
  FUSELITE_ASSIGN_OR_RETURN(const std::vector<WindowDim> window, ReadWindow(op));
  std::vector<int64_t> dims;
  for (int d = 0; d < in.shape.rank(); ++d) {
    const int64_t reach = (window[d].size - 1) * window[d].dilation + 1;
    dims.push_back(in.shape[d] < reach ? 0 : (in.shape[d] - reach) / window[d].stride + 1);
  }
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, in.type, shape);
}

// As the unsigned integer of 64 bits, whose low bits are what the type would have.
template <class T, class F>
T Wrapped(T x, T y, F f) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(f(static_cast<uint64_t>(x), static_cast<uint64_t>(y)));
  } else {
    return f(x, y);
  }
}

template <WindowFunction kFunction, class T>
T Combine(T x, T y) {
  if constexpr (kFunction == WindowFunction::kAdd) {
    return Wrapped(x, y, [](auto a, auto b) { return a + b; });
  } else if constexpr (kFunction == WindowFunction::kMul) {
    return Wrapped(x, y, [](auto a, auto b) { return a * b; });
  } else if constexpr (kFunction == WindowFunction::kMinimum) {
    return x <= y ? x : y;
  } else if constexpr (kFunction == WindowFunction::kMaximum) {
    return x >= y ? x : y;
  } else if constexpr (kFunction == WindowFunction::kAll) {
    return static_cast<T>(x && y);
  } else {
    return static_cast<T>(x || y);
  }
}

// Loops of the output and of the window over the input, in elements.
struct WindowPlan {
  struct Dim {
    int64_t size, stride;
  };
  std::array<Dim, kMaxRank> outputs{}, window{};
  int rank = 0;
  int64_t terms = 1;

  explicit WindowPlan(const OpDescription& op) : rank(op.inputs[0].shape.rank()) {
    const std::vector<WindowDim> dims = ReadWindow(op).value();
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      outputs[d] = {op.outputs[0].shape[d], dims[d].stride * stride};
      window[d] = {dims[d].size, dims[d].dilation * stride};
      terms *= dims[d].size;
      stride *= op.inputs[0].shape[d];
    }
  }
  static int64_t Offset(const std::array<Dim, kMaxRank>& dims, int rank, int64_t index) {
    int64_t offset = 0;
    for (int d = rank - 1; d >= 0; --d) {
      offset += index % dims[d].size * dims[d].stride;
      index /= dims[d].size;
    }
    return offset;
  }
};

template <class T, WindowFunction kFunction>
std::unique_ptr<Kernel> BuildOf(const OpDescription& op) {
  const WindowPlan plan(op);
  return MakeKernel("reduce_window " + std::string(DataTypeName(op.inputs[0].type)),
                    {.units = op.outputs[0].elements(), .grain = GrainFor(plan.terms)},
                    [plan](const KernelArgs& args, int64_t begin, int64_t end) {
                      const auto initial = *static_cast<const T*>(args.inputs[1]);
                      const int last = plan.rank - 1;
                      const WindowPlan::Dim row = plan.window[last];
                      for (int64_t o = begin; o < end; ++o) {
                        const T* in = static_cast<const T*>(args.inputs[0]) +
                                      WindowPlan::Offset(plan.outputs, plan.rank, o);
                        T total = initial;
                        for (int64_t rows = 0; rows < plan.terms / row.size; ++rows) {
                          const T* x = in + WindowPlan::Offset(plan.window, last, rows);
                          for (int64_t i = 0; i < row.size; ++i) {
                            total = Combine<kFunction, T>(total, x[i * row.stride]);
                          }
                        }
                        static_cast<T*>(args.outputs[0])[o] = total;
                      }
                    });
}

template <class T>
std::unique_ptr<Kernel> BuildType(const OpDescription& op) {
  switch (op.params.as<ReduceWindowParams>().function) {
    case WindowFunction::kAdd: return BuildOf<T, WindowFunction::kAdd>(op);
    case WindowFunction::kMul: return BuildOf<T, WindowFunction::kMul>(op);
    case WindowFunction::kMinimum: return BuildOf<T, WindowFunction::kMinimum>(op);
    case WindowFunction::kMaximum: return BuildOf<T, WindowFunction::kMaximum>(op);
    case WindowFunction::kAll: return BuildOf<T, WindowFunction::kAll>(op);
    default: return BuildOf<T, WindowFunction::kAny>(op);
  }
}

constexpr Candidate kCandidates[] = {{"reference", BuildReduceWindow}};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildReduceWindow(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("REDUCE_WINDOW takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  switch (op.inputs[0].type) {
    case DataType::kFloat32: return BuildType<float>(op);
    case DataType::kFloat64: return BuildType<double>(op);
    case DataType::kUInt8: return BuildType<uint8_t>(op);
    case DataType::kInt16: return BuildType<int16_t>(op);
    case DataType::kInt32: return BuildType<int32_t>(op);
    case DataType::kInt64: return BuildType<int64_t>(op);
    default: return BuildType<int8_t>(op);
  }
}

const OperatorDef& ReduceWindowOperator() {
  static const OperatorDef kDef = {
      .name = "REDUCE_WINDOW",
      .builtin_code = tflite::kTfLiteBuiltinReduceWindow,
      .options_type = kSecondUnion + 20,
      .fields = kFields,
      .params_bytes = sizeof(ReduceWindowParams),
      .struct_bytes = sizeof(tflite::TfLiteReduceWindowParams),
      .min_inputs = 5,
      .max_inputs = 5,
      .types = kTypes,
      .limits = "rank <= 6",
      .infer = InferReduceWindow,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 1.0 * op.inputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
