#include "kernels/product/product.h"

#include <algorithm>

#include "runtime/memory/aligned_buffer.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

// A range of units is worth a thread's attention when it takes about a microsecond.
constexpr double kGrainCycles = 2500;
// What a cycle brings of weights that are read once, for a single tile: from L2.
constexpr double kStreamedBytes = 32;
// Weights of one tile that every other run reads from the end, and how many of them in their own
// order nevertheless: read in the same order each time, weights that are larger than L2 push out
// what is needed next. Of 4 MiB beside 2 MiB of L2 a run takes 0.69 of its time, of 2.1 MiB in
// three layers 0.92.
constexpr int64_t kTurned = 512 << 10, kTurnedTogether = 128 << 10;

}  // namespace

double CyclesOfTiles(const ProductProblem& problem, const MicroKernel& kernel) {
  const Tiling tiling = ChooseTiling(kernel, problem.grid.line_rows, problem.group_channels(),
                                     std::max<int64_t>(1, problem.left_runs.rows));
  return static_cast<double>(problem.grid.lines()) * tiling.line_cycles;
}

Result<Product> Product::Plan(ProductProblem problem, std::shared_ptr<const MicroKernel> kernel,
                              int threads) {
  if (problem.grid.rows() == 0 || problem.channels == 0) {
    return Unsupported("the product is empty");
  }
  Product product;
  product.problem_ = std::move(problem);
  product.kernel_ = std::move(kernel);
  const ProductProblem& p = product.problem_;
  product.tiling_ = ChooseTiling(*product.kernel_, p.grid.line_rows, p.group_channels(),
                                 std::max<int64_t>(1, p.left_runs.rows),
                                 p.grid.lines() == 1 && p.groups == 1 ? threads : 1);
  if (product.tiling_.tiles_per_line == 0) {
    return Unsupported("no tile holds a run of ", p.left_runs.rows, " rows");
  }
  product.panels_ = product.Panels();
  product.panel_bytes_ = product.kernel_->panel_bytes(product.tiling_.vectors);
  product.panel_constants_bytes_ = product.kernel_->constants_bytes(product.tiling_.vectors);
  const auto blocks_for = [&](int of_threads) {
    return ChooseBlocks(*product.kernel_, product.tiling_, p.grid.lines(), product.panels(),
                        static_cast<int64_t>(product.packed_bytes()), of_threads);
  };
  product.blocks_ = blocks_for(threads);
  if (product.scratch_bytes() == 0) {
    product.blocks_together_ = std::max<int64_t>(1, blocks_for(1).tiles / product.blocks_.tiles);
  }
  const bool one_tile = product.tiling_.tiles_per_line * p.grid.lines() == 1;
  if (one_tile && product.kernel_->goes_across() && p.groups == 1 && p.rest.apply == nullptr &&
      p.left_form.form == nullptr) {
    product.one_tile_ = product.MakeOneTile();
  }
  product.name_ = internal::Join(p.name, ' ', product.kernel_->types(), ' ', product.tiling_.rows,
                                 'x', product.panel_lanes(), ' ', product.kernel_->target()) +
                  TailApart(p.rest.why);
  return product;
}

Result<Product> Product::Build() const {
  Product built = *this;
  const TileCalls calls{.order = one_tile_ ? TileOrder::kAcross : TileOrder::kDown,
                        .tiles = std::min(blocks_.tiles, tiling_.tiles_per_line)};
  FUSELITE_ASSIGN_OR_RETURN(built.kernel_, kernel_->Emit(Tiles(), calls, name_));
  return built;
}

Product::OneTile Product::MakeOneTile() const {
  const bool last_is_whole =
      tiling_.last_vectors == tiling_.vectors && tiling_.last_lanes == kernel_->lanes();
  // Of no terms and no bias, as products of transposed convolutions may be, panels are empty.
  const int64_t bytes = std::max<int64_t>(1, static_cast<int64_t>(panel_bytes_));
  return {.whole_panels = tiling_.panels - !last_is_whole,
          .panel_lanes = panel_lanes(),
          .panel_bytes = static_cast<int64_t>(panel_bytes_),
          .turned_panels = CeilDiv(kTurned, bytes),
          .turned_together = CeilDiv(kTurnedTogether, bytes),
          .constants_bytes = static_cast<int64_t>(panel_constants_bytes_),
          .left_at = problem_.left_at,
          .out_at = problem_.out_at,
          .out_row_bytes = problem_.out_row_bytes,
          .out_value_bytes = problem_.out_value_bytes};
}

