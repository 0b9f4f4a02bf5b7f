// One matrix product, scheduled: cut into tiles, panels and blocks, packed, and computed by a
// micro-kernel. Every convolution, fully connected layer, batched product and transposed
// convolution is made of these, whatever its types and whoever computes its tiles.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/movement/copy_loops.h"
#include "kernels/product/tiling.h"
#include "kernels/tail/rest.h"

namespace fuselite::kernels {

// Another form of the left rows, of which the tiles of many panels read the same: each block's rows
// are brought into it in scratch memory before the panels pass, rather than by every tile.
struct LeftForm {
  // Brings `run_bytes` bytes at each index of `runs` into that form.
  void (*form)(const std::byte* in, std::byte* out, const CopyDim& runs,
               int64_t run_bytes) = nullptr;  // null: rows are read as they are
  int64_t row_bytes = 0;                      // of a row
  int64_t formed_bytes = 0;                   // of a formed one; these follow each other
  bool joins_rows = false;  // rows that follow each other on both sides may be formed as one
  // Where the rows are as they are; ProductProblem says where formed ones would be.
  RowSteps left;
  RowRuns runs;
};

// out[row][n] = tail(sum over k of left[row][k] * right[k][n]) for the rows of `grid`.
struct ProductProblem {
  RowGrid grid;
  RowSteps left;      // bytes
  RowRuns left_runs;  // of a line's left rows
  RowSteps out;       // rows of the output, as its tail counts them
  // Where row 0 is, relative to what ProductOperands name.
  int64_t left_at = 0, out_at = 0;
  int64_t out_row_bytes = 0, out_value_bytes = 0;
  int64_t channels = 0;  // of all groups
  // Right sides like this product's that its left rows meet by turns, one packed behind the other:
  // what a run reads of them decides whether it fetches ahead.
  int64_t rights = 1;
  // Each has its share of the channels, in order, and left values of its own: those of the next
  // group are `group_step` bytes further in every row.
  int64_t groups = 1, group_step = 0;
  // Bytes; of what the left side tells of rows, 0 where it tells nothing or the same of all.
  RowSteps row_values;
  int64_t row_values_group_step = 0;
  TailRest rest;
  LeftForm left_form;                // only where there is one group
  bool fetches_right_ahead = false;  // for a single row (PlanContext::FetchesAhead)
  std::string name;                  // "conv"

  int64_t group_channels() const { return channels / groups; }
  // Has the tiles read rows of `formed_bytes` bytes that `form` made of `row_bytes` each.
  void FormLeft(decltype(LeftForm::form) form, int64_t row_bytes, int64_t formed_bytes,
                bool joins_rows = false) {
    left_form = {.form = form,
                 .row_bytes = row_bytes,
                 .formed_bytes = formed_bytes,
                 .joins_rows = joins_rows,
                 .left = left,
                 .runs = left_runs};
    left = DenseSteps(grid, formed_bytes);
    left_runs = {};
  }
};

// Whether left rows are neighbouring values in one group, which LeftForm wants.
inline bool RowsAreRuns(const DepthRuns& depth, const ProductProblem& problem) {
  return depth.outer == 1 && depth.runs.size() == 1 && depth.runs.front().offset == 0 &&
         problem.groups == 1;
}

// What all tiles take of one core.
double CyclesOfTiles(const ProductProblem& problem, const MicroKernel& kernel);

// What one product is computed from: each begins at the row from which ProductProblem counts, and
// so does row `first_row` of the output.
struct ProductOperands {
  const KernelArgs& args;
  const std::byte* left = nullptr;
  const std::byte* panels = nullptr;
  const std::byte* constants = nullptr;  // of the panels, where they lie apart
  const std::byte* row_values = nullptr;
  int64_t first_row = 0;
};

class Product {
 public:
  // kUnsupported for products without rows or columns.
  static Result<Product> Plan(ProductProblem problem, std::shared_ptr<const MicroKernel> kernel,
                              int threads);
  // This product with the micro-kernel's code, without which it does not run.
  Result<Product> Build() const;

  const ProductProblem& problem() const { return problem_; }
  const MicroKernel& kernel() const { return *kernel_; }
  const std::string& name() const { return name_; }  // "conv f32 14x32 avx512 jit"

  // Panels are those of the first group, then of the next.
  int64_t panels() const { return static_cast<int64_t>(panels_.size()); }
  // Channels of a panel.
  int64_t panel_lanes() const { return int64_t{tiling_.vectors} * kernel_->lanes(); }
  size_t packed_bytes() const { return panel_bytes_ * static_cast<size_t>(panels()); }
  // Writes panels [begin, end) behind `packed`, panel 0's place, aligned to kAlignment. `right` is
  // that of all groups.
  void Pack(const RightMatrix& right, std::byte* packed, int64_t begin, int64_t end) const;
  // What decides the packed bytes, for PackRequest::layout.
  std::string layout() const;
  // As packed_bytes(), Pack() and layout(), for what lies apart from the panels
  // (MicroKernel::constants_bytes).
  size_t constants_bytes() const { return panel_constants_bytes_ * panels_.size(); }
  void PackChannelConstants(const RightMatrix& right, std::byte* packed) const;
  std::string constants_layout() const;

