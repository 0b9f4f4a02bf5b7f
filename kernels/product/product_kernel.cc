#include "kernels/product/product_kernel.h"

#include <algorithm>

#include "kernels/product/one_tile_kernel.h"
#include "kernels/product/plan_products.h"
#include "kernels/product/right_side.h"
#include "kernels/tail/operands.h"

namespace fuselite::kernels {
namespace {

// Rows whose values are found in one unit: some microseconds.
constexpr int64_t kRowsPerUnit = 64;

// How many stages read the input.
int64_t Reads(const Tail& tail, int input) {
  return std::ranges::count_if(tail.stages,
                               [&](const TailStage& s) { return s.operand.input == input; });
}

// Whether the stage's operand, which the operator itself does not read, has an element for each of
// the output, at the same place.
bool IsResidual(const OpDescription& op, const TailStage& stage) {
  const TailOperand& y = stage.operand;
  if (y.input < static_cast<int>(op.own_inputs())) return false;
  const TensorInfo &in = op.inputs[y.input], &out = op.outputs[0];
  const Tail alone{.stages = {stage}, .rows_per_batch = op.tail.rows_per_batch};
  return in.shape == out.shape && in.type == out.type && in.pitch() == out.pitch() &&
         y.row_stride == out.pitch() && y.channel_stride == 1 && TailIsLinear(alone);
}

// The residual in whose memory the output may lie (Kernel::in_place_input), or -1. Tiles do not
// overlap, and read their part of a residual before they store it; but what a micro-kernel leaves
// of its tail is read when the output is stored.
int ResidualInPlace(const OpDescription& op, const std::vector<Product>& products) {
  for (const TailStage& stage : op.tail.stages) {
    const int input = stage.operand.input;
    if (!IsResidual(op, stage) || Reads(op.tail, input) > 1) continue;
    const auto leaves = [&](const Product& p) { return Reads(p.problem().rest.tail, input) > 0; };
    if (std::ranges::none_of(products, leaves)) return input;
  }
  return -1;
}

// The products one after the other, behind the phases of the source and of what is packed anew.
class ProductKernel final : public PhasedKernel {
 public:
  ProductKernel(const ProductDescription& description, std::shared_ptr<const Source> source,
                std::vector<Product> products, RightSide right, int residual_in_place)
      : source_(std::move(source)),
        places_(source_->places()),
        products_(std::move(products)),
        right_(std::move(right)),
        batch_(description.batch),
        residual_in_place_(residual_in_place) {
    const ImageMemory memory = source_->memory();
    const Product& first = products_.front();
    name_ = first.name();
    if (description.volume) {
      left_matrix_bytes_ = memory.volume;
      left_matrices_ = description.images;
      out_matrix_rows_ =
          int64_t{description.out_planes} * description.out_height * description.out_width;
    } else if (batch_) {
      left_matrix_bytes_ = description.matrix_rows() * memory.pixel;
      left_matrices_ = description.left_matrices();
      out_matrix_rows_ = description.matrix_rows();
    }
    for (const Product& product : products_) {
      scratch_bytes_ = std::max(scratch_bytes_, product.scratch_bytes());
    }
    packed_at_ = AlignUp(source_->shared_bytes());
    shared_bytes_ = packed_at_ + right_.shared_bytes();
    MakePhases();
  }

  int in_place_input() const override { return residual_in_place_; }

 private:
  void MakePhases() {
    phases_ = source_->phases();
    if (!right_.constant()) {
      Phase packing = right_.PackingPhase(products_, packed_at_);
      if (phases_.empty()) {
        phases_.push_back(std::move(packing));
      } else {
        phases_.front() = Merge(std::move(packing), std::move(phases_.front()));
      }
    }
    const Product& first = products_.front();
    finds_row_values_ = first.kernel().needs_row_values();
    if (finds_row_values_) phases_.push_back(RowValuesPhase());
    phases_.push_back(MultiplyingPhase());
  }

  static int64_t RowValueUnits(const Product& product) {
    return (product.row_value_count() + kRowsPerUnit - 1) / kRowsPerUnit;
  }

  // Finds the row values of the products in turn, each of all left matrices.
  Phase RowValuesPhase() {
    int64_t units = 0;
    for (const Product& product : products_) {
      row_values_at_.push_back(shared_bytes_);
      units += left_matrices_ * RowValueUnits(product);
      shared_bytes_ += AlignUp(left_matrices_ * product.row_value_count() * sizeof(int32_t));
    }
    return {.units = units,
            .grain = 4,
            .run = [this](const KernelArgs& args, int64_t begin, int64_t end) {
              int64_t first = 0;  // unit of the product at hand
              for (size_t part = 0; part < products_.size(); ++part) {
                const int64_t units = left_matrices_ * RowValueUnits(products_[part]);
                for (int64_t unit = std::max(begin - first, int64_t{0});
                     unit < std::min(end - first, units); ++unit) {
                  FindRowValues(args, part, unit);
                }
                first += units;
              }
            }};
  }