// The full tile of a panel and of the last panel, then the same of the shorter tile (RunTiles).
std::vector<Tile> Product::Tiles() const {
  std::vector<Tile> tiles;
  const int whole = tiling_.panels > 1 ? kernel_->lanes() : tiling_.last_lanes;
  for (const int rows : {tiling_.rows, tiling_.last_rows}) {
    if (rows == 0) continue;
    tiles.push_back({rows, tiling_.vectors, whole});
    tiles.push_back({rows, tiling_.last_vectors, tiling_.last_lanes});
  }
  return tiles;
}

std::vector<Product::Panel> Product::Panels() const {
  std::vector<Panel> panels;
  const int64_t group_channels = problem_.group_channels(), lanes = panel_lanes();
  for (int64_t group = 0; group < problem_.groups; ++group) {
    const int64_t end = (group + 1) * group_channels;
    for (int64_t i = 0; i < tiling_.panels; ++i) {
      const bool last = i + 1 == tiling_.panels;
      const int64_t first = group * group_channels + i * lanes;
      panels.push_back({.channels = {.first = first,
                                     .last = std::min(first + lanes, end),
                                     .vectors = last ? tiling_.last_vectors : tiling_.vectors},
                        .last = last,
                        .left_at = problem_.left_at + group * problem_.group_step,
                        .row_values_at = group * problem_.row_values_group_step});
    }
  }
  return panels;
}

RightMatrix Product::OfGroup(RightMatrix right, const Panel& panel) const {
  const int64_t group = panel.channels.first / problem_.group_channels();
  right.values = static_cast<const std::byte*>(right.values) + group * right.group_shift;
  return right;
}

void Product::Pack(const RightMatrix& right, std::byte* packed, int64_t begin, int64_t end) const {
  for (int64_t i = begin; i < end; ++i) {
    const Panel& panel = panels_[i];
    kernel_->PackPanel(OfGroup(right, panel), panel.channels, packed + i * panel_bytes_);
  }
}

std::string Product::layout() const {
  // The lanes of a vector, too: one vector of 16 and two of 8 have the same panel, but not the same
  // order, and instruction sets meet in one process, and in one folder of packed weights.
  return internal::Join(kernel_->layout(), " n", problem_.channels, '/', problem_.groups, " p",
                        panel_lanes(), '/', kernel_->lanes(), " last", tiling_.last_vectors);
}

void Product::PackChannelConstants(const RightMatrix& right, std::byte* packed) const {
  for (const Panel& panel : panels_) {
    kernel_->PackChannelConstants(OfGroup(right, panel), panel.channels, packed);
    packed += panel_constants_bytes_;
  }
}

std::string Product::constants_layout() const {
  return internal::Join(layout(), kernel_->constants_layout());
}

void Product::FindRowValues(const std::byte* left, int32_t* values, int64_t begin,
                            int64_t end) const {
  const RowGrid& grid = problem_.grid;
  const LeftForm& form = problem_.left_form;
  // Where the rows are before they are brought into their form.
  const RowSteps& steps = form.form == nullptr ? problem_.left : form.left;
  const RowRuns& runs = form.form == nullptr ? problem_.left_runs : form.runs;
  for (int64_t i = begin, count = 0; i < end; i += count) {
    const int64_t group = i / grid.rows(), row = i % grid.rows();
    const int64_t line = row / grid.line_rows, first = row % grid.line_rows;
    count = runs.Together(first, std::min(end - i, grid.line_rows - first));
    kernel_->RowValues(left + problem_.left_at + group * problem_.group_step +
                           steps.OfLine(grid, line) + runs.Offset(first, steps.row),
                       steps.row, count, values + i);
  }
}

int64_t Product::grain() const {
  double tile = tiling_.tile_cycles;
  if (one_tile_) tile = std::max(tile, static_cast<double>(panel_bytes_) / kStreamedBytes);
  const double unit = static_cast<double>(blocks_.tiles) * tile;
  return std::max<int64_t>(1, static_cast<int64_t>(kGrainCycles / unit));
}

size_t Product::waiting_bytes() const {
  if (!problem_.rest.waits()) return 0;
  return AlignUp(static_cast<size_t>(blocks_.tiles * tiling_.rows * waiting_row_bytes()));
}

