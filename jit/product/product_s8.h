// Matrix products of 8-bit integers: the micro-kernel that is emitted for one, and the operators
// that are made of them with constant or run-time weights.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "jit/product/centered_weights.h"
#include "jit/product/gemm_amx_s8_emitter.h"
#include "jit/tail/integer_tail.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/operator.h"
#include "kernels/product/byte_groups.h"
#include "kernels/product/byte_pairs.h"
#include "kernels/product/micro_kernel.h"
#include "kernels/product/product.h"

namespace fuselite::jit {

// sum[row][n] = bias[n] + sum over k of (left[row][k] - zero point) * (w[k][n] - weights' zero
// point), then the tail.
struct ProductFormatS8 {
  DataType type = DataType::kInt8;  // of the activations: int8 or uint8
  DataType weights_type = DataType::kInt8;
  int32_t zero_point = 0, weights_zero_point = 0;
  bool flips = false;           // the activations are int8 in memory and read by dot products
  bool to_the_byte = false;     // ByteSource
  bool byte_pairs = false;      // for GemmS8Spec::byte_pairs
  bool constant_right = false;  // weights and biases are constants
  // The weights are constants, and a product of other rows, in another signature, may have the same
  // ones: pair products of many rows take them narrow (GemmS8Spec::narrow), as those of one row.
  bool shares_panels = false;
  // TermsOfOutliers() of the weights; absent where it is not known. Of byte pairs those that
  // TermsOfBytePairs() gives.
  std::optional<std::vector<int64_t>> outliers{};
  int64_t largest_bias = 0;  // absolute
  kernels::Tail tail;        // of the sums, unless there are `floats`
  // Stands in place of the tail. The activations are uint8 as the code reads them: with dot
  // products their zero point is 1 where rows have their own, else as it is; without, they are
  // int16 and have none.
  std::optional<FloatOutput> floats;
  DataType output = DataType::kInt8;

  // What is taken off the weights as int8.
  int32_t weights_offset() const {
    return weights_zero_point - (weights_type == DataType::kUInt8 ? 128 : 0);
  }
};

// Packed panels hold for each vector of channels the bias, then for each group of the depth its
// weights, then the constants of the tail, or the weights alone (GemmS8Args).
class MicroKernelS8 final : public kernels::MicroKernel {
 public:
  // Fills in problem->rest. kUnsupported where strides do not fit instructions.
  static Result<std::shared_ptr<const kernels::MicroKernel>> Make(ProductFormatS8 format,
                                                                  const kernels::DepthRuns& depth,
                                                                  kernels::ProductProblem* problem,
                                                                  Isa isa);

  std::string types() const override;
  std::string target() const override;
  int lanes() const override { return isa_.lanes(); }
  int max_rows(int vectors) const override;
  double TileCycles(int rows, int vectors) const override;
  int rows_above() const override { return amx_ ? AmxShapes::kRows : 0; }
  int64_t row_bytes() const override {
    return spec_.depth.FreshBytes(spec_.a_step, spec_.split_rows ? 3 : spec_.value_bytes());
  }
  int64_t small_block_bytes() const override { return 32 << 10; }
  size_t panel_bytes(int vectors) const override {
    return static_cast<size_t>(PanelBytes(spec_, vectors));
  }
  void PackPanel(const kernels::RightMatrix& right, const kernels::PanelChannels& panel,
                 std::byte* to) const override;
  std::string layout() const override;
  // A single row's: unrolled recurrent networks multiply one row after the other by the same
  // weights, each with a scale and zero point of its own.
  size_t constants_bytes(int vectors) const override {
    return static_cast<size_t>(ConstantsBytes(spec_, vectors));
  }
  void PackChannelConstants(const kernels::RightMatrix& right, const kernels::PanelChannels& panel,
                            std::byte* to) const override;
  std::string constants_layout() const override;
  bool needs_row_values() const override { return spec_.corrects; }
  // Dot products take 48 bytes of weights a cycle from the three vectors of such a panel (16 on
  // AVX-VNNI), which is more than memory gives. Pair products share what
  // ProductFormatS8::shares_panels says.
  const kernels::MicroKernel* many_rows() const override;
  bool goes_across() const override { return !amx_ && !spec_.byte_pairs; }
  // What the weights' zero point adds to every sum of the row.
  void RowValues(const std::byte* left, int64_t step, int64_t count,
                 int32_t* values) const override;
  Result<std::shared_ptr<const kernels::MicroKernel>> Emit(std::span<const kernels::Tile> tiles,
                                                           const kernels::TileCalls& calls,
                                                           const std::string& name) const override;
  void Run(const kernels::TileRun& run) const override;
  void Enter() const override;
  void Leave() const override;

