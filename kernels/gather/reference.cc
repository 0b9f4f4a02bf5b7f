#include <cstring>
#include <limits>

#include "kernels/gather/coordinates.h"
#include "kernels/gather/gather.h"
#include "kernels/make_kernel.h"
#include "kernels/numbers/short_floats.h"
#include "kernels/packed_integers.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

Status CheckPlain(const OpDescription& op) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  return RequireDense(op);
}

Status OutOfRange(int64_t index, int64_t size) {
  return InvalidArgument("index ", index, " is not in [0, ", size, ")");
}

template <class T>
void AddTo(std::byte* out, const std::byte* update, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const T sum = static_cast<T>(LoadUnaligned<T>(out, i) + LoadUnaligned<T>(update, i));
    std::memcpy(out + i * sizeof(T), &sum, sizeof(T));
  }
}

void AddElements(DataType type, std::byte* out, const std::byte* update, int64_t count) {
  switch (type) {
    case DataType::kFloat32: AddTo<float>(out, update, count); break;
    case DataType::kInt64: AddTo<uint64_t>(out, update, count); break;
    case DataType::kInt32: AddTo<uint32_t>(out, update, count); break;
    case DataType::kBool:
      for (int64_t i = 0; i < count; ++i) out[i] |= update[i];
      break;
    default: AddTo<uint8_t>(out, update, count); break;
  }
}

template <class Out>
std::unique_ptr<Kernel> BuildScaledRows(const OpDescription& op, const Work& work) {
  const TensorInfo& rows = op.inputs[1];
  const int64_t count = rows.shape[0];
  const int64_t width = rows.shape.elements(1, rows.shape.rank());
  return MakeKernel("embedding_lookup " + std::string(DataTypeName(rows.type)) + " " +
                        std::string(DataTypeName(op.outputs[0].type)),
                    work,
                    [=, scales = rows.quantization.scales, type = rows.type](
                        const KernelArgs& args, int64_t begin, int64_t end) -> Status {
                      auto* to = static_cast<Out*>(args.outputs[0]);
                      const auto scale_rows = [&](const auto& from) -> Status {
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t id = LoadUnaligned<int32_t>(args.inputs[0], i);
                          if (id < 0 || id >= count) return OutOfRange(id, count);
                          const float scale = scales[scales.size() > 1 ? id : 0];
                          for (int64_t j = 0; j < width; ++j) {
                            to[i * width + j] =
                                static_cast<Out>(static_cast<float>(from[id * width + j]) * scale);
                          }
                        }
                        return Status();
                      };
                      if (IsPacked(type)) return scale_rows(PackedIntegers(type, args.inputs[1]));
                      return scale_rows(static_cast<const int8_t*>(args.inputs[1]));
                    });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildGather(const OpDescription& op, const BuildContext&) {
  FUSELITE_RETURN_IF_ERROR(CheckPlain(op));
  const Shape& in = op.inputs[0].shape;
  const Shape& indices = op.inputs[1].shape;
  const auto& params = op.params.as<GatherParams>();
  const int64_t batches = in.elements(0, params.batch_dims);
  const int64_t lines = in.elements(params.batch_dims, params.axis);
  const int64_t picks = indices.elements(params.batch_dims, indices.rank());
  const int64_t after = in.elements(params.axis + 1, in.rank());
  // Where no slice has an element, each index is checked once, however many slices it names.
  // Without a line to take slices from, LiteRT refuses negative ones only.
  const bool empty = op.outputs[0].elements() == 0;
  const int64_t before = empty ? 1 : lines;
  const int64_t bytes = empty ? 0 : after * BitWidth(op.inputs[0].type) / 8;
  const int64_t size = lines > 0 ? in[params.axis] : std::numeric_limits<int64_t>::max();
  return MakeKernel(
      "gather " + std::string(DataTypeName(op.inputs[0].type)),
      {.units = batches * before * picks, .grain = GrainFor(bytes / 4 + 1)},
      [=, type = op.inputs[1].type](const KernelArgs& args, int64_t begin, int64_t end) -> Status {
        // Batch and `before` together; a division for each unit would take longer than its copy.
        int64_t outer = picks ? begin / picks : 0, pick = picks ? begin % picks : 0;
        for (int64_t unit = begin; unit < end; ++outer, pick = 0) {
          const int64_t batch = outer / before * picks;
          const auto* from = static_cast<const std::byte*>(args.inputs[0]) + outer * (size * bytes);
          auto* to = static_cast<std::byte*>(args.outputs[0]) + unit * bytes;
          for (; pick < picks && unit < end; ++pick, ++unit, to += bytes) {
            const int64_t index = LoadIndex(type, args.inputs[1], batch + pick);
            if (index < 0 || index >= size) return OutOfRange(index, size);
            CopySlice(from + index * bytes, bytes, to);
          }
        }
        return Status();
      });
}

