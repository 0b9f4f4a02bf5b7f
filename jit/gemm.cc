#include "jit/gemm.h"

#include <xmmintrin.h>

#include <algorithm>
#include <cstring>

namespace fuselite::jit {

namespace {

constexpr int64_t kFloat = sizeof(float);

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Cycles per depth that a tile of rows x vectors takes on a core with two multiply-adds and two
// loads a cycle, each multiply-add 4 cycles behind the one that it continues. What comes on top, a
// part of each load, lets larger tiles win: they fetch weights and rows less often.
double StepCycles(int rows, int vectors) {
  const double multiplies = rows * vectors / 2.0;
  const double loads = (rows + vectors) / 2.0;
  return std::max({multiplies, loads, 4.0}) + 0.25 * vectors + 0.1 * rows;
}

// A tile's start and end: bias, addresses, stores.
double TileCycles(int rows, int vectors, int64_t depth) {
  return depth * StepCycles(rows, vectors) + rows * vectors + 12;
}

// to[k * width + n] = from[n * n_step + k * k_step].
void CopyTransposed(const float* from, int64_t n_step, int64_t count, int64_t k_step, int64_t depth,
                    float* to, int64_t width) {
  int64_t k = 0;
  for (; k_step == 1 && k + 4 <= depth; k += 4) {
    int64_t n = 0;
    for (; n + 4 <= count; n += 4) {
      const float* corner = from + n * n_step + k;
      __m128 r0 = _mm_loadu_ps(corner), r1 = _mm_loadu_ps(corner + n_step);
      __m128 r2 = _mm_loadu_ps(corner + 2 * n_step), r3 = _mm_loadu_ps(corner + 3 * n_step);
      _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
      float* place = to + k * width + n;
      _mm_storeu_ps(place, r0);
      _mm_storeu_ps(place + width, r1);
      _mm_storeu_ps(place + 2 * width, r2);
      _mm_storeu_ps(place + 3 * width, r3);
    }
    for (; n < count; ++n) {
      for (int64_t i = 0; i < 4; ++i) to[(k + i) * width + n] = from[n * n_step + k + i];
    }
  }
  for (; k < depth; ++k) {
    for (int64_t n = 0; n < count; ++n) to[k * width + n] = from[n * n_step + k * k_step];
  }
}

}  // namespace

GemmTiling ChooseTiling(const VectorIsa& isa, int64_t line_rows, int64_t depth, int64_t channels) {
  const int64_t all_vectors = CeilDiv(channels, isa.lanes());
  GemmTiling best;
  double best_cycles = 1e300;
  for (int vectors = 1; vectors <= 8 && vectors <= all_vectors; ++vectors) {
    const int max_rows = MaxTileRows(isa, vectors);
    for (int rows = 1; rows <= max_rows && rows <= line_rows; ++rows) {
      const int64_t panels = CeilDiv(all_vectors, vectors);
      const auto last_vectors = static_cast<int>(all_vectors - (panels - 1) * vectors);
      const auto last_rows = static_cast<int>(line_rows % rows);
      const auto line_cycles = [&](int v) {
        return static_cast<double>(line_rows / rows) * TileCycles(rows, v, depth) +
               (last_rows ? TileCycles(last_rows, v, depth) : 0.0);
      };
      const double cycles = (panels - 1) * line_cycles(vectors) + line_cycles(last_vectors);
      if (cycles >= best_cycles * 0.999) continue;
      best_cycles = cycles;
      best = {.rows = rows,
              .vectors = vectors,
              .last_rows = last_rows,
              .last_vectors = last_vectors,
              .last_lanes = 0,
              .tiles_per_line = CeilDiv(line_rows, rows),
              .panels = panels};
    }
  }
  best.last_lanes = static_cast<int>(channels - (all_vectors - 1) * isa.lanes());
  return best;
}

Result<Gemm> Gemm::Build(GemmProblem problem, const kernels::BuildContext& context) {
  if (!VectorIsa::Supported(context.isa)) {
    return Unsupported("nothing is emitted below avx2 (isa=", IsaName(context.isa), ")");
  }
  if (problem.rows() == 0 || problem.channels == 0 || problem.depth.depth() == 0) {
    return Unsupported("nothing is emitted for an empty product");
  }
  Gemm gemm;
  if (!problem.tail.rest.empty()) gemm.apply_rest_ = kernels::ApplyTail(context.isa);
  gemm.isa_ = VectorIsa(context.isa);
  gemm.tiling_ =
      ChooseTiling(gemm.isa_, problem.line_rows, problem.depth.depth(), problem.channels);
  gemm.problem_ = std::move(problem);
  gemm.ChooseBlocks(context.threads);

  const GemmTiling& t = gemm.tiling_;
  const int lanes = gemm.isa_.lanes();
  std::vector<GemmTile> tiles;  // full, last panel; then the same for the shorter tile
  for (const int rows : {t.rows, t.last_rows}) {
    if (rows == 0) continue;
    tiles.push_back({rows, t.vectors, t.panels > 1 ? lanes : t.last_lanes});
    tiles.push_back({rows, t.last_vectors, t.last_lanes});
  }
  const GemmSpec spec{.isa = context.isa,
                      .depth = gemm.problem_.depth,
                      .a_step = gemm.problem_.a_step,
                      .out_step = gemm.problem_.out_step,
                      .prefetch_weights = gemm.packed_bytes() > (256 << 10),
                      .tail = gemm.problem_.tail.emitted};
  FUSELITE_RETURN_IF_ERROR(CheckGemm(spec));
  if (context.judging) return gemm;
  FUSELITE_ASSIGN_OR_RETURN(gemm.code_, EmitGemm(spec, tiles, gemm.name()));
  return gemm;
}

// Units are blocks of rows times panels, panels running fastest: a block's rows stay in the cache
// while the panels pass. Where all panels fit in half of a 1 MiB L2, blocks are small and the
// panels stay too; where not, blocks are as large as a part of L2, so that the panels, which then
// come from further away, pass as few times as possible.
void Gemm::ChooseBlocks(int threads) {
  const int64_t depth = problem_.depth.depth();
  const int64_t tile_bytes = tiling_.rows * depth * kFloat;
  const bool panels_stay = static_cast<int64_t>(packed_bytes()) <= (512 << 10);
  const int64_t block_bytes = panels_stay ? (64 << 10) : (384 << 10);
  const int64_t tiles = tiling_.tiles_per_line * problem_.lines();
  int64_t most = std::max<int64_t>(1, block_bytes / tile_bytes);
  // Enough units for the threads to share evenly.
  const int64_t wanted_blocks = CeilDiv(threads > 1 ? 4 * threads : 1, tiling_.panels);
  most = std::max<int64_t>(1, std::min(most, tiles / wanted_blocks));
  blocks_ = CeilDiv(tiles, most);
  block_tiles_ = CeilDiv(tiles, blocks_);
  blocks_ = CeilDiv(tiles, block_tiles_);
}

size_t Gemm::panel_bytes() const {
  return static_cast<size_t>(tiling_.vectors) * isa_.bytes * (problem_.depth.depth() + 1);
}

void Gemm::Pack(const WeightsView& weights, float* packed, int64_t begin, int64_t end) const {
  const int64_t depth = problem_.depth.depth();
  for (int64_t panel = begin; panel < end; ++panel) {
    float* to = packed + panel * panel_bytes() / kFloat;
    const bool last = panel == tiling_.panels - 1;
    const int64_t width = (last ? tiling_.last_vectors : tiling_.vectors) * isa_.lanes();
    const int64_t first = panel * tiling_.vectors * isa_.lanes();
    const int64_t used = std::min(width, problem_.channels - first);
    if (used < width || weights.bias == nullptr) std::memset(to, 0, width * (depth + 1) * kFloat);
    if (weights.bias != nullptr) std::memcpy(to, weights.bias + first, used * kFloat);
    to += width;
    const float* from = weights.values + first * weights.n_step;
    if (weights.n_step == 1) {
      for (int64_t k = 0; k < depth; ++k) {
        std::memcpy(to + k * width, from + k * weights.k_step, used * kFloat);
      }
      continue;
    }
    CopyTransposed(from, weights.n_step, used, weights.k_step, depth, to, width);
  }
}

std::string Gemm::layout() const {
  return internal::Join("gemm f32 k", problem_.depth.depth(), " n", problem_.channels, " p",
                        tiling_.vectors * isa_.lanes(), " last", tiling_.last_vectors);
}

int64_t Gemm::grain() const {
  const double unit =
      2.0 * block_tiles_ * tiling_.rows * problem_.depth.depth() * tiling_.vectors * isa_.lanes();
  return std::max<int64_t>(1, static_cast<int64_t>(3e5 / unit));  // about 3 microseconds
}

std::string Gemm::name() const {
  return internal::Join(problem_.name, " f32 ", tiling_.rows, 'x', tiling_.vectors * isa_.lanes(),
                        ' ', isa_.name(), " jit");
}

void Gemm::Run(const void* const* inputs, const std::byte* a, const std::byte* packed,
               std::byte* out, int64_t first_row, int64_t begin, int64_t end) const {
  const int64_t all_tiles = tiling_.tiles_per_line * problem_.lines();
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t panel = unit % tiling_.panels;
    const GemmArgs base{
        .a = a, .panel = packed + panel * panel_bytes(), .out = out, .tiles = 0, .operands = {}};
    int64_t tile = unit / tiling_.panels * block_tiles_;
    const int64_t last = std::min(all_tiles, tile + block_tiles_);
    while (tile < last) {
      const int64_t line = tile / tiling_.tiles_per_line;
      const int64_t first = tile % tiling_.tiles_per_line;
      const int64_t count = std::min(tiling_.tiles_per_line - first, last - tile);
      RunTiles(base, inputs, line, first, count, panel, first_row);
      tile += count;
    }
  }
}

