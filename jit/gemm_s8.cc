#include "jit/gemm_s8.h"

#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace fuselite::jit {

namespace {

constexpr int64_t kSum = sizeof(int32_t);

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Cycles that a tile of rows x vectors takes for one group of the depth on a core with two
// multiplications and two loads a cycle (compare gemm.cc), and for its start and end.
double TileCycles(bool dot, int rows, int vectors, int64_t groups) {
  const double multiplies = rows * vectors / 2.0 * (dot ? 1.0 : 1.5);
  const double loads = (rows + vectors) / 2.0;
  const double step = std::max({multiplies, loads, 4.0}) + 0.25 * vectors + 0.1 * rows;
  const int stores = vectors / 4 + (vectors % 4 + 1) / 2;
  return groups * step + rows * (3.0 * vectors + 2.0 * stores) + 16;
}

GemmTiling ChooseS8Tiling(const VectorIsa& isa, int64_t line_rows, int64_t groups,
                          int64_t channels) {
  const bool dot = HasDotProduct(isa.level);
  const int64_t all_vectors = CeilDiv(channels, isa.lanes());
  GemmTiling best;
  double best_cycles = 1e300;
  for (int vectors = 1; vectors <= 8 && vectors <= all_vectors; ++vectors) {
    const int max_rows = MaxS8TileRows(isa, vectors);
    for (int rows = 1; rows <= max_rows && rows <= line_rows; ++rows) {
      const int64_t panels = CeilDiv(all_vectors, vectors);
      const auto last_vectors = static_cast<int>(all_vectors - (panels - 1) * vectors);
      const auto last_rows = static_cast<int>(line_rows % rows);
      const int64_t full_tiles = line_rows / rows;
      const auto line_cycles = [&](int v) {
        return static_cast<double>(full_tiles) * TileCycles(dot, rows, v, groups) +
               (last_rows ? TileCycles(dot, last_rows, v, groups) : 0.0);
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

// Of unsigned bytes, each xor `flip`. Runs of a few channels are common: 8 and 4 bytes at a time.
int64_t SumBytes(const uint8_t* values, int64_t n, uint8_t flip) {
  const __m128i zero = _mm_setzero_si128();
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  __m128i sums = zero;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values + i));
    sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_xor_si128(x, flips), zero));
  }
  if (i + 8 <= n) {
    const __m128i x = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(values + i));
    sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_xor_si128(x, _mm_move_epi64(flips)), zero));
    i += 8;
  }
  if (i + 4 <= n) {
    uint32_t four;
    std::memcpy(&four, values + i, sizeof(four));
    four ^= 0x01010101u * flip;
    sums = _mm_add_epi64(sums, _mm_sad_epu8(_mm_cvtsi32_si128(static_cast<int>(four)), zero));
    i += 4;
  }
  std::array<int64_t, 2> halves;
  std::memcpy(halves.data(), &sums, sizeof(halves));
  int64_t sum = halves[0] + halves[1];
  for (; i < n; ++i) sum += values[i] ^ flip;
  return sum;
}

}  // namespace

Result<GemmS8> GemmS8::Build(GemmS8Problem problem, const kernels::BuildContext& context) {
  if (!VectorIsa::Supported(context.isa)) {
    return Unsupported("nothing is emitted below avx2 (isa=", IsaName(context.isa), ")");
  }
  if (problem.rows() == 0 || problem.channels == 0 || problem.depth.depth() == 0) {
    return Unsupported("nothing is emitted for an empty product");
  }
  GemmS8 gemm;
  gemm.isa_ = VectorIsa(context.isa);
  if (problem.out_line_pitch == 0) {
    problem.out_line_pitch = problem.line_rows * problem.out_pitch;
    problem.out_image_pitch = problem.lines_per_image * problem.out_line_pitch;
  }
  gemm.problem_ = std::move(problem);
  FUSELITE_RETURN_IF_ERROR(gemm.Plan(context));
  if (context.judging) return gemm;
  std::vector<GemmS8Tile> tiles;  // full, last panel; then the same for the shorter tile
  for (const int rows : {gemm.tiling_.rows, gemm.tiling_.last_rows}) {
    if (rows == 0) continue;
    tiles.push_back(gemm.Tile(rows, gemm.tiling_.panels == 1));
    tiles.push_back(gemm.Tile(rows, true));
  }
  FUSELITE_ASSIGN_OR_RETURN(gemm.code_, EmitGemmS8(gemm.spec_, tiles, gemm.name()));
  return gemm;
}

