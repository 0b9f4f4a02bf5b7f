// Convolutions of volumes as matrix products: those of images, whose windows reach over several
// planes. The transposed form is stride_d * stride_h * stride_w of them.
#include "kernels/conv3d/conv3d.h"
#include "kernels/product/description.h"
#include "kernels/shape_rules.h"
#include "kernels/tap_ranges.h"
#include "kernels/transpose_conv/axis_parts.h"

namespace fuselite::kernels {
namespace {

struct Parts3D {
  AxisPart z, y, x;
};

// Ranges of planes whose windows have the same planes inside of the volume, where that leaves out
// enough; else all as one. Of four planes, windows of three meet 10 instead of 12.
std::vector<TapRange> PlanesByTaps(const Window3D& window) {
  // Products of fewer rows would load weights of their own for little, and weights are packed for
  // each range.
  constexpr int64_t kFewestRows = 16;
  constexpr size_t kMostRanges = 3;
  constexpr double kWorthwhile = 0.95;
  const auto& [d, h, w] = window.axes;
  if (d.before == 0 && d.after == 0) return WholeRange(d);
  const std::vector<TapRange> ranges = RangesByTaps(d);
  int64_t taps = 0;
  for (const TapRange& range : ranges) taps += int64_t{range.taps} * range.outputs();
  const bool worthwhile = !ranges.empty() && ranges.size() <= kMostRanges &&
                          static_cast<double>(taps) <= kWorthwhile * d.filter * d.output &&
                          int64_t{h.output} * w.output >= kFewestRows;
  return worthwhile ? ranges : WholeRange(d);
}

ProductPart PartOfPlanes(const Window3D& window, const Shape& filter, const TapRange& range) {
  const auto& [d, h, w] = window.axes;
  const auto whole = [](const WindowAxis& axis) { return OverPadded(axis, WholeRange(axis)[0]); };
  ProductPart part{.window = {whole(h), whole(w)}, .z = OverPadded(d, range)};
  part.first_z = range.start(d);
  part.out_z = range.begin;
  const int64_t plane = int64_t{h.filter} * w.filter;
  for (int64_t tap = range.first_tap * plane; tap < (range.first_tap + range.taps) * plane; ++tap) {
    part.taps.push_back(tap * filter[3] * filter[4]);
  }
  return part;
}

void DescribeForward(const Window3D& window, const Shape& filter, bool constant,
                     ProductDescription* product) {
  const auto& [d, h, w] = window.axes;
  product->padding = {h, w};
  product->volume = d;
  product->k_step = filter[4];
  product->n_step = 1;
  const std::vector<TapRange> planes = constant ? PlanesByTaps(window) : WholeRange(d);
  if (planes.size() == 1 && planes[0].taps == d.filter) {
    product->parts = {{.window = {h, w}, .z = d}};
    return;
  }
  if (planes.size() > 1) product->name = internal::Join("conv3d of ", planes.size(), " parts");
  for (const TapRange& range : planes) {
    product->parts.push_back(PartOfPlanes(window, filter, range));
  }
}

// Later taps meet earlier inputs.
std::vector<int64_t> TapsOf(const Window3D& window, const Shape& filter, const Parts3D& part) {
  const auto& [d, h, w] = window.axes;
  std::vector<int64_t> taps;
  for (int32_t tz = part.z.taps - 1; tz >= 0; --tz) {
    for (int32_t ty = part.y.taps - 1; ty >= 0; --ty) {
      for (int32_t tx = part.x.taps - 1; tx >= 0; --tx) {
        const int64_t kd = part.z.remainder + tz * d.stride, kh = part.y.remainder + ty * h.stride;
        const int64_t kw = part.x.remainder + tx * w.stride;
        taps.push_back(((kd * h.filter + kh) * w.filter + kw) * filter[3] * filter[4]);
      }
    }
  }
  return taps;
}

ProductPart MakePart(const Window3D& window, const Shape& filter, const Parts3D& at) {
  const auto& [d, h, w] = window.axes;
  ProductPart part;
  part.window.y = {.filter = at.y.taps, .output = at.y.outputs};
  part.window.x = {.filter = at.x.taps, .output = at.x.outputs};
  part.z = {.filter = at.z.taps, .output = at.z.outputs};
  part.first_z = at.z.start;
  part.first_y = at.y.start;
  part.first_x = at.x.start;
  part.out_z = at.z.first;
  part.out_y = at.y.first;
  part.out_x = at.x.first;
  part.step_z = d.stride;
  part.step_y = h.stride;
  part.step_x = w.stride;
  part.taps = TapsOf(window, filter, at);
  return part;
}

Status DescribeTransposed(const Window3D& window, const Shape& filter,
                          ProductDescription* product) {
  const auto& [d, h, w] = window.axes;
  // Outputs whose remainders are beyond would each have a product of their own.
  constexpr int64_t kMostParts = 1024;
  int64_t parts = 1;
  for (const WindowAxis& axis : window.axes) {
    if (axis.dilation != 1) return Unsupported("does not take dilated taps");
    parts *= axis.stride;
    if (parts > kMostParts) return Unsupported("does not take strides beyond ", kMostParts);
  }
  product->padding = {PaddedAxis(h), PaddedAxis(w)};
  product->volume = PaddedAxis(d);
  product->n_step = filter[4];
  for (int32_t rz = 0; rz < d.stride; ++rz) {
    for (int32_t ry = 0; ry < h.stride; ++ry) {
      for (int32_t rx = 0; rx < w.stride; ++rx) {
        const Parts3D part = {PartOf(d, rz), PartOf(h, ry), PartOf(w, rx)};
        if (part.z.outputs == 0 || part.y.outputs == 0 || part.x.outputs == 0) continue;
        product->parts.push_back(MakePart(window, filter, part));
      }
    }
  }
  return Status();
}

// The padded copy holds what windows skip, too, which may be beyond all memory.
Status CheckPadded(const ProductDescription& product) {
  const WindowAxis axes[] = {*product.volume, product.padding.y, product.padding.x};
  double positions = static_cast<double>(product.images);
  for (const WindowAxis& axis : axes) positions *= static_cast<double>(axis.reach());
  if (positions <= INT32_MAX) return Status();
  return Unsupported("windows that reach over ", positions, " padded positions");
}

}  // namespace

Result<ProductDescription> DescribeConv3DProduct(const OpDescription& op) {
  const bool transposed = IsConv3DTransposed(op);
  FUSELITE_RETURN_IF_ERROR(RequireDenseInputs(op, {1, transposed ? 3U : 2U}));
  const TensorInfo& in = op.inputs[transposed ? 2 : 0];
  const Shape &filter = op.inputs[1].shape, &out = op.outputs[0].shape;
  FUSELITE_ASSIGN_OR_RETURN(const Window3D window, ResolveConv3D(op, transposed ? out : in.shape));
  ProductDescription product;
  product.name = transposed ? "transpose_conv3d" : "conv3d";
  product.activation = op.params.as<Conv3DParams>().activation;
  product.images = in.shape[0];
  product.channels_in = in.shape[4];
  product.pixel_pitch = in.pitch();
  product.out_planes = out[1];
  product.out_height = out[2];
  product.out_width = out[3];
  product.channels_out = out[4];
  product.batch = {.rank = 1, .dims = {in.shape[0]}, .x_strides = {1}, .y_strides = {0}};
  if (transposed) {
    FUSELITE_RETURN_IF_ERROR(DescribeTransposed(window, filter, &product));
  } else {
    DescribeForward(window, filter, op.inputs[1].constant(), &product);
  }
  FUSELITE_RETURN_IF_ERROR(CheckPadded(product));
  return product;
}

}  // namespace fuselite::kernels
