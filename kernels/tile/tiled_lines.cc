#include "kernels/tile/tiled_lines.h"

#include <string>
#include <utility>
#include <vector>

#include "kernels/make_kernel.h"
#include "kernels/movement.h"
#include "kernels/packed_integers.h"
#include "kernels/simd.h"

namespace fuselite::kernels {
namespace {

// Smaller outputs stay in L2 for whoever reads them.
constexpr int64_t kLeastOutput = int64_t{2} << 20;
// Lines shorter than these are copied like others; longer ones leave L2.
constexpr int64_t kLeastLine = int64_t{8} << 10;
constexpr int64_t kMostLine = int64_t{256} << 10;

// Dimensions in front of a line: where each of the input's lines is read and first written.
struct OuterDim {
  int64_t size, in_stride, out_stride;
};

class TiledLines {
 public:
  // Dimensions [axis, rank) are a line of `line_bytes`.
  TiledLines(const OpDescription& op, int axis, int64_t line_bytes, const CopyLoops& loops)
      : line_bytes_(line_bytes), loops_(loops), line_(LineOf(op, axis), loops) {
    const TensorInfo &in = op.inputs[0], &out = op.outputs[0];
    const auto from = ByteStrides(in), to = ByteStrides(out);
    for (int d = 0; d < axis; ++d) {
      outer_.push_back({in.shape[d], from[d], to[d]});
      units_ *= in.shape[d];
      const size_t places = places_.size();
      for (int64_t i = 1; i < out.shape[d] / in.shape[d]; ++i) {
        const int64_t step = i * in.shape[d] * to[d];
        places_.push_back(step);
        for (size_t p = 0; p < places; ++p) places_.push_back(places_[p] + step);
      }
    }
  }

  Work work() const {
    const auto lines = static_cast<int64_t>(places_.size()) + 1;
    return {.units = units_, .grain = GrainFor(lines * line_bytes_ / 4)};
  }

  // A unit is a line of the input, put together where it stands first.
  void Run(const KernelArgs& args, int64_t begin, int64_t end) const {
    for (int64_t unit = begin; unit < end; ++unit) {
      int64_t in = 0, out = 0, rest = unit;
      for (auto dim = outer_.rbegin(); dim != outer_.rend(); ++dim) {
        in += rest % dim->size * dim->in_stride;
        out += rest % dim->size * dim->out_stride;
        rest /= dim->size;
      }
      std::byte* const first = static_cast<std::byte*>(args.outputs[0]) + out;
      line_.Run(static_cast<const std::byte*>(args.inputs[0]) + in, first, 0, line_.units());
      for (const int64_t place : places_) {
        loops_.rows(first, first + place, {1, 0, 0}, line_bytes_);
      }
    }
  }

 private:
  static StridedCopy LineOf(const OpDescription& op, int axis) {
    StridedCopy copy = MakePart(op, 0, 0).copy;
    const TensorInfo &in = op.inputs[0], &out = op.outputs[0];
    const auto from = ByteStrides(in), to = ByteStrides(out);
    for (int d = axis; d < in.shape.rank(); ++d) {
      copy.Add(out.shape[d] / in.shape[d], 0, in.shape[d] * to[d]);
      copy.Add(in.shape[d], from[d], to[d]);
    }
    return copy;
  }

  int64_t line_bytes_;
  CopyLoops loops_;
  CopyPlan line_;
  std::vector<OuterDim> outer_;
  int64_t units_ = 1;
  std::vector<int64_t> places_;  // of a line, from the first one, which is not among them
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildTiledLines(const OpDescription& op,
                                                const BuildContext& context) {
  const TensorInfo& out = op.outputs[0];
  if (!op.tail.empty()) return Unsupported("TILE takes no fused tail");
  if (IsPacked(out.type) || out.row_pitch != 0) return Unsupported("rows are not whole bytes");
  int64_t line_bytes = BitWidth(out.type) / 8;
  if (out.elements() * line_bytes < kLeastOutput) return Unsupported("the output is small");
  if (out.elements() == op.inputs[0].elements()) return Unsupported("nothing is repeated");
  int axis = out.shape.rank();
  while (axis > 0 && line_bytes * out.shape[axis - 1] <= kMostLine) {
    line_bytes *= out.shape[--axis];
  }
  if (line_bytes < kLeastLine) return Unsupported("lines are short");
  if (!HasVectorCopyLoops(context.isa)) return NoVectorTarget(context.isa);
  TiledLines lines(op, axis, line_bytes, CopyLoopsFor(context.isa));
  const Work work = lines.work();
  return MakeKernel(
      "tile " + std::string(DataTypeName(out.type)) + " lines " + SimdName(context.isa), work,
      [lines = std::move(lines)](const KernelArgs& args, int64_t begin, int64_t end) {
        lines.Run(args, begin, end);
      });
}

}  // namespace fuselite::kernels