Status GemmS8::Plan(const kernels::BuildContext& context) {
  const GemmS8Problem& p = problem_;
  tiling_ =
      ChooseS8Tiling(isa_, p.line_rows, DepthGroups(p.depth, context.isa), p.group_channels());

  spec_.isa = context.isa;
  spec_.depth = p.depth;
  spec_.a_step = p.a_step;
  spec_.flips = p.flips;
  const int32_t middle = p.weights_type == DataType::kUInt8 ? 128 : 0;
  spec_.corrects = HasDotProduct(context.isa) && p.weights_zero_point != middle;
  PlanTail(context);
  panel_bytes_ =
      (1 + DepthGroups(p.depth, context.isa) + spec_.constants()) * tiling_.vectors * isa_.bytes;
  out_bytes_ = BitWidth(p.tail.output.type) / 8;
  ChooseBlocks(context.threads);
  spec_.out_step = spec_.stores_sums() ? panel_channels() * kSum : p.out_pitch * out_bytes_;
  return CheckGemmS8(spec_);
}

void GemmS8::PlanTail(const kernels::BuildContext& context) {
  const GemmS8Problem& p = problem_;
  if (p.floats) {
    spec_.dequantization = p.floats->dequantization;
    tail_ = FloatTail(*p.floats, p.tail.output.type, context.isa);
    return;
  }
  const int64_t largest_weight =
      p.weights_type == DataType::kUInt8 || p.weights_zero_point != 0 ? 255 : 128;
  const int64_t largest_sum = p.depth.depth() * 255 * largest_weight + p.largest_bias;
  tail_ = DivideTail(p.tail.tail, p.tail.output.type, isa_, largest_sum,
                     p.group_channels() % isa_.lanes() == 0);
  spec_.requantization = tail_.requantization;
  spec_.residual = tail_.residual;
}

GemmS8Tile GemmS8::Tile(int rows, bool last_panel) const {
  GemmS8Tile tile{.rows = rows,
                  .vectors = last_panel ? tiling_.last_vectors : tiling_.vectors,
                  .last_channels = last_panel ? tiling_.last_lanes : isa_.lanes()};
  if (spec_.requantization) {
    int rest = tile.vectors;
    while (rest > GroupSize(rest)) rest -= GroupSize(rest);
    tile.last_channels += (rest - 1) * isa_.lanes();
  }
  return tile;
}

// As for float32 (Gemm::ChooseBlocks): a block's rows stay in the cache while the panels pass.
void GemmS8::ChooseBlocks(int threads) {
  const int64_t tile_bytes = tiling_.rows * DepthGroups(problem_.depth, isa_.level) * 4;
  const bool panels_stay = static_cast<int64_t>(packed_bytes()) <= (512 << 10);
  const int64_t block_bytes = panels_stay ? (32 << 10) : (384 << 10);
  const int64_t tiles = tiling_.tiles_per_line * problem_.lines();
  int64_t most = std::max<int64_t>(1, block_bytes / tile_bytes);
  // Enough units for the threads to share evenly.
  const int64_t wanted_blocks = CeilDiv(threads > 1 ? 4 * threads : 1, panels());
  most = std::max<int64_t>(1, std::min(most, tiles / wanted_blocks));
  blocks_ = CeilDiv(tiles, most);
  block_tiles_ = CeilDiv(tiles, blocks_);
  blocks_ = CeilDiv(tiles, block_tiles_);
}

size_t GemmS8::scratch_bytes() const {
  if (!spec_.stores_sums()) return 0;
  return static_cast<size_t>(block_tiles_ * tiling_.rows * panel_channels() * kSum);
}

int64_t GemmS8::grain() const {
  // Requantizing a sum takes about as long as 64 of its products.
  constexpr int kTailCost = 64;
  const double unit = 1.0 * block_tiles_ * tiling_.rows * panel_channels() *
                      static_cast<double>(problem_.depth.depth() + kTailCost);
  return std::max<int64_t>(1, static_cast<int64_t>(1.5e5 / unit));  // about 1 microsecond
}

std::string GemmS8::name() const {
  const DataType type = problem_.floats ? problem_.weights_type : problem_.type;
  return internal::Join(problem_.name, ' ', DataTypeName(type), ' ', tiling_.rows, 'x',
                        panel_channels(), ' ',
                        HasDotProduct(isa_.level) ? IsaName(isa_.level) : isa_.name(), " jit");
}

int64_t GemmS8::LineOffset(int64_t line) const {
  if (line < problem_.lines_per_image) return line * problem_.line_step;  // divisions take 5 ns
  return line / problem_.lines_per_image * problem_.image_step +
         line % problem_.lines_per_image * problem_.line_step;
}