  void FindRowValues(const KernelArgs& args, size_t part, int64_t unit) const {
    const Product& product = products_[part];
    const int64_t units = RowValueUnits(product), count = product.row_value_count();
    const int64_t matrix = unit / units, first = unit % units * kRowsPerUnit;
    auto* const values = reinterpret_cast<int32_t*>(args.shared + row_values_at_[part]);
    product.FindRowValues(places_.Pixels(args) + matrix * left_matrix_bytes_,
                          values + matrix * count, first, std::min(count, first + kRowsPerUnit));
  }

  Phase MultiplyingPhase() {
    for (const Product& product : products_) batch_units_ += product.units();
    return {.units = batch_units_ * (batch_ ? batch_->count() : 1),
            .grain = products_.front().grain(),
            .run = [this](const KernelArgs& args, int64_t begin, int64_t end) {
              if (!batch_) return Multiply(args, 0, begin, end);
              for (int64_t batch = begin / batch_units_; batch * batch_units_ < end; ++batch) {
                const int64_t first = batch * batch_units_;
                Multiply(args, batch, std::max(begin - first, int64_t{0}),
                         std::min(end - first, batch_units_));
              }
            }};
  }

  // Units [begin, end) of a batch. They are the same share of each product: the rows of several
  // ones, the parts of a transposed convolution, lie between each other, and whoever computes some
  // of one finds what it reads and writes where those of the others left it.
  void Multiply(const KernelArgs& args, int64_t batch, int64_t begin, int64_t end) const {
    if (products_.size() == 1) return RunProduct(args, 0, batch, begin, end);
    for (size_t part = 0; part < products_.size(); ++part) {
      const int64_t units = products_[part].units();
      const int64_t first = begin * units / batch_units_, last = end * units / batch_units_;
      if (first < last) RunProduct(args, part, batch, first, last);
    }
  }

  void RunProduct(const KernelArgs& args, size_t part, int64_t batch, int64_t begin,
                  int64_t end) const {
    const Product& product = products_[part];
    const MatrixBatches::Pair pair = batch_ ? batch_->PairOf(batch) : MatrixBatches::Pair{};
    const int64_t rows = product.problem().grid.rows();
    const std::byte* row_values =
        finds_row_values_ ? args.shared + row_values_at_[part] : places_.RowValues(args);
    product.Run({.args = args,
                 .left = places_.Pixels(args) + pair.x * left_matrix_bytes_,
                 .panels = right_.Panels(args, packed_at_, part, pair.y),
                 .constants = right_.Constants(part, pair.y),
                 .row_values = row_values + pair.x * rows * product.problem().row_values.row,
                 .first_row = batch * out_matrix_rows_},
                begin, end);
  }

  std::shared_ptr<const Source> source_;
  SourcePlaces places_;
  std::vector<Product> products_;
  RightSide right_;
  std::optional<MatrixBatches> batch_;
  int residual_in_place_;
  int64_t left_matrices_ = 1, left_matrix_bytes_ = 0, out_matrix_rows_ = 0;
  int64_t batch_units_ = 0;            // of all products, for one pair of matrices
  size_t packed_at_ = 0;               // in KernelArgs::shared
  std::vector<size_t> row_values_at_;  // there, of each product where they are found
  bool finds_row_values_ = false;
};

std::unique_ptr<Kernel> MakeProductKernel(const OpDescription& op,
                                          const ProductDescription& description,
                                          std::shared_ptr<const Source> source,
                                          std::vector<Product> products, RightSide right) {
  if (IsOneTile(description, products, right)) {
    return MakeOneTileKernel(std::move(source), std::move(products.front()), std::move(right));
  }
  const int residual = ResidualInPlace(op, products);
  return std::make_unique<ProductKernel>(description, std::move(source), std::move(products),
                                         std::move(right), residual);
}

}  // namespace

int64_t RowsOfLine(const ProductDescription& description) {
  const int64_t width = description.out_width;
  return PixelsFollow(description.parts.front().window) ? width * description.out_height : width;
}

Result<KernelPlan> PlanProductKernel(const OpDescription& op, const ProductDescription& description,
                                     const ProductKernelSpec& spec, const PlanContext& context) {
  if (description.parts.empty()) return Unsupported("the product is empty");
  FUSELITE_ASSIGN_OR_RETURN(std::vector<Product> products,
                            PlanProducts(op, description, spec, context));
  FUSELITE_ASSIGN_OR_RETURN(RightSide right,
                            RightSide::Plan(op, description, products, spec.packs_bias));
  auto draft = MakeProductKernel(op, description, spec.source, products, right);
  return KernelPlan::MadeLater(
      std::move(draft),
      [description, source = spec.source, products = std::move(products), right = std::move(right)](
          const OpDescription& described,
          const BuildContext& build) -> Result<std::unique_ptr<Kernel>> {
        std::vector<Product> built;
        for (const Product& product : products) {
          FUSELITE_ASSIGN_OR_RETURN(Product emitted, product.Build());
          built.push_back(std::move(emitted));
        }
        RightSide packed = right;
        FUSELITE_RETURN_IF_ERROR(packed.PackConstants(described, built, build));
        return MakeProductKernel(described, description, source, std::move(built),
                                 std::move(packed));
      });
}

}  // namespace fuselite::kernels
