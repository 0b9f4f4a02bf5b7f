#include <algorithm>

#include "jit/product/gemm_byte_pairs_emitter.h"
#include "jit/product/product_s8.h"
#include "jit/product/sum_bytes.h"
#include "kernels/product/byte_sums.h"
#include "kernels/source/flipped_rows.h"
#include "kernels/source/split_rows.h"

namespace fuselite::jit {

using kernels::DepthRuns;
using kernels::ProductProblem;
using kernels::Tile;
using kernels::TileRun;

namespace {

// The weights of a single row from which their constants lie apart. To find these takes some
// nanoseconds, a tenth of a layer of 16 channels, and less memory is what is won.
constexpr int64_t kSharedWeights = 32 << 10;
// So many rows repay flipping a block of them before its panels pass, where the flips in the panels
// take the place of dot products (Trait::kTwoVectorPorts): of a 1x1 convolution of 512 channels
// these are a fifth of the arithmetic.
constexpr int64_t kRowsWorthFlipping = 4;
// The most rows by which pair products read weights narrow (GemmS8Spec::narrow).
constexpr int64_t kRowsByNarrow = 64;
// What two groups of byte pairs take, some of them wide (S8TileCycles).
constexpr double kCyclesOfBytePairs = 2.2;
// Of so many groups one may be multiplied twice, so that few rows read weights narrow, and not in
// 16 bits.
constexpr int64_t kGroupsOfOutlier = 4;
// The most groups that tiles of several rows, or of one, take again in straight code, of up to 400
// and 100 bytes each: L1 holds that of many rows, while a single row waits for its weights.
constexpr int64_t kMostAgain = 64, kMostAgainOfOneRow = 512;
// What a row costs: a dot product, the sum of a run of its values, and of each value there.
constexpr double kCyclesOfProduct = 0.5, kCyclesOfRun = 2, kCyclesOfSummedByte = 0.035;
// Short runs are summed one by one.
constexpr double kCyclesOfShortRun = 5;

// What AMX takes beside its tiles: their configuration, and what it sleeps through where the layers
// before do without it. A product of 49 rows of 128 by 12 columns takes 3.1 us as the only one of a
// net, and 0.6 without.
constexpr double kCyclesOfWakingAmx = 1000;

double CyclesOfSums(const DepthRuns& depth) {
  const bool is_short = depth.runs.front().length < kernels::kShortestSummed;
  const auto runs = static_cast<double>(depth.outer * std::ssize(depth.runs));
  return runs * (is_short ? kCyclesOfShortRun : kCyclesOfRun) +
         static_cast<double>(depth.depth()) * kCyclesOfSummedByte;
}

// DivideIntegerTail: those of a line, where lines follow each other in the output.
int64_t RowsOfCall(const ProductProblem& problem) {
  const auto follows = [&](int64_t line) {
    return problem.out.OfLine(problem.grid, line) == line * problem.grid.line_rows;
  };
  const int64_t lines = problem.grid.lines();
  const bool follow = lines == 1 || (follows(1) && follows(lines - 1));
  return follow && problem.out_at == 0 && problem.out.row == 1 ? problem.grid.line_rows : 0;
}

// Panels of byte pairs hold the places of their groups.
std::string PlacesKey(const DepthRuns& depth) {
  std::string key = internal::Join('*', depth.outer, '@', depth.outer_step);
  for (const auto& run : depth.runs) key += internal::Join('@', run.offset);
  return key;
}

// What byte pairs are emitted for: AVX2 where there is AVX-512 without dot products, too. They take
// five or six instructions of 32 bytes where products of int16 take four of 64, each of which
// counts twice on a Zen 4 and has two ports instead of three on a Skylake (which was not measured):
// a Zen 4 with isa=avx512 takes 7.4 ms for SSD MobileNetV1 uint8 instead of 9.8.
constexpr Isa IsaOfBytePairs(Isa isa) { return isa.CutTo(Isa::kAvx2); }

std::shared_ptr<const kernels::MicroKernel> Shared(std::shared_ptr<const MicroKernelS8> kernel) {
  return kernel;
}

}  // namespace

Result<std::shared_ptr<const kernels::MicroKernel>> MicroKernelS8::Make(
    ProductFormatS8 format, const kernels::DepthRuns& depth, ProductProblem* problem, Isa isa) {
  // Centered weights need no sums of rows, but no tile of AMX takes them.
  const bool chooses = isa.has(Feature::kAmxInt8) && !format.byte_pairs && format.outliers &&
                       format.weights_offset() != 0;
  if (!chooses) {
    FUSELITE_ASSIGN_OR_RETURN(const std::shared_ptr<const MicroKernelS8> only,
                              MakeOn(isa, std::move(format), depth, problem));
    return Shared(only);
  }
  ProductProblem of_centered = *problem;
  FUSELITE_ASSIGN_OR_RETURN(const std::shared_ptr<const MicroKernelS8> kernel,
                            MakeOn(isa, format, depth, problem));
  FUSELITE_ASSIGN_OR_RETURN(
      const std::shared_ptr<const MicroKernelS8> centered,
      MakeOn(isa.without(Feature::kAmxInt8), std::move(format), depth, &of_centered));
  const double sums = static_cast<double>(problem->grid.rows()) * CyclesOfSums(depth);
  if (!centered->centered_ ||
      CyclesOfTiles(of_centered, *centered) >= CyclesOfTiles(*problem, *kernel) + sums) {
    return Shared(kernel);
  }
  *problem = std::move(of_centered);
  return Shared(centered);
}

Result<std::shared_ptr<MicroKernelS8>> MicroKernelS8::MakeOn(Isa isa, ProductFormatS8 format,
                                                             const kernels::DepthRuns& depth,
                                                             ProductProblem* problem) {
  if (format.byte_pairs) isa = IsaOfBytePairs(isa);
  std::shared_ptr<MicroKernelS8> kernel(new MicroKernelS8(isa));
  kernel->format_ = std::move(format);
  kernel->depth_ = depth.depth();
  GemmS8Spec& spec = kernel->spec_;
  spec.isa = isa;
  spec.depth = depth;
  spec.byte_pairs = kernel->format_.byte_pairs;
  kernel->groups_ = DepthGroups(spec);
  spec.a_step = problem->left.row;
  spec.a_runs = problem->left_runs;
  spec.out_step = problem->out.row * problem->out_row_bytes;
  spec.flips = kernel->format_.flips;
  spec.to_the_byte = kernel->format_.to_the_byte;
  const ProductFormatS8& f = kernel->format_;
  const bool one_row = problem->grid.line_rows == 1;
  const int64_t weights_bytes = problem->rights * problem->channels * kernel->depth_;
  kernel->shares_ = f.floats && f.shares_panels && weights_bytes >= kernels::kWorthSharing;
  const bool few_rows = one_row || problem->grid.rows() <= kRowsByNarrow;
  const bool reads_narrow = !kernel->TakesQuads() && (few_rows || kernel->shares_);
  kernel->CenterWeights(problem->group_channels(), reads_narrow,
                        one_row ? kMostAgainOfOneRow : kMostAgain);
  spec.narrow = reads_narrow && kernel->HasInt8Weights();
  spec.corrects = isa.has_vnni() && kernel->WeightsOffset() != 0;
  spec.rolled = RollsLoops(problem->grid.line_rows, weights_bytes);
  spec.prefetch_weights = one_row && problem->fetches_right_ahead;
  kernel->PlanTail(*problem);
  problem->rest = kernel->tail_.rest;
  if (spec.byte_pairs) {
    kernel->SplitBlocks(problem);
    FUSELITE_RETURN_IF_ERROR(CheckGemmS8(spec));
    return kernel;
  }
  spec.constants_apart = f.constant_right && one_row && weights_bytes >= kSharedWeights &&
                         spec.tail.requantization.has_value();
  FUSELITE_RETURN_IF_ERROR(CheckGemmS8(spec));
  if (one_row && kernel->many_rows() == nullptr) return kernel;
  const std::shared_ptr<MicroKernelS8> twin = kernel->WithAmx();
  kernel->amx_twin_ = twin;
  if (one_row) return kernel;
  if (twin != nullptr &&
      CyclesOfTiles(*problem, *twin) + kCyclesOfWakingAmx < CyclesOfTiles(*problem, *kernel)) {
    return twin;
  }
  kernel->FlipBlocks(problem);
  return kernel;
}

std::shared_ptr<MicroKernelS8> MicroKernelS8::WithAmx() const {
  if (!isa_.features.has(Feature::kAmxInt8) || !CheckAmxGemm(spec_).ok()) return nullptr;
  std::shared_ptr<MicroKernelS8> twin(new MicroKernelS8(*this));
  twin->amx_ = true;
  return twin;
}

const kernels::MicroKernel* MicroKernelS8::many_rows() const {
  if (!spec_.tail.dequantization || !(isa_.dot || shares_)) return nullptr;
  return amx_twin_ ? amx_twin_.get() : this;
}

void MicroKernelS8::TakeFormedRows(const ProductProblem& problem) {
  spec_.flips = false;
  spec_.a_step = problem.left.row;
  spec_.a_runs = problem.left_runs;
}

void MicroKernelS8::FlipBlocks(ProductProblem* problem) {
  if (!spec_.flips || !isa_.features.has(Trait::kTwoVectorPorts) ||
      !RowsAreRuns(spec_.depth, *problem) || problem->grid.rows() < kRowsWorthFlipping) {
    return;
  }
  problem->FormLeft(kernels::FlipRowsFor(isa_.features), depth_, depth_, true);
  TakeFormedRows(*problem);
}

void MicroKernelS8::SplitBlocks(ProductProblem* problem) {
  const bool overlap = spec_.a_step < depth_;
  if (overlap || !RowsAreRuns(spec_.depth, *problem) || depth_ % spec_.group_values() != 0) return;
  problem->FormLeft(kernels::SplitRowsFor(isa_.features, spec_.flips), depth_, 3 * depth_);
  TakeFormedRows(*problem);
  spec_.split_rows = true;
}

void MicroKernelS8::CenterWeights(int64_t group_channels, bool reads_narrow, int64_t most_again) {
  // Tiles of AMX multiply whole runs.
  if (!format_.outliers || isa_.features.has(Feature::kAmxInt8)) return;
  const bool needed = WeightsOffset() != 0;
  if (!needed && !spec_.byte_pairs) return;
  std::vector<TermGroup> again =
      GroupsOfTerms(spec_.depth, spec_.group_values(), spec_.value_bytes(), *format_.outliers);
  const bool repays = isa_.dot ? RepaysCentering(std::ssize(again), group_channels)
                               : reads_narrow && std::ssize(again) * kGroupsOfOutlier <= groups_;
  if (!spec_.byte_pairs && (!repays || std::ssize(again) > most_again)) return;
  centered_ = needed || !again.empty();
  spec_.again = std::move(again);
}

// Without it dot products need the sum of each row.
bool MicroKernelS8::RepaysCentering(int64_t again, int64_t group_channels) const {
  const DepthRuns& depth = spec_.depth;
  const int64_t vectors = (group_channels + isa_.lanes() - 1) / isa_.lanes();
  const double steps = static_cast<double>(again * vectors) * kCyclesOfProduct;
  return steps <= CyclesOfSums(depth);
}

int MicroKernelS8::max_rows(int vectors) const {
  if (spec_.byte_pairs) return MaxBytePairRows(vectors);
  return amx_ ? MaxAmxTileRows(spec_.a_runs, vectors) : MaxS8TileRows(isa_, vectors);
}

void MicroKernelS8::PlanTail(const ProductProblem& problem) {
  SumTail& emitted = tail_.emitted;
  if (format_.floats) {
    tail_ = FloatTail(std::move(*format_.floats), format_.output, isa_.features);
  } else {
    const bool wide_weights =
        format_.weights_type == DataType::kUInt8 || format_.weights_zero_point != 0;
    const SumBounds bounds{.products = depth_ * 255 * (wide_weights ? 255 : 128),
                           .bias = format_.largest_bias,
                           .at_run_time = !format_.constant_right,
                           .rows = problem.grid.rows()};
    tail_ = DivideIntegerTail(std::move(format_.tail), format_.output, isa_, bounds,
                              RowsOfCall(problem));
  }
  call_.tail = SumTailBinding(emitted);
  // The code's rows are those of a tile.
  for (Residual& residual : emitted.residuals) residual.operand.row_stride *= problem.out.row;
  if (emitted.dequantization) {
    for (kernels::TailStage& stage : emitted.dequantization->tail.stages) {
      stage.operand.row_stride *= problem.out.row;
    }
  }
  spec_.tail = emitted;
}

std::string MicroKernelS8::types() const {
  const bool hybrid = spec_.tail.dequantization.has_value();
  const DataType type = hybrid ? format_.weights_type : format_.type;
  return internal::Join(hybrid ? "hybrid " : "", DataTypeName(type),
                        spec_.byte_pairs ? " pairs" : "");
}

std::string MicroKernelS8::target() const {
  return std::string(amx_ ? "amx" : isa_.dot_name()) + " jit";
}

double MicroKernelS8::TileCycles(int rows, int vectors) const {
  if (amx_) return AmxTileCycles(spec_, rows, vectors);
  const int64_t groups = groups_ + std::ssize(spec_.again);
  if (spec_.byte_pairs) return S8TileCycles(groups, kCyclesOfBytePairs, rows, vectors);
  return isa_.dot ? S8TileCycles(groups, 1, rows, vectors) : PairTileCycles(groups, rows, vectors);
}

void MicroKernelS8::RowValues(const std::byte* left, int64_t step, int64_t count,
                              int32_t* values) const {
  const auto scale = static_cast<int32_t>(-WeightsOffset());
  const std::vector<DepthRuns::Run>& runs = spec_.depth.runs;
  const uint8_t flip = format_.flips ? 0x80 : 0;
  const int64_t length = runs.front().length;  // of each
  const ByteSum of_short(length, flip);
  std::fill_n(values, count, 0);
  for (int64_t outer = 0; outer < spec_.depth.outer; ++outer) {
    for (const DepthRuns::Run& run : runs) {
      const std::byte* bytes = left + outer * spec_.depth.outer_step + run.offset;
      const kernels::ByteRows rows{reinterpret_cast<const uint8_t*>(bytes), step, count};
      if (length < kernels::kShortestSummed) {
        of_short.AddEachShort(rows, values);
      } else {
        kernels::AddByteSums(isa_.features, flip, rows, length, values);
      }
    }
  }
  const auto added = static_cast<int32_t>(SignedActivations() ? 128 * depth_ : 0);
  for (int64_t i = 0; i < count; ++i) values[i] = (values[i] - added) * scale;
}

Result<std::shared_ptr<const kernels::MicroKernel>> MicroKernelS8::Emit(
    std::span<const Tile> tiles, const kernels::TileCalls& calls, const std::string& name) const {
  std::shared_ptr<MicroKernelS8> kernel(new MicroKernelS8(*this));
  kernel->spec_.across = calls.order == kernels::TileOrder::kAcross;
  FUSELITE_RETURN_IF_ERROR(kernel->EmitOwn(tiles, name));
  return std::shared_ptr<const kernels::MicroKernel>(std::move(kernel));
}

Status MicroKernelS8::EmitOwn(std::span<const Tile> tiles, const std::string& name) {
  // Sums that wait in scratch memory for their tail have rows of the panel's width.
  if (spec_.tail.stores_sums()) spec_.out_step = int64_t{tiles.front().vectors} * isa_.bytes;
  FUSELITE_RETURN_IF_ERROR(PrepareTail(&tail_, isa_));
  spec_.tail = tail_.emitted;
  if (amx_) {
    spec_.amx_rows = AmxBlockRows(spec_.a_runs, tiles.front().rows);
    shapes_ = ShapesOf(AmxProductOf(spec_));
  }
  const auto emit = amx_ ? EmitAmxGemm : spec_.byte_pairs ? EmitBytePairs : EmitGemmS8;
  FUSELITE_ASSIGN_OR_RETURN(code_, emit(spec_, tiles, name));
  for (size_t i = 0; i < tiles.size(); ++i) call_.entries[i] = code_->entry<GemmS8Function>(i);
  call_.tail.set_layer(tail_.layer_bytes());
  return Status();
}

void MicroKernelS8::Run(const TileRun& run) const {
  GemmS8Args args;  // members that the code does not read are left alone
  args.a = run.left;
  args.panel = run.panel;
  args.constants = run.constants;
  args.out = run.out;
  args.tiles = run.tiles;
  args.corrections = reinterpret_cast<const int32_t*>(run.row_values);
  call_.tail.Bind(run.inputs, run.row, run.channel,
                  reinterpret_cast<const RowScale*>(run.row_values), &args.tail);
  call_.entries[run.tile](&args);
}

void MicroKernelS8::Enter() const {
  if (amx_) EnterAmx(shapes_);
}

void MicroKernelS8::Leave() const {
  if (amx_) LeaveAmx();
}

std::string MicroKernelS8::layout() const {
  // Other tails than requantizations pack a half vector's constants as a whole one's.
  const bool halves = !amx_ && spec_.tail.requantization && jit::LastIsHalf(spec_, 1);
  std::string text =
      internal::Join("s8 k", spec_.depth.outer, " t", static_cast<int>(format_.type), '.',
                     static_cast<int>(format_.weights_type), " z", format_.weights_zero_point, " g",
                     spec_.group_values(), " q", int{spec_.byte_pairs}, " n", int{spec_.narrow},
                     " s", int{SignedActivations()}, " h", int{halves});
  for (const auto& run : spec_.depth.runs) text += internal::Join('+', run.length);
  if (spec_.byte_pairs) text += PlacesKey(spec_.depth);
  if (centered_) text += " centered";
  for (const auto& group : spec_.again) text += internal::Join(' ', group.offset);
  return spec_.constants_apart ? text + " apart" : text + constants_layout();
}

std::string MicroKernelS8::constants_layout() const {
  return internal::Join(" z", format_.zero_point, tail_.constants_key());
}

}  // namespace fuselite::jit