size_t Product::above_bytes() const {
  return AlignUp(static_cast<size_t>(kernel_->rows_above() * problem_.left_form.formed_bytes));
}

size_t Product::scratch_bytes() const {
  const LeftForm& form = problem_.left_form;
  if (form.form == nullptr) return waiting_bytes();
  return waiting_bytes() + above_bytes() +
         static_cast<size_t>(blocks_.tiles * tiling_.rows * form.formed_bytes);
}

template <class Function>
void Product::ForEachLine(int64_t tile, int64_t last, const Function& run) const {
  int64_t line = 0, first = tile;
  if (tile >= tiling_.tiles_per_line) {
    line = tile / tiling_.tiles_per_line;
    first -= line * tiling_.tiles_per_line;
  }
  while (tile < last) {
    const int64_t count = std::min(tiling_.tiles_per_line - first, last - tile);
    run(line, first, count);
    tile += count;
    first = 0;
    ++line;
  }
}

const std::byte* Product::FormLeft(const ProductOperands& operands, int64_t tile,
                                   int64_t last) const {
  const ProductProblem& p = problem_;
  const LeftForm& form = p.left_form;
  std::byte* const formed = operands.args.scratch + waiting_bytes() + above_bytes();
  std::byte* to = formed;
  int64_t first = -1;  // bytes from the first formed row of all to the block's first
  ForEachLine(tile, last, [&](int64_t line, int64_t first_tile, int64_t tiles) {
    const int64_t begin = first_tile * tiling_.rows;
    const int64_t end = std::min(p.grid.line_rows, begin + tiles * tiling_.rows);
    if (first < 0) first = p.left.OfLine(p.grid, line) + begin * p.left.row;
    const std::byte* const from = operands.left + p.left_at + form.left.OfLine(p.grid, line);
    for (int64_t row = begin, count = 0; row < end; row += count) {
      count = form.runs.Together(row, end - row);
      const bool dense = form.joins_rows && form.left.row == form.row_bytes;
      form.form(
          from + form.runs.Offset(row, form.left.row), to,
          {.size = dense ? 1 : count, .in_stride = form.left.row, .out_stride = form.formed_bytes},
          dense ? count * form.row_bytes : form.row_bytes);
      to += count * form.formed_bytes;
    }
  });
  // Rows are addressed from the first of all, which lies in front of the formed ones where a block
  // begins later: no pointer into their memory, so that it is computed as a number.
  const auto at = reinterpret_cast<uintptr_t>(formed) - static_cast<uintptr_t>(first + p.left_at);
  return reinterpret_cast<const std::byte*>(at);
}

void Product::Run(const ProductOperands& operands, int64_t begin, int64_t end) const {
  if (one_tile_) return RunOneTile(operands, begin, end);
  const EnteredMicroKernel entered(*kernel_);
  const int64_t all_tiles = tiling_.tiles_per_line * problem_.grid.lines();
  // Small products begin with the first block: two divisions would take as long as a tile's start.
  int64_t block = 0, panel = begin;
  if (begin >= panels()) {
    block = begin / panels();
    panel = begin % panels();
  }
  ProductOperands now = operands;
  for (int64_t unit = begin; unit < end;) {
    // Whole blocks that a thread has together are as large as those of a thread that has all.
    const int64_t whole = panel == 0 ? std::min((end - unit) / panels(), blocks_together_) : 0;
    const int64_t blocks = std::max<int64_t>(1, whole), tile = block * blocks_.tiles;
    const int64_t last = std::min(all_tiles, tile + blocks * blocks_.tiles);
    const bool new_block = unit == begin || panel == 0;
    if (new_block && problem_.left_form.form != nullptr) now.left = FormLeft(operands, tile, last);
    const int64_t last_panel = whole > 0 ? panels() : std::min(panels(), panel + end - unit);
    unit += blocks * (last_panel - panel);
    for (; panel < last_panel; ++panel) RunBlock(now, tile, last, panel);
    if (panel < panels()) continue;
    panel = 0;
    block += blocks;
  }
}

