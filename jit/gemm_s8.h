// Products of matrices of 8-bit integers over lines of rows: how they are tiled, packed, split into
// units and run. The common part of quantized convolutions and fully connected layers.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "jit/gemm.h"
#include "jit/gemm_s8_emitter.h"
#include "jit/integer_tail.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/operator.h"

namespace fuselite::jit {

// sum[row][n] = bias[n] + sum over k of (a[row][k] - zero point) * (w[k][n] - weights' zero point),
// then the tail. Rows come in lines as in GemmProblem; `a` is as the kernel reads it.
struct GemmS8Problem {
  DepthRuns depth;  // in values
  int64_t a_step = 0;
  int64_t out_pitch = 0;  // elements from an output row to the next
  // Likewise for lines and images; 0: the lines follow each other. Where they do not, there must be
  // no tail behind the requantization.
  int64_t out_line_pitch = 0, out_image_pitch = 0;
  int64_t line_rows = 0;
  int64_t lines_per_image = 1, images = 1;
  int64_t line_step = 0, image_step = 0;  // of `a`, bytes
  int64_t channels = 0;
  // Each with its share of the channels, in order, and values of its own: those of the next are
  // `group_step` bytes further in every row of `a`.
  int64_t groups = 1, group_step = 0;
  DataType type = DataType::kInt8;  // of the activations: int8 or uint8
  DataType weights_type = DataType::kInt8;
  int32_t zero_point = 0, weights_zero_point = 0;
  bool flips = false;        // the activations are int8 in memory and read by dot products
  int64_t largest_bias = 0;  // absolute
  kernels::QuantizedTail tail;
  // Instead of the quantized tail, of which only `output` counts. The activations are uint8 as the
  // code reads them: with dot products their zero point is 1 where rows have their own, else as it
  // is; without, they are int16 and have none.
  std::optional<FloatOutput> floats;
  std::string name;  // "conv"

  int64_t lines() const { return lines_per_image * images; }
  int64_t rows() const { return lines() * line_rows; }
  int64_t group_channels() const { return channels / groups; }
};

// The weights of one product: w[k][n] at values[k * k_step + n * n_step].
struct S8Weights {
  const std::byte* values = nullptr;
  int64_t k_step = 1, n_step = 0;
  const int32_t* bias = nullptr;  // null: zeros
};

// What one product is computed from. `a` and `out` are at row 0, which is row `first_row` of the
// output in the eyes of the tail.
struct S8Product {
  const KernelArgs& args;
  const std::byte* a;
  const std::byte* packed;
  const int32_t* corrections;  // null unless GemmS8::corrects()
  std::byte* out;
  int64_t first_row = 0;
  const RowScale* scales = nullptr;  // of float outputs: for each row, or else for each image
};

class GemmS8 {
 public:
  // Emits the code unless `context.judging`.
  static Result<GemmS8> Build(GemmS8Problem problem, const kernels::BuildContext& context);

  int64_t panels() const { return tiling_.panels * problem_.groups; }
  // Writes panels [begin, end) behind `packed`, panel 0's place.
  void Pack(const S8Weights& weights, std::byte* packed, int64_t begin, int64_t end) const;
  size_t packed_bytes() const { return panel_bytes_ * panels(); }
  // What decides the packed bytes, for PackRequest::layout.
  std::string layout() const;

  int64_t units() const { return blocks_ * panels(); }
  int64_t grain() const;
  std::string name() const;  // "conv int8 6x64 avx512vnni jit"
  // For sums that are stored before the tail.
  size_t scratch_bytes() const;

  // Whether rows need CorrectRows: dot products with weights that have a zero point (of uint8,
  // other than 128).
  bool corrects() const { return spec_.corrects; }
  // Writes for rows [begin, end) what the weights' zero point adds to every sum. `a` is at row 0.
  // Where there are groups, each one's rows follow those of the group before.
  void CorrectRows(const std::byte* a, int32_t* corrections, int64_t begin, int64_t end) const;

  // Whether outputs depend on their rows' place: by a residual, or stages that are not emitted.
  bool has_rest() const { return tail_.apply_rest != nullptr || spec_.residual; }

  // Computes units [begin, end).
  void Run(const S8Product& product, int64_t begin, int64_t end) const;
  // The same of float outputs, from the image at args.shared to the first output.
  void RunHybrid(const KernelArgs& args, const std::byte* packed, const RowScale* scales,
                 int64_t begin, int64_t end) const {
    Run({.args = args,
         .a = args.shared,
         .packed = packed,
         .corrections = nullptr,
         .out = static_cast<std::byte*>(args.outputs[0]),
         .scales = scales},
        begin, end);
  }

 private:
  Status Plan(const kernels::BuildContext& context);
  void PlanTail(const kernels::BuildContext& context);
  void ChooseBlocks(int threads);
  int64_t panel_channels() const { return int64_t{tiling_.vectors} * isa_.lanes(); }
  // Panels are those of the first group, then of the next.
  int64_t GroupOf(int64_t panel) const { return panel / tiling_.panels; }
  bool IsLast(int64_t panel) const { return panel % tiling_.panels == tiling_.panels - 1; }
  int64_t FirstChannel(int64_t panel) const {
    return GroupOf(panel) * problem_.group_channels() + panel % tiling_.panels * panel_channels();
  }
  int64_t LastChannel(int64_t panel) const {
    return std::min(FirstChannel(panel) + panel_channels(),
                    (GroupOf(panel) + 1) * problem_.group_channels());
  }
  // The channel in each lane of vector `v` of a panel of `vectors`, negative beyond the channels.
  std::vector<int64_t> LaneChannels(int64_t panel, int v) const;
  int PanelVectors(int64_t panel) const {
    return IsLast(panel) ? tiling_.last_vectors : tiling_.vectors;
  }
  GemmS8Tile Tile(int rows, bool last_panel) const;
  void PackPanel(const S8Weights& weights, std::byte* to, int64_t panel) const;
  void PackVector(const S8Weights& weights, std::span<const int64_t> channels, int64_t step,
                  std::byte* to, int64_t* sums) const;
  int64_t LineOffset(int64_t line) const;
  int64_t OutOffset(int64_t line) const;  // elements
  const RowScale* ScalesOf(const S8Product& product, int64_t row) const;
  void RunBlock(const S8Product& product, int64_t tile, int64_t last, int64_t panel) const;
  void RunTiles(const S8Product& product, int64_t line, int64_t first_tile, int64_t tiles,
                int64_t panel) const;

  GemmS8Problem problem_;
  VectorIsa isa_{Isa::kAvx2};
  GemmS8Spec spec_;
  GemmTiling tiling_;
  int64_t block_tiles_ = 1, blocks_ = 1;
  size_t panel_bytes_ = 0;
  int64_t out_bytes_ = 1;  // of an element
  IntegerTail tail_;
  SharedCode code_;
};

}  // namespace fuselite::jit
