// The kernel around an operator's products: the phases that bring both sides into the form that the
// micro-kernel reads, then the products themselves.
#pragma once

#include <functional>
#include <memory>

#include "kernels/product/description.h"
#include "kernels/product/product.h"
#include "kernels/product/source.h"

namespace fuselite::kernels {

// Rows of the output that tiles may go through without regard to lines (DivideFloatTail's
// line_rows).
int64_t RowsOfLine(const ProductDescription& description);

struct ProductKernelSpec {
  std::shared_ptr<const Source> source;
  int64_t value_bytes = 1;      // of the values that the source leaves
  int64_t row_value_bytes = 0;  // of what it tells of rows (Source::RowValues); 0: nothing
  bool row_values_per_image = false;
  // Whether tiles may go from the last row of a line, or of an image, to the first of the next one:
  // where the tail's operands allow it.
  bool tail_is_linear = false;
  // Whether the micro-kernel computes products of no terms, which are their biases: those of a
  // transposed convolution whose filter is narrower than its stride.
  bool takes_empty_sums = false;
  // Whether panels hold the bias; else it is added behind the sums.
  bool packs_bias = true;
  // Makes the micro-kernel of one product, whose rows lie as `problem` and `depth` say; fills in
  // problem->rest. Refuses, with the reason, what it does not compute.
  std::function<Result<std::shared_ptr<const MicroKernel>>(const DepthRuns& depth,
                                                           ProductProblem* problem)>
      micro_kernel;
};

// Refuses what the micro-kernel refuses, and empty products.
Result<KernelPlan> PlanProductKernel(const OpDescription& op, const ProductDescription& description,
                                     const ProductKernelSpec& spec, const PlanContext& context);

}  // namespace fuselite::kernels
