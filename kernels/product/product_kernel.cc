#include "kernels/product/product_kernel.h"

#include <algorithm>

#include "kernels/product/part_depth.h"
#include "kernels/product/right_side.h"
#include "runtime/execution/streaming_kernel.h"

namespace fuselite::kernels {
namespace {

// What a line costs beside its tiles, for each panel: the call and its addresses.
constexpr double kLineCycles = 40;
// A left side of so many bytes each thread brings into form for itself (OneTileKernel): up to a
// microsecond.
constexpr size_t kOwnSource = 16 << 10;
// Weights of so many bytes are taken for a part of more than the caches hold.
constexpr size_t kStreamed = 1 << 19;
// Rows whose values are found in one unit: some microseconds.
constexpr int64_t kRowsPerUnit = 64;

class ProblemMaker {
 public:
  ProblemMaker(const OpDescription& op, const ProductDescription& description,
               const ProductKernelSpec& spec, const PlanContext& context)
      : d_(description),
        spec_(spec),
        output_(op.outputs[0]),
        memory_(spec.source->memory()),
        fetches_right_ahead_(context.FetchesAhead(
            op.inputs[op.op->product_inputs->weights].elements() * spec.value_bytes)) {}

  ProductProblem Make(const ProductPart& part) const {
    const auto& [y, x] = part.window;
    ProductProblem problem;
    problem.name = d_.name;
    problem.fetches_right_ahead = fetches_right_ahead_;
    problem.channels = d_.channels_out;
    problem.groups = d_.groups;
    problem.group_step = d_.group_in() * spec_.value_bytes;
    problem.grid = {.line_rows = x.output,
                    .lines_per_image = y.output,
                    .images = d_.volume ? part.z.output : d_.images};
    problem.left = {.row = x.stride * memory_.pixel,
                    .line = y.stride * memory_.row,
                    .image = part.z.stride * memory_.image};
    const int64_t out_image = int64_t{d_.out_height} * d_.out_width;
    problem.left_at =
        part.first_z * memory_.image + part.first_y * memory_.row + part.first_x * memory_.pixel;
    problem.out_at = part.out_z * out_image + int64_t{part.out_y} * d_.out_width + part.out_x;
    problem.out = {.row = part.step_x,
                   .line = int64_t{part.step_y} * d_.out_width,
                   .image = part.step_z * out_image};
    problem.out_value_bytes = BitWidth(output_.type) / 8;
    problem.out_row_bytes = output_.pitch() * problem.out_value_bytes;
    if (PixelsFollow(part.window)) Join(part.z.stride == 1 && part.step_z == 1, &problem);
    problem.row_values = RowValueSteps(problem.grid);
    return problem;
  }

 private:
  // Lines that follow each other become one, and so do images.
  void Join(bool images_follow, ProductProblem* problem) const {
    RowGrid& grid = problem->grid;
    grid.line_rows *= grid.lines_per_image;
    grid.lines_per_image = 1;
    if (!images_follow || !spec_.tail_is_linear || spec_.row_values_per_image) return;
    grid.line_rows *= grid.images;
    grid.images = 1;
  }

  RowSteps RowValueSteps(const RowGrid& grid) const {
    if (spec_.row_values_per_image) return {.row = 0, .line = 0, .image = spec_.row_value_bytes};
    return DenseSteps(grid, spec_.row_value_bytes);
  }

  const ProductDescription& d_;
  const ProductKernelSpec& spec_;
  const TensorInfo& output_;
  ImageMemory memory_;
  bool fetches_right_ahead_;
};

class ProductKernel final : public PhasedKernel {
 public:
  ProductKernel(const ProductDescription& description, std::shared_ptr<const Source> source,
                std::vector<Product> products, RightSide right)
      : source_(std::move(source)),
        places_(source_->places()),
        products_(std::move(products)),
        right_(std::move(right)),
        batch_(description.batch) {
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
    int64_t units = 0;
    for (const Product& product : products_) units += product.units();
    return {.units = units * (batch_ ? batch_->count() : 1),
            .grain = products_.front().grain(),
            .run = [this](const KernelArgs& args, int64_t begin, int64_t end) {
              Multiply(args, begin, end);
            }};
  }