  // MicroKernel::RowValues of rows [begin, end), each group behind the one before.
  int64_t row_value_count() const { return problem_.grid.rows() * problem_.groups; }
  void FindRowValues(const std::byte* left, int32_t* values, int64_t begin, int64_t end) const;

  // Units are independent; grain() of them take about a microsecond.
  int64_t units() const { return blocks_.count * panels(); }
  int64_t grain() const;
  // Each thread's, for sums that wait for their tail and for left rows in another form.
  size_t scratch_bytes() const;
  void Run(const ProductOperands& operands, int64_t begin, int64_t end) const;

  // Whether one tile has all rows, as in products of one row; then there is one group, nothing is
  // left of the tail, and the micro-kernel goes across.
  bool one_tile() const { return one_tile_.has_value(); }
  // Run() of such a product: panels [begin, end) in one call of the micro-kernel, or two. The
  // search for a unit's place would take as long as the arithmetic of a small layer.
  void RunOneTile(const ProductOperands& operands, int64_t begin, int64_t end) const;

  // Tiles [first_tile, first_tile + tiles) of one line, of one panel: for consumers that want rows
  // as they need them, and have entered kernel(). At most block_tiles() of them where
  // scratch_bytes() is not 0. Left rows are in their form (LeftForm).
  void RunTiles(const ProductOperands& operands, int64_t line, int64_t first_tile, int64_t tiles,
                int64_t panel) const;
  const Tiling& tiling() const { return tiling_; }
  int64_t block_tiles() const { return blocks_.tiles; }

 private:
  // Kept for each panel: divisions would cost small products as much as their arithmetic.
  struct Panel {
    PanelChannels channels;
    bool last = false;                       // of its group
    int64_t left_at = 0, row_values_at = 0;  // its group's values, in bytes
  };
  // All that RunOneTile() reads, close together: the weights that pass between two runs leave
  // little else in L1.
  struct OneTile {
    int64_t whole_panels = 0;  // without the last one where that is narrower
    int64_t panel_lanes = 0, panel_bytes = 0;
    // So many panels go by from their end in every other run, some together in their own order.
    int64_t turned_panels = 0, turned_together = 0;
    int64_t constants_bytes = 0;
    int64_t left_at = 0, out_at = 0, out_row_bytes = 0, out_value_bytes = 0;
  };
  OneTile MakeOneTile() const;
  std::vector<Tile> Tiles() const;
  std::vector<Panel> Panels() const;
  // The right side as a panel of the group reads it.
  RightMatrix OfGroup(RightMatrix right, const Panel& panel) const;
  // Bytes between rows of values that wait in scratch memory for the rest of their tail.
  int64_t waiting_row_bytes() const {
    return panel_lanes() * BitWidth(problem_.rest.in_scratch) / 8;
  }
  // Calls run(line, first tile, tiles) for what of tiles [tile, last) of all lines is in each line.
  template <class Function>
  void ForEachLine(int64_t tile, int64_t last, const Function& run) const;
  void RunBlock(const ProductOperands& operands, int64_t tile, int64_t last, int64_t panel) const;
  size_t waiting_bytes() const;
  // What lies in front of a block's formed rows, whose first tile may read rows above it.
  size_t above_bytes() const;
  // The place of row 0 of a left side whose rows of tiles [tile, last) are in their form.
  const std::byte* FormLeft(const ProductOperands& operands, int64_t tile, int64_t last) const;
  void ApplyRest(const ProductOperands& operands, int64_t row, int64_t rows,
                 const PanelChannels& channels) const;
  std::byte* OutputAt(const ProductOperands& operands, int64_t row, int64_t channel) const {
    return static_cast<std::byte*>(operands.args.outputs[0]) + row * problem_.out_row_bytes +
           channel * problem_.out_value_bytes;
  }

  std::shared_ptr<const MicroKernel> kernel_;
  std::vector<Panel> panels_;
  size_t panel_bytes_ = 0, panel_constants_bytes_ = 0;
  Blocks blocks_;
  // Blocks that one call of Run() may join; 1 where they need scratch memory.
  int64_t blocks_together_ = 1;
  Tiling tiling_;
  std::optional<OneTile> one_tile_;
  ProductProblem problem_;
  std::string name_;
};

}  // namespace fuselite::kernels
