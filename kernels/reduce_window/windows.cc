#include <array>

#include "kernels/make_kernel.h"
#include "kernels/reduce_window/combine.h"
#include "kernels/reduce_window/reduce_window.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

// Unit: one element of the output.
template <class T, WindowFunction kFunction>
class Windows {
 public:
  Windows(const OpDescription& op, const std::vector<WindowDim>& window)
      : rank_(op.inputs[0].shape.rank()) {
    int64_t step = 1, terms = 1;
    for (int d = rank_ - 1; d >= 0; --d) {
      const int64_t extent = op.inputs[0].shape[d];
      dims_[d] = {window[d], op.outputs[0].shape[d], (extent - 1) * window[d].base + 1, step,
                  terms};
      terms *= window[d].size;
      step *= extent;
    }
  }

  void operator()(const KernelArgs& args, int64_t begin, int64_t end) const {
    const auto* in = static_cast<const T*>(args.inputs[0]);
    const auto initial = *static_cast<const T*>(args.inputs[1]);
    for (int64_t o = begin; o < end; ++o) {
      std::array<int64_t, kMaxWindowRank> start{};
      int64_t rest = o;
      for (int d = rank_ - 1; d >= 0; --d) {
        start[d] = rest % dims_[d].positions * dims_[d].window.stride - dims_[d].window.low;
        rest /= dims_[d].positions;
      }
      T total = initial;
      Reduce(0, in, start, initial, total);
      static_cast<T*>(args.outputs[0])[o] = total;
    }
  }

 private:
  struct Dim {
    WindowDim window;
    int64_t positions;
    int64_t reach;  // of the input, with what lies between its elements
    int64_t step;   // of the input, in elements
    int64_t terms;  // of the window in the dimensions behind
  };

  void Reduce(int d, const T* in, const std::array<int64_t, kMaxWindowRank>& start, T initial,
              T& total) const {
    const Dim& dim = dims_[d];
    for (int64_t w = 0; w < dim.window.size; ++w) {
      const int64_t place = start[d] + w * dim.window.dilation;
      const bool outside =
          place < 0 || place >= dim.reach || (dim.window.base > 1 && place % dim.window.base != 0);
      if (outside) {
        for (int64_t i = 0; i < dim.terms; ++i) total = Combine<kFunction, T>(total, initial);
        continue;
      }
      const T* at = in + (dim.window.base > 1 ? place / dim.window.base : place) * dim.step;
      if (d + 1 < rank_) {
        Reduce(d + 1, at, start, initial, total);
      } else {
        total = Combine<kFunction, T>(total, *at);
      }
    }
  }

  int rank_;
  std::array<Dim, kMaxWindowRank> dims_{};
};

template <class T, WindowFunction kFunction>
std::unique_ptr<Kernel> BuildOf(const OpDescription& op, const std::vector<WindowDim>& window) {
  int64_t terms = 1;
  for (const WindowDim& dim : window) terms *= dim.size;
  return MakeKernel("reduce_window " + std::string(DataTypeName(op.inputs[0].type)),
                    {.units = op.outputs[0].elements(), .grain = GrainFor(terms)},
                    Windows<T, kFunction>(op, window));
}

}  // namespace

Result<int64_t> WindowDim::Positions(int64_t extent) const {
  for (const int64_t value : {size, stride, dilation, base}) {
    if (value < 1 || value > INT32_MAX) {
      return InvalidArgument("a window, stride or dilation of ", value, " is not possible");
    }
  }
  const int64_t spread = extent == 0 && base == 1 ? 0 : (extent - 1) * base + 1;
  const int64_t padded = spread + low + high;
  const int64_t reach = (size - 1) * dilation + 1;
  const bool moved = low != 0 || high != 0;
  if (spread < 0 || padded < 0 || (padded == 0 && moved) || padded > INT32_MAX) {
    return InvalidArgument("windows over ", padded, " elements made of ", extent);
  }
  return padded < reach ? 0 : (padded - reach) / stride + 1;
}

Status InferWindows(OpDescription& op, const std::vector<WindowDim>& window,
                    WindowFunction function) {
  const TensorInfo& in = op.inputs[0];
  if (function < WindowFunction::kAdd || function > WindowFunction::kAny) {
    return InvalidArgument("the function ", static_cast<int>(function), " is unknown");
  }
  if (in.shape.rank() < 1 || in.shape.rank() > kMaxWindowRank) {
    return Unsupported("does not take rank ", in.shape.rank(), ", not 1 to ", kMaxWindowRank);
  }
  if (op.inputs[1].elements() < 1) return InvalidArgument("no initial value");
  std::vector<int64_t> dims;
  double terms = 1;
  for (int d = 0; d < in.shape.rank(); ++d) {
    FUSELITE_ASSIGN_OR_RETURN(dims.emplace_back(), window[d].Positions(in.shape[d]));
    terms *= static_cast<double>(window[d].size);
  }
  // LiteRT has memory for what the windows move over.
  if (terms > INT32_MAX) return Unsupported("does not take windows of more than 2^31 elements");
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, in.type, shape);
}

Result<std::unique_ptr<Kernel>> BuildWindows(const OpDescription& op,
                                             const std::vector<WindowDim>& window,
                                             WindowFunction function) {
  if (!op.tail.empty()) return Unsupported("windows take no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  return WithWindowFunction(op.inputs[0].type, function,
                            [&]<class T, WindowFunction kFunction>() -> std::unique_ptr<Kernel> {
                              return BuildOf<T, kFunction>(op, window);
                            });
}

}  // namespace fuselite::kernels
