// The right matrices of an operator's products, packed into panels: once where they are constant,
// at each run where they are not.
#pragma once

#include <functional>

#include "kernels/product/description.h"
#include "kernels/product/phase.h"
#include "kernels/product/product.h"

namespace fuselite::kernels {

class RightSide {
 public:
  // `products` are those of the description's parts, in order. Without `with_bias` no bias is
  // packed, and a constant one stays where it is for those who add it behind the sums.
  static Result<RightSide> Plan(const OpDescription& op, const ProductDescription& description,
                                std::span<const Product> products, bool with_bias);
  // Packs constants; else nothing is done. Before the first run. What the products have apart from
  // their panels is packed apart, so that all who multiply with the same weights share these.
  Status PackConstants(const OpDescription& op, std::span<const Product> products,
                       const BuildContext& context);

  bool constant() const { return constant_; }
  // Whether PackConstants() has been.
  bool packed() const { return packed_ != nullptr; }
  // What packing at each run needs of KernelArgs::shared; 0 for constants.
  size_t shared_bytes() const { return constant_ ? 0 : matrices_ * matrix_bytes_; }
  // Packs a panel a unit, to `shared_at`. `products` outlive the phase, this object too.
  Phase PackingPhase(std::span<const Product> products, size_t shared_at) const;

  // Matrix `matrix`, as part `part` multiplies with it.
  const std::byte* Panels(const KernelArgs& args, size_t shared_at, size_t part,
                          int64_t matrix) const {
    const std::byte* packed = constant_ ? packed_->data() : args.shared + shared_at;
    return packed + matrix * matrix_bytes_ + part_at_[part];
  }
  // What lies apart from these panels; null where nothing does.
  const std::byte* Constants(size_t part, int64_t matrix) const {
    if (constants_ == nullptr) return nullptr;
    return constants_->data() + matrix * constants_bytes_ + constants_at_[part];
  }

 private:
  Status PackPanels(const OpDescription& op, std::span<const Product> products,
                    const BuildContext& context);
  Status PackChannelConstants(const OpDescription& op, std::span<const Product> products,
                              const BuildContext& context);
  // Packs panels [begin, end) of part `part`. `values` and `bias` are the operands'.
  void Pack(const Product& product, size_t part, int64_t matrix, const void* values,
            const void* bias, std::byte* to, int64_t begin, int64_t end) const;
  bool TapsFollow(size_t part) const;
  std::vector<std::byte> TapsOf(size_t part, const std::byte* values) const;
  // Gives a matrix of the operand `values` as part `part` multiplies with it.
  void WithMatrix(size_t part, int64_t matrix, const void* values, const void* bias,
                  const std::function<void(const RightMatrix&)>& use) const;
  // `layout` gives each product's own.
  std::string Layout(std::span<const Product> products,
                     std::string (Product::*layout)() const) const;

  int weights_input_ = 1, bias_input_ = -1;
  int64_t value_bytes_ = 1;
  int64_t k_step_ = 1, n_step_ = 0, group_shift_ = 0;
  int64_t matrices_ = 1, matrix_step_ = 0;  // values
  int64_t channels_ = 0, tap_values_ = 0;
  std::vector<std::vector<int64_t>> taps_;  // of each part (ProductPart::taps)
  std::vector<size_t> part_at_;             // in a packed matrix
  int64_t matrix_bytes_ = 0;                // packed, of all parts
  bool constant_ = true;
  std::vector<size_t> constants_at_;  // as part_at_, of what lies apart
  int64_t constants_bytes_ = 0;       // of a matrix, of all parts
  PackedWeights packed_, constants_;
};

}  // namespace fuselite::kernels
