#include "kernels/product/one_tile_kernel.h"

#include <utility>

#include "runtime/execution/streaming_kernel.h"

namespace fuselite::kernels {
namespace {

// A left side of so many bytes each thread brings into form for itself: up to a microsecond.
constexpr size_t kOwnSource = 16 << 10;
// Weights of so many bytes are taken for a part of more than the caches hold.
constexpr size_t kStreamed = 1 << 19;

// Nets of a few microseconds are made of these, so what happens between Run() and the emitted code
// is two calls. A small left side that is brought into form in one unit is no phase of its own:
// every thread does that for itself, which takes less than waiting for another one (some 0.2
// microseconds).
class OneTileKernel final : public PhasedKernel, public StreamingKernel {
 public:
  // A draft where the weights of `right` are not packed.
  OneTileKernel(std::shared_ptr<const Source> source, Product product, RightSide right)
      : right_(std::move(right)),
        panels_(right_.packed() ? right_.Panels({}, 0, 0, 0) : nullptr),
        constants_(right_.Constants(0, 0)),
        places_(source->places()),
        product_(std::move(product)),
        source_(std::move(source)) {
    name_ = product_.name();
    phases_ = source_->phases();
    const size_t source_bytes = AlignUp(source_->shared_bytes());
    if (phases_.size() == 1 && phases_.front().units == 1 && source_bytes <= kOwnSource) {
      prepare_ = std::move(phases_.front().run);
      phases_.clear();
      scratch_bytes_ = source_bytes;
    } else {
      shared_bytes_ = source_bytes;
    }
    multiplying_ = static_cast<int>(phases_.size());
    phases_.push_back({.units = product_.units(), .grain = product_.grain(), .run = nullptr});
  }

  std::span<const std::byte> StreamFrom(int64_t begin) const override {
    const size_t bytes = product_.packed_bytes();
    if (panels_ == nullptr || bytes < kStreamed) return {};
    return {panels_ + bytes / product_.units() * begin, panels_ + bytes};
  }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    if (phase != multiplying_) return PhasedKernel::Run(args, phase, begin, end);
    if (prepare_ == nullptr) {
      Multiply(args, begin, end);
    } else {
      KernelArgs own = args;
      own.shared = args.scratch;
      prepare_(own, 0, 1);
      Multiply(own, begin, end);
    }
    return Status();
  }

 private:
  void Multiply(const KernelArgs& args, int64_t begin, int64_t end) const {
    product_.RunOneTile({.args = args,
                         .left = places_.Pixels(args),
                         .panels = panels_,
                         .constants = constants_,
                         .row_values = places_.RowValues(args)},
                        begin, end);
  }

  RightSide right_;
  // What Run() reads, close together.
  int multiplying_ = 0;  // the phase
  decltype(Phase::run) prepare_;
  const std::byte *panels_, *constants_;
  SourcePlaces places_;
  Product product_;
  std::shared_ptr<const Source> source_;
};

}  // namespace

bool IsOneTile(const ProductDescription& description, std::span<const Product> products,
               const RightSide& right) {
  return products.size() == 1 && products[0].one_tile() && !description.batch && right.constant() &&
         !products[0].kernel().needs_row_values();
}

std::unique_ptr<Kernel> MakeOneTileKernel(std::shared_ptr<const Source> source, Product product,
                                          RightSide right) {
  return std::make_unique<OneTileKernel>(std::move(source), std::move(product), std::move(right));
}

}  // namespace fuselite::kernels