void Product::RunOneTile(const ProductOperands& operands, int64_t begin, int64_t end) const {
  const OneTile& at = *one_tile_;
  const int64_t row = operands.first_row + at.out_at;
  std::byte* const out = static_cast<std::byte*>(operands.args.outputs[0]) + row * at.out_row_bytes;
  const auto run = [&](size_t tile, int64_t panel, int64_t tiles) {
    const int64_t channel = panel * at.panel_lanes;
    kernel_->Run({.tile = tile,
                  .tiles = tiles,
                  .left = operands.left + at.left_at,
                  .panel = operands.panels + panel * at.panel_bytes,
                  .constants = operands.constants + panel * at.constants_bytes,
                  .out = out + channel * at.out_value_bytes,
                  .row = row,
                  .channel = channel,
                  .row_values = operands.row_values,
                  .inputs = operands.args.inputs});
  };
  const int64_t whole = std::min(end, at.whole_panels);
  if (whole - begin >= at.turned_panels && operands.args.odd_run()) {
    for (int64_t panel = whole; panel > begin; panel -= at.turned_together) {
      const int64_t first = std::max(begin, panel - at.turned_together);
      run(0, first, panel - first);
    }
  } else if (begin < whole) {
    run(0, begin, whole - begin);
  }
  if (end > at.whole_panels) run(1, end - 1, 1);
}

void Product::RunBlock(const ProductOperands& operands, int64_t tile, int64_t last,
                       int64_t panel) const {
  ForEachLine(tile, last, [&](int64_t line, int64_t first_tile, int64_t tiles) {
    RunTiles(operands, line, first_tile, tiles, panel);
  });
}

void Product::RunTiles(const ProductOperands& operands, int64_t line, int64_t first_tile,
                       int64_t tiles, int64_t panel) const {
  const ProductProblem& p = problem_;
  const Panel& at = panels_[panel];
  const int64_t first_row = first_tile * tiling_.rows;  // in the line
  const int64_t line_row = operands.first_row + p.out_at + p.out.OfLine(p.grid, line);
  TileRun now{.tile = 0,
              .tiles = 0,
              .left = nullptr,
              .panel = operands.panels + panel * panel_bytes_,
              .constants = operands.constants + panel * panel_constants_bytes_,
              .out = nullptr,
              .row = 0,
              .channel = at.channels.first,
              .row_values = nullptr,
              .inputs = operands.args.inputs};
  const std::byte* left = operands.left + at.left_at + p.left.OfLine(p.grid, line);
  const std::byte* row_values =
      operands.row_values + at.row_values_at + p.row_values.OfLine(p.grid, line);
  const auto run = [&](int64_t row, int64_t count, size_t tile) {
    now.tile = tile + at.last;
    now.tiles = count;
    now.left = left + p.left_runs.Offset(row, p.left.row);
    now.row = line_row + row * p.out.row;
    now.row_values = row_values + row * p.row_values.row;
    now.out = p.rest.waits() ? operands.args.scratch + (row - first_row) * waiting_row_bytes()
                             : OutputAt(operands, now.row, now.channel);
    kernel_->Run(now);
  };
  const bool shorter = tiling_.last_rows != 0 && first_tile + tiles == tiling_.tiles_per_line;
  const int64_t full = tiles - shorter;
  if (full > 0) run(first_row, full, 0);
  if (shorter) run(first_row + full * tiling_.rows, 1, 2);
  if (p.rest.apply == nullptr) return;
  const int64_t rows = std::min(tiles * tiling_.rows, p.grid.line_rows - first_row);
  ApplyRest(operands, line_row + first_row * p.out.row, rows, at.channels);
}

// Rows of the output from `row` on, as far apart as those of a line.
void Product::ApplyRest(const ProductOperands& operands, int64_t row, int64_t rows,
                        const PanelChannels& channels) const {
  const ProductProblem& p = problem_;
  std::byte* out = OutputAt(operands, row, channels.first);
  const int64_t out_pitch = p.out_row_bytes / p.out_value_bytes;
  TailRest::Part part{.stored = p.rest.waits() ? operands.args.scratch : out,
                      .pitch = p.rest.waits() ? panel_lanes() : out_pitch,
                      .out = out,
                      .out_pitch = out_pitch,
                      .row = row,
                      .rows = rows,
                      .channel = channels.first,
                      .channels = channels.last - channels.first};
  if (p.out.row == 1) return p.rest.Apply(operands.args, part);
  // Rows of the output between which others lie: one at a time.
  part.rows = 1;
  for (int64_t i = 0; i < rows; ++i) {
    p.rest.Apply(operands.args, part);
    part.stored += p.rest.waits() ? waiting_row_bytes() : p.out.row * p.out_row_bytes;
    part.out += p.out.row * p.out_row_bytes;
    part.row += p.out.row;
  }
}

}  // namespace fuselite::kernels
