// The frame of kernels whose float32 activations are quantized at run time.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "jit/quantized_image.h"
#include "runtime/kernel.h"
#include "runtime/packed_store.h"

namespace fuselite::jit {

// The phases of the image, then the product: GemmS8 or DepthwiseS8 with a FloatOutput, whose tail
// needs no scratch memory.
template <class Product>
class HybridKernel final : public Kernel {
 public:
  HybridKernel(Product product, const QuantizedImage& image, PackedWeights weights)
      : product_(std::move(product)),
        image_(image),
        weights_(std::move(weights)),
        name_(product_.name()) {}

  std::string_view name() const override { return name_; }
  int phases() const override { return image_.phases() + 1; }
  int64_t units(int phase) const override {
    return phase < image_.phases() ? image_.units() : product_.units();
  }
  int64_t grain(int phase) const override {
    return phase < image_.phases() ? image_.grain() : product_.grain();
  }
  size_t shared_bytes() const override { return image_.shared_bytes(); }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    if (phase < image_.phases()) {
      image_.Run(static_cast<const float*>(args.inputs[0]), args.shared, phase, begin, end);
    } else {
      product_.RunHybrid(args, weights_->data(), image_.Scales(args.shared), begin, end);
    }
    return Status();
  }

 private:
  Product product_;
  QuantizedImage image_;
  PackedWeights weights_;
  std::string name_;
};

}  // namespace fuselite::jit
