#include "kernels/product/right_side.h"

#include <algorithm>
#include <cstring>

#include "kernels/make_kernel.h"
#include "kernels/product/constant.h"

namespace fuselite::kernels {
namespace {

// Parts of a transposed convolution differ: one may have a single row, and another several.
bool HasConstantsApart(const Product& product) { return product.constants_bytes() > 0; }

}  // namespace

Result<RightSide> RightSide::Plan(const OpDescription& op, const ProductDescription& description,
                                  std::span<const Product> products, bool with_bias) {
  const ProductInputs& inputs = *op.op->product_inputs;
  const TensorInfo& weights = op.inputs[inputs.weights];
  // Float outputs of integer products add their bias behind the sums (HybridTail).
  const bool biased = op.has_input(inputs.bias) && with_bias && !description.hybrid;
  const TensorInfo bias = biased ? op.inputs[inputs.bias] : TensorInfo();
  RightSide right;
  right.weights_input_ = inputs.weights;
  right.bias_input_ = biased ? inputs.bias : -1;
  right.value_bytes_ = BitWidth(ReadableType(weights.type)) / 8;
  right.k_step_ = description.k_step;
  right.n_step_ = description.n_step;
  right.matrices_ = description.right_matrices;
  right.matrix_step_ = description.right_matrix_step;
  right.channels_ = description.channels_out;
  right.tap_values_ = description.group_in();
  if (description.right_group_step) {
    const int64_t follows = description.channels_out / description.groups * description.n_step;
    right.group_shift_ = (*description.right_group_step - follows) * right.value_bytes_;
  }
  right.constant_ = weights.constant() && (!biased || bias.constant());
  for (size_t i = 0; i < products.size(); ++i) {
    right.taps_.push_back(description.parts[i].taps);
    right.part_at_.push_back(static_cast<size_t>(right.matrix_bytes_));
    right.matrix_bytes_ += static_cast<int64_t>(AlignUp(products[i].packed_bytes()));
    right.constants_at_.push_back(static_cast<size_t>(right.constants_bytes_));
    right.constants_bytes_ += static_cast<int64_t>(AlignUp(products[i].constants_bytes()));
  }
  if (!right.constant_ && weights.type != ReadableType(weights.type)) {
    return Unsupported("does not take weights of ", DataTypeName(weights.type),
                       " known only at run time");
  }
  return right;
}

Status RightSide::PackConstants(const OpDescription& op, std::span<const Product> products,
                                const BuildContext& context) {
  if (!constant_) return Status();
  FUSELITE_RETURN_IF_ERROR(PackPanels(op, products, context));
  return constants_bytes_ > 0 ? PackChannelConstants(op, products, context) : Status();
}

Status RightSide::PackPanels(const OpDescription& op, std::span<const Product> products,
                             const BuildContext& context) {
  const TensorInfo& weights = op.inputs[weights_input_];
  const bool biased = bias_input_ >= 0 && !std::ranges::all_of(products, HasConstantsApart);
  const TensorInfo bias = biased ? op.inputs[bias_input_] : TensorInfo();
  const PackRequest request{.source = weights.data,
                            .source_bytes = weights.bytes(),
                            .source2 = biased ? bias.data : nullptr,
                            .source2_bytes = biased ? bias.bytes() : 0,
                            .layout = Layout(products, &Product::layout),
                            .bytes = static_cast<size_t>(matrices_ * matrix_bytes_)};
  FUSELITE_ASSIGN_OR_RETURN(packed_, context.Pack(request, [&](std::byte* to) {
    const ReadableConstant values(weights), biases(bias);
    for (int64_t m = 0; m < matrices_; ++m, to += matrix_bytes_) {
      for (size_t i = 0; i < products.size(); ++i) {
        Pack(products[i], i, m, values.values(), biases.values(), to + part_at_[i], 0,
             products[i].panels());
      }
    }
  }));
  return Status();
}

Status RightSide::PackChannelConstants(const OpDescription& op, std::span<const Product> products,
                                       const BuildContext& context) {
  const TensorInfo& weights = op.inputs[weights_input_];
  const TensorInfo bias = bias_input_ >= 0 ? op.inputs[bias_input_] : TensorInfo();
  const PackRequest request{.source = weights.data,
                            .source_bytes = weights.bytes(),
                            .source2 = bias.data,
                            .source2_bytes = bias_input_ >= 0 ? bias.bytes() : 0,
                            .layout = "constants " + Layout(products, &Product::constants_layout),
                            .bytes = static_cast<size_t>(matrices_ * constants_bytes_)};
  FUSELITE_ASSIGN_OR_RETURN(constants_, context.Pack(request, [&](std::byte* to) {
    const ReadableConstant values(weights), biases(bias);
    for (int64_t m = 0; m < matrices_; ++m, to += constants_bytes_) {
      for (size_t i = 0; i < products.size(); ++i) {
        if (!HasConstantsApart(products[i])) continue;
        WithMatrix(i, m, values.values(), biases.values(), [&](const RightMatrix& right) {
          products[i].PackChannelConstants(right, to + constants_at_[i]);
        });
      }
    }
  }));
  return Status();
}

std::string RightSide::Layout(std::span<const Product> products,
                              std::string (Product::*layout)() const) const {
  std::string text = internal::Join(matrices_, "*", matrix_step_, " s", k_step_, '.', n_step_);
  if (group_shift_ != 0) text += internal::Join(" g", group_shift_);
  for (size_t i = 0; i < products.size(); ++i) {
    text += ' ' + (products[i].*layout)();
    for (int64_t tap : taps_[i]) text += internal::Join(" t", tap);
  }
  return text;
}

// Whether the part's taps follow each other among the weights, as those of some planes do.
bool RightSide::TapsFollow(size_t part) const {
  const auto apart = [&](int64_t a, int64_t b) { return b - a != tap_values_ * k_step_; };
  return std::ranges::adjacent_find(taps_[part], apart) == taps_[part].end();
}

// The part's taps of all channels, one behind the other. Precondition: k_step_ == 1.
std::vector<std::byte> RightSide::TapsOf(size_t part, const std::byte* values) const {
  const std::vector<int64_t>& taps = taps_[part];
  const int64_t bytes = tap_values_ * value_bytes_;
  std::vector<std::byte> dense(static_cast<size_t>(channels_ * bytes) * taps.size());
  std::byte* to = dense.data();
  for (int64_t n = 0; n < channels_; ++n) {
    for (int64_t tap : taps) {
      std::memcpy(to, values + (n * n_step_ + tap) * value_bytes_, bytes);
      to += bytes;
    }
  }
  return dense;
}

void RightSide::WithMatrix(size_t part, int64_t matrix, const void* values, const void* bias,
                           const std::function<void(const RightMatrix&)>& use) const {
  const std::byte* first =
      static_cast<const std::byte*>(values) + matrix * matrix_step_ * value_bytes_;
  if (taps_[part].empty()) return use({first, k_step_, n_step_, bias, group_shift_});
  if (TapsFollow(part)) {
    return use({first + taps_[part][0] * value_bytes_, k_step_, n_step_, bias});
  }
  const std::vector<std::byte> dense = TapsOf(part, first);
  const auto depth = static_cast<int64_t>(taps_[part].size()) * tap_values_;
  use({dense.data(), 1, depth, bias});
}

void RightSide::Pack(const Product& product, size_t part, int64_t matrix, const void* values,
                     const void* bias, std::byte* to, int64_t begin, int64_t end) const {
  WithMatrix(part, matrix, values, bias,
             [&](const RightMatrix& right) { product.Pack(right, to, begin, end); });
}

Phase RightSide::PackingPhase(std::span<const Product> products, size_t shared_at) const {
  // Parts with taps of their own are packed whole, so that their taps are gathered once.
  const bool whole =
      std::ranges::any_of(taps_, [](const std::vector<int64_t>& taps) { return !taps.empty(); });
  const auto parts = static_cast<int64_t>(products.size());
  const int64_t panels = whole ? 1 : products.front().panels();
  return {.units = matrices_ * parts * panels,
          .grain = 1,
          .run = [=, this](const KernelArgs& args, int64_t begin, int64_t end) {
            const void* values = args.inputs[weights_input_];
            const void* bias = bias_input_ < 0 ? nullptr : args.inputs[bias_input_];
            for (int64_t unit = begin; unit < end; ++unit) {
              const int64_t matrix = unit / panels / parts, panel = unit % panels;
              const auto part = static_cast<size_t>(unit / panels % parts);
              const Product& product = products[part];
              Pack(product, part, matrix, values, bias,
                   args.shared + shared_at + matrix * matrix_bytes_ + part_at_[part],
                   whole ? 0 : panel, whole ? product.panels() : panel + 1);
            }
          }};
}

}  // namespace fuselite::kernels