// Tiles [first_tile, first_tile + tiles) of one line.
void Gemm::RunTiles(const GemmArgs& base, const void* const* inputs, int64_t line,
                    int64_t first_tile, int64_t tiles, int64_t panel, int64_t first_row) const {
  const int64_t channel = panel * tiling_.vectors * isa_.lanes();
  const int64_t line_offset = line / problem_.lines_per_image * problem_.image_step +
                              line % problem_.lines_per_image * problem_.line_step;
  const bool last_panel = panel == tiling_.panels - 1;
  const auto call = [&](int64_t row_in_line, int64_t count, size_t entry) {
    const int64_t row = line * problem_.line_rows + row_in_line;
    GemmArgs args = base;
    args.a += line_offset + row_in_line * problem_.a_step;
    args.out += row * problem_.out_step + channel * kFloat;
    args.tiles = count;
    BindTailOperands(problem_.tail.emitted, inputs, first_row + row, channel, &args.operands);
    code_->entry<GemmFunction>(entry + last_panel)(&args);
  };
  const bool shorter = tiling_.last_rows != 0 && first_tile + tiles == tiling_.tiles_per_line;
  const int64_t first_row_in_line = first_tile * tiling_.rows;
  const int64_t full = tiles - shorter;
  if (full > 0) call(first_row_in_line, full, 0);
  if (shorter) call(first_row_in_line + full * tiling_.rows, 1, 2);

  if (apply_rest_ == nullptr) return;
  const int64_t row = line * problem_.line_rows + first_row_in_line;
  std::byte* stored = base.out + row * problem_.out_step + channel * kFloat;
  apply_rest_(
      problem_.tail.rest, inputs,
      {.source = stored,
       .source_pitch = problem_.out_step / kFloat,
       .source_type = DataType::kFloat32,
       .destination = stored,
       .destination_pitch = problem_.out_step / kFloat,
       .destination_type = DataType::kFloat32,
       .row = first_row + row,
       .rows = std::min(tiles * tiling_.rows, problem_.line_rows - first_row_in_line),
       .channel = channel,
       .channels = std::min<int64_t>(tiling_.vectors * isa_.lanes(), problem_.channels - channel)});
}

}  // namespace fuselite::jit
