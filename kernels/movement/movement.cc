#include "kernels/movement/movement.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/make_kernel.h"
#include "kernels/simd.h"

namespace fuselite::kernels {
namespace {

struct PlannedPart {
  int input, output;
  std::array<std::byte, 16> constant;
  CopyPlan plan;
  int64_t first_unit;

  void Run(const KernelArgs& args, int64_t begin, int64_t end) const {
    if (begin >= end) return;
    const void* source = input == CopyPart::kConstant ? constant.data() : args.inputs[input];
    plan.Run(source, args.outputs[output], begin, end);
  }
};

// A part's units behind those of the part before.
void RunParts(const std::vector<PlannedPart>& parts, const KernelArgs& args, int64_t begin,
              int64_t end) {
  const auto after = std::ranges::upper_bound(parts, begin, {}, &PlannedPart::first_unit);
  for (auto part = after - 1; part != parts.end() && part->first_unit < end; ++part) {
    part->Run(args, std::max<int64_t>(begin - part->first_unit, 0),
              std::min(end - part->first_unit, part->plan.units()));
  }
}

// Bands [begin, end) of `bands`: of each part the units that lie in them.
void RunBands(const std::vector<PlannedPart>& parts, const KernelArgs& args, int64_t bands,
              int64_t begin, int64_t end) {
  for (int64_t band = begin; band < end; ++band) {
    for (const PlannedPart& part : parts) {
      const int64_t units = part.plan.units();
      part.Run(args, units * band / bands, units * (band + 1) / bands);
    }
  }
}

// Parts that have so many units and more are copied in bands of all of them: the channels of two
// inputs lie in the same cache lines of the output, for which threads with an input each would wait
// (28 x 28 pixels of 58 and 58 floats, two threads: 23.5 us, in bands 12).
constexpr int64_t kFewestBands = 4;

}  // namespace

std::array<int64_t, Shape::kMaxRank> ByteStrides(const TensorInfo& info) {
  std::array<int64_t, Shape::kMaxRank> strides{};
  int64_t stride = BitWidth(info.type) / 8;
  const int last = info.shape.rank() - 1;
  for (int d = last; d >= 0; --d) {
    strides[d] = stride;
    // It stops at the outermost dimension: the bytes of the whole may be more than 64 bits count.
    if (d > 0) stride *= d == last ? info.pitch() : info.shape[d];
  }
  return strides;
}

CopyPart MakePart(const OpDescription& op, int input, int output) {
  CopyPart part;
  part.input = input;
  part.output = output;
  part.copy.element_bytes = BitWidth(op.outputs[output].type) / 8;
  return part;
}

void FillAround(const CopyPart& fill, const std::vector<Extent>& extents,
                const std::vector<int64_t>& out_strides, Movement* movement) {
  const int rank = static_cast<int>(extents.size());
  // Dimension d's slabs span the box in the dimensions before it and everything in those after.
  for (int d = 0; d < rank; ++d) {
    const Extent& e = extents[d];
    const Extent sides[] = {{e.total, 0, e.begin},
                            {e.total, e.begin + e.size, e.total - e.begin - e.size}};
    for (const Extent& side : sides) {
      if (side.size == 0) continue;
      CopyPart part = fill;
      for (int i = 0; i < rank; ++i) {
        const Extent& x = extents[i];
        const int64_t begin = i < d ? x.begin : (i == d ? side.begin : 0);
        const int64_t size = i < d ? x.size : (i == d ? side.size : x.total);
        part.copy.out_offset += begin * out_strides[i];
        part.copy.Add(size, 0, out_strides[i]);
      }
      movement->parts.push_back(part);
    }
  }
}

namespace {

Result<std::unique_ptr<Kernel>> MakeKernelWith(const CopyLoops& loops, const char* suffix,
                                               const OpDescription& op, const Movement& movement) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  std::vector<PlannedPart> parts;
  parts.reserve(movement.parts.size());
  int64_t units = 0;
  int64_t moves = 0, bands = 0;
  for (const CopyPart& part : movement.parts) {
    CopyPlan plan(part.copy, loops);
    if (plan.units() == 0) continue;
    moves += plan.moves();
    const int64_t more = plan.units();
    parts.push_back({part.input, part.output, part.constant, std::move(plan), units});
    units += more;
    bands = std::max(bands, more);
  }
  std::string name(op.op->name);
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  name += " " + std::string(DataTypeName(op.outputs[0].type)) + suffix;
  const auto work = [&](int64_t of_units) {
    return Work{.units = of_units, .grain = GrainFor(of_units ? moves / of_units : 0)};
  };
  if (parts.size() > 1 && bands >= kFewestBands) {
    return MakeKernel(
        std::move(name), work(bands),
        [=, parts = std::move(parts)](const KernelArgs& args, int64_t begin, int64_t end) {
          RunBands(parts, args, bands, begin, end);
        });
  }
  return MakeKernel(std::move(name), work(units),
                    [parts = std::move(parts)](const KernelArgs& args, int64_t begin, int64_t end) {
                      if (begin < end) RunParts(parts, args, begin, end);
                    });
}

}  // namespace

Result<std::unique_ptr<Kernel>> MakeMovementKernel(const OpDescription& op,
                                                   const Movement& movement) {
  return MakeKernelWith(ScalarCopyLoops(), "", op, movement);
}

Result<std::unique_ptr<Kernel>> MakeVectorMovementKernel(const OpDescription& op,
                                                         const Movement& movement, Isa isa) {
  if (!HasVectorCopyLoops(isa)) return NoVectorTarget(isa);
  return MakeKernelWith(CopyLoopsFor(isa), (std::string(" ") + SimdName(isa)).c_str(), op,
                        movement);
}

double MovementCost(const OpDescription& op) {
  double elements = 0;
  for (const TensorInfo& output : op.outputs) elements += static_cast<double>(output.elements());
  return elements;
}

}  // namespace fuselite::kernels