  void Multiply(const KernelArgs& args, int64_t begin, int64_t end) const {
    if (products_.size() == 1 && !batch_) return RunProduct(args, 0, 0, begin, end);
    int64_t first = 0;  // unit of the product at hand
    const int64_t batches = batch_ ? batch_->count() : 1;
    for (size_t part = 0; part < products_.size(); ++part) {
      const int64_t units = products_[part].units();
      for (int64_t batch = begin < first ? 0 : std::min(batches, (begin - first) / units);
           batch < batches && first + batch * units < end; ++batch) {
        const int64_t at = first + batch * units;
        const int64_t from = std::max(begin - at, int64_t{0}), to = std::min(end - at, units);
        if (from < to) RunProduct(args, part, batch, from, to);
      }
      first += units * batches;
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
  int64_t left_matrices_ = 1, left_matrix_bytes_ = 0, out_matrix_rows_ = 0;
  size_t packed_at_ = 0;               // in KernelArgs::shared
  std::vector<size_t> row_values_at_;  // there, of each product where they are found
  bool finds_row_values_ = false;
};

// `problem` with all lines of an image in one, so that a tile may hold several of them. Only where
// the rows of the output follow each other.
std::optional<ProductProblem> WithLinesJoined(const ProductProblem& problem) {
  const RowGrid& grid = problem.grid;
  const bool follows = problem.out.line == problem.out.row * grid.line_rows;
  if (grid.lines_per_image == 1 || !follows) return std::nullopt;
  ProductProblem joined = problem;
  joined.left_runs = {.rows = grid.line_rows, .step = problem.left.line};
  joined.grid.line_rows = grid.image_rows();
  joined.grid.lines_per_image = 1;
  return joined;
}

Result<Product> PlanProduct(const ProductKernelSpec& spec, const DepthRuns& depth,
                            ProductProblem problem, int threads) {
  FUSELITE_ASSIGN_OR_RETURN(std::shared_ptr<const MicroKernel> kernel,
                            spec.micro_kernel(depth, &problem));
  if (kernel->needs_row_values()) {
    problem.row_values = DenseSteps(problem.grid, sizeof(int32_t));
    problem.row_values_group_step = problem.grid.rows() * static_cast<int64_t>(sizeof(int32_t));
  }
  return Product::Plan(std::move(problem), std::move(kernel), threads);
}

double Cycles(const Product& product) {
  const Tiling& tiling = product.tiling();
  return static_cast<double>(product.problem().grid.lines()) *
         (tiling.line_cycles + kLineCycles * static_cast<double>(tiling.panels));
}

// Tiles of lines of few rows are small, and many: then some lines in each tile may be faster.
Result<Product> PlanFasterProduct(const ProductKernelSpec& spec, const DepthRuns& depth,
                                  const ProductProblem& problem, int threads) {
  FUSELITE_ASSIGN_OR_RETURN(Product product, PlanProduct(spec, depth, problem, threads));
  const int64_t twice = 2 * problem.grid.line_rows;
  if (!spec.tail_is_linear || twice > product.kernel().max_rows(1)) return product;
  const std::optional<ProductProblem> joined = WithLinesJoined(problem);
  if (!joined) return product;
  Result<Product> other = PlanProduct(spec, depth, *joined, threads);
  const bool faster = other.ok() && Cycles(*other) < Cycles(product);
  return faster ? *std::move(other) : std::move(product);
}

// The kernel of one product whose rows are one tile, over constant weights: a fully connected layer
// of one row. Nets of a few microseconds are made of these, so what happens between Run() and the
// emitted code is two calls. A small left side that is brought into form in one unit is no phase of
// its own: every thread does that for itself, which takes less than waiting for another one (some
// 0.2 microseconds).
class OneTileKernel final : public PhasedKernel, public StreamingKernel {
 public:
  static bool Computes(const ProductDescription& description, std::span<const Product> products,
                       const RightSide& right) {
    return products.size() == 1 && products[0].one_tile() && !description.batch &&
           right.constant() && !products[0].kernel().needs_row_values();
  }

  // Precondition: Computes(). A draft where the weights of `right` are not packed.
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
      const KernelArgs own{args.inputs, args.outputs, args.scratch, args.scratch};
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

std::unique_ptr<Kernel> MakeProductKernel(const ProductDescription& description,
                                          std::shared_ptr<const Source> source,
                                          std::vector<Product> products, RightSide right) {
  if (OneTileKernel::Computes(description, products, right)) {
    return std::make_unique<OneTileKernel>(std::move(source), std::move(products.front()),
                                           std::move(right));
  }
  return std::make_unique<ProductKernel>(description, std::move(source), std::move(products),
                                         std::move(right));
}

Result<std::vector<Product>> PlanProducts(const OpDescription& op,
                                          const ProductDescription& description,
                                          const ProductKernelSpec& spec,
                                          const PlanContext& context) {
  const ProblemMaker problems(op, description, spec, context);
  std::vector<Product> products;
  for (const ProductPart& part : description.parts) {
    const ProductProblem problem = problems.Make(part);
    const DepthRuns depth = DepthOf(description, part, spec.source->memory());
    if (problem.grid.rows() == 0 || problem.channels == 0 ||
        (depth.depth() == 0 && !spec.takes_empty_sums)) {
      return Unsupported("the product is empty");
    }
    FUSELITE_ASSIGN_OR_RETURN(Product product,
                              PlanFasterProduct(spec, depth, problem, context.threads));
    products.push_back(std::move(product));
  }
  return products;
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
  auto draft = MakeProductKernel(description, spec.source, products, right);
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
        return MakeProductKernel(description, source, std::move(built), std::move(packed));
      });
}

}  // namespace fuselite::kernels
