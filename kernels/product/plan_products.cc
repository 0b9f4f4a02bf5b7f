#include "kernels/product/plan_products.h"

#include <memory>
#include <optional>
#include <utility>

#include "kernels/product/part_depth.h"

namespace fuselite::kernels {
namespace {

// What a line costs beside its tiles, for each panel: the call and its addresses.
constexpr double kLineCycles = 40;

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

}  // namespace

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

}  // namespace fuselite::kernels