 private:
  explicit MicroKernelS8(Isa isa) : isa_(isa) {}
  // The faster one of those with AMX's tiles and without, where `isa` has them: neither then
  // centers its weights.
  static Result<std::shared_ptr<MicroKernelS8>> MakeOn(Isa isa, ProductFormatS8 format,
                                                       const kernels::DepthRuns& depth,
                                                       kernels::ProductProblem* problem);
  // This product with AMX; null where it has none.
  std::shared_ptr<MicroKernelS8> WithAmx() const;
  void PlanTail(const kernels::ProductProblem& problem);
  // Has weights packed as int8 without their zero point, and steps for their outliers, where that
  // repays: for byte pairs always. `reads_narrow`: pair products read int8 weights narrow.
  // `most_again`: groups of outliers beyond which the code of their steps would be too long.
  void CenterWeights(int64_t group_channels, bool reads_narrow, int64_t most_again);
  bool RepaysCentering(int64_t again, int64_t group_channels) const;
  // Whether what is packed fits int8 without a zero point.
  bool HasInt8Weights() const {
    return centered_ || (format_.weights_type == DataType::kInt8 && WeightsOffset() == 0);
  }
  // Has blocks of rows flipped before their panels pass, where that takes less than flipping each
  // group of bytes in every panel.
  void FlipBlocks(kernels::ProductProblem* problem);
  // Has blocks of rows split into the forms of byte pairs, where they are runs of whole groups.
  void SplitBlocks(kernels::ProductProblem* problem);
  // Has the tiles read formed rows.
  void TakeFormedRows(const kernels::ProductProblem& problem);
  // Whether groups of the depth are four bytes.
  bool TakesQuads() const { return isa_.dot || spec_.byte_pairs; }
  Status EmitOwn(std::span<const kernels::Tile> tiles, const std::string& name);
  // Whether int8 activations are multiplied as they are, not as uint8, 128 larger.
  bool SignedActivations() const { return amx_ && spec_.flips; }
  // The weights' zero point as the dot product's operand has it.
  int32_t WeightsOffset() const { return centered_ ? 0 : format_.weights_offset(); }
  // Whether the last vector of a panel is one (see gemm_s8_emitter.h).
  bool LastIsHalf(const kernels::PanelChannels& panel) const;
  // Lanes hold neighbouring columns of a panel in fours: the first one of each four of vector `v`,
  // relative to the panel's, and beyond its last. `quads`: as many as the vector has.
  void LaneQuads(const kernels::PanelChannels& panel, int v, std::span<int64_t> quads) const;
  // The channels in the lanes of such a vector, negative beyond the panel's.
  static void LaneChannels(const kernels::PanelChannels& panel, std::span<const int64_t> quads,
                           std::span<int64_t> channels);
  Centering WeightCentering() const;
  // How the weights lie in their groups.
  kernels::ByteGroups WeightGroups() const;
  // Where in a panel, or in two, its parts are packed; null: not now.
  struct PanelParts {
    std::byte *biases = nullptr, *weights = nullptr, *constants = nullptr;
  };
  void PackParts(const kernels::RightMatrix& right, const kernels::PanelChannels& panel,
                 const PanelParts& to) const;
  // Brings a panel's groups in the order of byte pairs; all else of it is packed.
  void OrderGroups(const kernels::ByteQuads& quads, std::byte* panel) const;
  // Where a row has the values of each group of the depth, in bytes.
  std::vector<int32_t> GroupPlaces() const;
  void PackQuads(const kernels::RightMatrix& right, const kernels::PanelChannels& panel,
                 const PanelParts& to) const;
  // PackRowQuads or PackColumnQuads of the whole depth.
  void PackQuadWeights(const kernels::RightMatrix& right, const kernels::PanelChannels& panel,
                       std::span<const int64_t> places, std::byte* to, int32_t* sums) const;
  void PackWeights(std::span<const uint8_t*> rows, std::span<const int64_t> channels, int64_t step,
                   std::byte* to) const;
  // Packs the weights of the groups that are multiplied again, behind the others' weights.
  void PackExcess(const CenteredRows& rows, std::span<const int64_t> channels, int64_t step,
                  std::byte* to) const;
  int64_t ExcessSum(const CenteredRows& rows, size_t row) const;
  void PackTail(const int32_t* sums, std::span<const int64_t> channels,
                const kernels::PanelChannels& panel, int v, const int32_t* bias,
                const PanelParts& to) const;

  // All that Run reads, in one or two cache lines: the weights that pass between two runs leave
  // little else in L1.
  struct Call {
    std::array<GemmS8Function*, 4> entries{};
    SumTailBinding tail;
  };
  Call call_;

  ProductFormatS8 format_;
  VectorIsa isa_;
  GemmS8Spec spec_;
  IntegerTail tail_;
  bool centered_ = false;  // CenterWeights
  bool shares_ = false;    // ProductFormatS8::shares_panels, of weights that are worth it
  bool amx_ = false;
  AmxShapes shapes_;
  std::shared_ptr<const MicroKernelS8> amx_twin_;  // of a kernel without, where there is one
  int64_t groups_ = 0;                             // of the depth, without those taken again
  int64_t depth_ = 0;
  SharedCode code_;
};

// CONV_2D, DEPTHWISE_CONV_2D of one channel, FULLY_CONNECTED and TRANSPOSE_CONV of int8 or uint8
// with constant weights of the same type; BATCH_MATMUL of int8. To the bit of the reference.
Result<kernels::KernelPlan> PlanProductS8(const kernels::OpDescription&,
                                          const kernels::PlanContext&);

// The terms that such a product multiplies twice, few or none, where byte pairs compute it
// (GemmS8Spec::byte_pairs): without dot products, by constant weights that are small enough as a
// rule, if it is large enough. Else absent.
std::optional<std::vector<int64_t>> TermsOfBytePairs(const kernels::OpDescription& op,
                                                     const kernels::ProductDescription& d, Isa isa);

// Whether the operands are what products take: 8-bit activations, constant weights of the same
// type, an int32 bias or none.
Status CheckInt8Operands(const kernels::OpDescription& op);

// The largest magnitude in a bias of int32; 0 of an absent one, and of one that comes with each run
// what floats are found for (SumBounds).
int64_t LargestBias(const TensorInfo& bias);

}  // namespace fuselite::jit