void GemmS8::CorrectRows(const std::byte* a, int32_t* corrections, int64_t begin,
                         int64_t end) const {
  const int32_t s0 =
      problem_.weights_zero_point - (problem_.weights_type == DataType::kUInt8 ? 128 : 0);
  const uint8_t flip = problem_.flips ? 0x80 : 0;
  for (int64_t row = begin; row < end; ++row) {
    // Without groups, rows may go on beyond the problem's (image_step).
    const int64_t group = problem_.groups > 1 ? row / problem_.rows() : 0;
    const int64_t group_row = row - group * problem_.rows();
    const std::byte* from = a + group * problem_.group_step +
                            LineOffset(group_row / problem_.line_rows) +
                            group_row % problem_.line_rows * problem_.a_step;
    int64_t sum = 0;
    for (int64_t i = 0; i < problem_.depth.outer; ++i) {
      for (const DepthRuns::Run& run : problem_.depth.runs) {
        const std::byte* values = from + i * problem_.depth.outer_step + run.offset;
        sum += SumBytes(reinterpret_cast<const uint8_t*>(values), run.length, flip);
      }
    }
    corrections[row] = static_cast<int32_t>(-s0 * sum);
  }
}

int64_t GemmS8::OutOffset(int64_t line) const {
  if (line < problem_.lines_per_image) return line * problem_.out_line_pitch;
  return line / problem_.lines_per_image * problem_.out_image_pitch +
         line % problem_.lines_per_image * problem_.out_line_pitch;
}

void GemmS8::Run(const S8Product& product, int64_t begin, int64_t end) const {
  const int64_t all_tiles = tiling_.tiles_per_line * problem_.lines();
  int64_t block = begin / panels(), panel = begin % panels();
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t tile = block * block_tiles_;
    RunBlock(product, tile, std::min(all_tiles, tile + block_tiles_), panel);
    if (++panel < panels()) continue;
    panel = 0;
    ++block;
  }
}

// Tiles [tile, last) of all lines.
void GemmS8::RunBlock(const S8Product& product, int64_t tile, int64_t last, int64_t panel) const {
  int64_t line = tile / tiling_.tiles_per_line, first = tile - line * tiling_.tiles_per_line;
  while (tile < last) {
    const int64_t count = std::min(tiling_.tiles_per_line - first, last - tile);
    RunTiles(product, line, first, count, panel);
    tile += count;
    first = 0;
    ++line;
  }
}

const RowScale* GemmS8::ScalesOf(const S8Product& product, int64_t row) const {
  if (spec_.dequantization->per_row) return product.scales + row;
  return product.scales + row / (problem_.lines_per_image * problem_.line_rows);
}

// Tiles [first_tile, first_tile + tiles) of one line.
void GemmS8::RunTiles(const S8Product& product, int64_t line, int64_t first_tile, int64_t tiles,
                      int64_t panel) const {
  const int64_t group = GroupOf(panel), channel = FirstChannel(panel);
  const int64_t first_row = first_tile * tiling_.rows;  // in the line
  const int64_t line_row = line * problem_.line_rows;
  const auto run = [&](int64_t row, int64_t count, size_t entry) {
    GemmS8Args now;  // members that the code does not read are left alone
    now.a = product.a + group * problem_.group_step + LineOffset(line) + row * problem_.a_step;
    now.panel = product.packed + panel * panel_bytes_;
    now.out = product.args.scratch + (row - first_row) * spec_.out_step;
    now.tiles = count;
    now.table = tail_.table.data();
    if (!spec_.stores_sums()) {
      now.out = product.out + (OutOffset(line) + row * problem_.out_pitch + channel) * out_bytes_;
    }
    if (spec_.dequantization) {
      now.scales = ScalesOf(product, line_row + row);
      BindTailOperands(spec_.dequantization->tail, product.args.inputs,
                       product.first_row + line_row + row, channel, &now.operands);
    }
    if (spec_.residual) {
      const kernels::TailOperand& y = spec_.residual->operand;
      now.residual = static_cast<const std::byte*>(product.args.inputs[y.input]) +
                     (product.first_row + line_row + row) * y.row_stride + channel;
    }
    if (spec_.corrects) {
      now.corrections = product.corrections + group * problem_.rows() + line_row + row;
    }
    code_->entry<GemmS8Function>(entry + IsLast(panel))(&now);
  };
  const bool shorter = tiling_.last_rows != 0 && first_tile + tiles == tiling_.tiles_per_line;
  const int64_t full = tiles - shorter;
  if (full > 0) run(first_row, full, 0);
  if (shorter) run(first_row + full * tiling_.rows, 1, 2);
  if (tail_.apply_rest == nullptr) return;
  const int64_t row = line_row + first_row;
  tail_.ApplyRest(product.args,
                  {.out = product.out + (row * problem_.out_pitch + channel) * out_bytes_,
                   .out_pitch = problem_.out_pitch,
                   .sums = spec_.stores_sums() ? product.args.scratch : nullptr,
                   .sums_pitch = panel_channels(),
                   .row = product.first_row + row,
                   .rows = std::min(tiles * tiling_.rows, problem_.line_rows - first_row),
                   .channel = channel,
                   .channels = LastChannel(panel) - channel});
}

}  // namespace fuselite::jit