Result<std::unique_ptr<Kernel>> BuildGatherNd(const OpDescription& op, const BuildContext&) {
  FUSELITE_RETURN_IF_ERROR(CheckPlain(op));
  const Shape& in = op.inputs[0].shape;
  const Shape& indices = op.inputs[1].shape;
  const int depth = indices.dim(-1);
  const Coordinates coordinates(op.inputs[1], in);
  const int64_t bytes = in.elements(depth, in.rank()) * BitWidth(op.inputs[0].type) / 8;
  const int64_t units = coordinates.Count(indices.elements(0, indices.rank() - 1), bytes);
  return MakeKernel("gather_nd " + std::string(DataTypeName(op.inputs[0].type)),
                    {.units = units, .grain = GrainFor(bytes / 4 + depth)},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) -> Status {
                      const auto* from = static_cast<const std::byte*>(args.inputs[0]);
                      auto* to = static_cast<std::byte*>(args.outputs[0]);
                      for (int64_t unit = begin; unit < end; ++unit) {
                        const int64_t position = coordinates.Locate(args.inputs[1], unit);
                        if (position < 0) {
                          return InvalidArgument("coordinates ", unit, " are out of ", in);
                        }
                        CopySlice(from + position * bytes, bytes, to + unit * bytes);
                      }
                      return Status();
                    });
}

// One unit: updates of one place are added in their order.
Result<std::unique_ptr<Kernel>> BuildScatterNd(const OpDescription& op, const BuildContext&) {
  FUSELITE_RETURN_IF_ERROR(CheckPlain(op));
  const TensorInfo& out = op.outputs[0];
  const Shape& indices = op.inputs[0].shape;
  const int depth = indices.dim(-1);
  const int64_t slice = out.shape.elements(depth, out.shape.rank());
  const Coordinates coordinates(op.inputs[0], out.shape);
  const int64_t updates = coordinates.Count(indices.elements(0, indices.rank() - 1), slice);
  return MakeKernel("scatter_nd " + std::string(DataTypeName(out.type)), {},
                    [=, shape = out.shape, type = out.type, element = BitWidth(out.type) / 8,
                     bytes = out.bytes()](const KernelArgs& args, int64_t, int64_t) -> Status {
                      const auto* from = static_cast<const std::byte*>(args.inputs[1]);
                      auto* to = static_cast<std::byte*>(args.outputs[0]);
                      if (bytes > 0) std::memset(to, 0, bytes);
                      for (int64_t i = 0; i < updates; ++i) {
                        const int64_t position = coordinates.Locate(args.inputs[0], i);
                        if (position < 0)
                          return InvalidArgument("coordinates ", i, " are out of ", shape);
                        AddElements(type, to + position * slice * element,
                                    from + i * slice * element, slice);
                      }
                      return Status();
                    });
}

Result<std::unique_ptr<Kernel>> BuildEmbeddingLookup(const OpDescription& op, const BuildContext&) {
  FUSELITE_RETURN_IF_ERROR(CheckPlain(op));
  const TensorInfo& rows = op.inputs[1];
  const TensorInfo& out = op.outputs[0];
  const int64_t count = rows.shape[0];
  const int64_t width = rows.shape.elements(1, rows.shape.rank());
  const int64_t bytes = width * BitWidth(rows.type) / 8;
  // As in LiteRT: a table without an element has any row.
  const int64_t units = width + count > 0 ? int64_t{out.shape[0]} : 0;
  const Work work = {.units = units, .grain = GrainFor(width)};
  if (rows.type == out.type) {
    return MakeKernel("embedding_lookup " + std::string(DataTypeName(rows.type)), work,
                      [=](const KernelArgs& args, int64_t begin, int64_t end) -> Status {
                        const auto* from = static_cast<const std::byte*>(args.inputs[1]);
                        auto* to = static_cast<std::byte*>(args.outputs[0]);
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t id = LoadUnaligned<int32_t>(args.inputs[0], i);
                          if (id < 0 || id >= count) return OutOfRange(id, count);
                          CopySlice(from + id * bytes, bytes, to + i * bytes);
                        }
                        return Status();
                      });
  }
  if (out.type == DataType::kFloat16) return BuildScaledRows<Half>(op, work);
  return BuildScaledRows<float>(op, work);
}

}  // namespace fuselite::kernels
