#include "jit/attention/attention.h"

#include <algorithm>
#include <memory>

#include "jit/product/bf16.h"
#include "jit/product/float_operands.h"
#include "jit/product/product_bf16.h"
#include "kernels/attention/attention_kernel.h"
#include "kernels/product/product.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::jit {
namespace {

using kernels::AttentionBlock;
using kernels::AttentionShape;
using kernels::GemmSource;
using kernels::Product;

constexpr int64_t kFloat = sizeof(float), kBf16 = sizeof(uint16_t);
// Half of the rows of one of AMX's tiles.
constexpr int64_t kFewestQueries = 8;
// Masks may hide most of more keys than so many times the queries: those of a cache. All keys and
// values are rounded and multiplied here, where float32 takes those that are seen: 64 queries of a
// Llama over 256 positions took 1.08 of the time.
constexpr int64_t kMostHidden = 2;

// Rows of `depth` floats, `pitch` from one to the next, times as many columns.
struct Sizes {
  int64_t rows, pitch, depth, columns, out_pitch;
};

Result<Product> PlanProduct(const Sizes& s, Isa isa) {
  kernels::ProductProblem problem;
  problem.name = "attention";
  problem.grid.line_rows = s.rows;
  problem.left.row = s.pitch * kFloat;
  problem.out.row = 1;
  problem.out_row_bytes = s.out_pitch * kFloat;
  problem.out_value_bytes = kFloat;
  problem.channels = s.columns;
  problem.FormLeft(RoundRowsToBf16, s.depth * kFloat, FormedRowBytes(s.depth * kBf16));
  FUSELITE_ASSIGN_OR_RETURN(
      auto micro_kernel,
      MicroKernelBf16::Make({.runs = {{0, s.depth}}}, problem, kernels::Tail(), isa));
  return Product::Plan(std::move(problem), std::move(micro_kernel), 1);
}

// Blocks of a head's queries that have the same rows, 32 at most.
int64_t BlockRows(int64_t queries) {
  return CeilDiv(queries, CeilDiv(queries, AttentionBlock::kMaxRows));
}

class RoundedProducts final : public kernels::AttentionProducts {
 public:
  static Result<RoundedProducts> Plan(const AttentionShape& shape, Isa isa) {
    const int64_t rows = BlockRows(shape.queries), pitch = kernels::ScorePitch(shape.keys);
    FUSELITE_ASSIGN_OR_RETURN(Product scores, PlanProduct({.rows = rows,
                                                           .pitch = shape.q.row,
                                                           .depth = shape.depth,
                                                           .columns = shape.keys,
                                                           .out_pitch = pitch},
                                                          isa));
    FUSELITE_ASSIGN_OR_RETURN(Product means, PlanProduct({.rows = rows,
                                                          .pitch = pitch,
                                                          .depth = shape.keys,
                                                          .columns = shape.values,
                                                          .out_pitch = shape.values},
                                                         isa));
    return RoundedProducts(shape, std::move(scores), std::move(means));
  }
  Result<std::shared_ptr<const AttentionProducts>> Build() const {
    auto built = std::make_shared<RoundedProducts>(*this);
    FUSELITE_ASSIGN_OR_RETURN(built->scores_, scores_.Build());
    FUSELITE_ASSIGN_OR_RETURN(built->means_, means_.Build());
    return std::shared_ptr<const AttentionProducts>(std::move(built));
  }

  std::string name() const override { return scores_.name(); }
  int64_t block_rows() const override { return scores_.problem().grid.line_rows; }
  bool repeats_rows() const override { return true; }
  int64_t score_pitch(int64_t /*keys*/) const override { return kernels::ScorePitch(shape_.keys); }
  size_t scratch_bytes() const override {
    return std::max(scores_.scratch_bytes(), means_.scratch_bytes());
  }

  int64_t key_panels() const override { return scores_.panels(); }
  int64_t value_panels() const override { return means_.panels(); }
  size_t key_bytes() const override { return AlignUp(scores_.packed_bytes()); }
  size_t value_bytes() const override { return AlignUp(means_.packed_bytes()); }
  void PackKeys(const GemmSource& keys, float /*factor*/, int64_t panel,
                std::byte* packed) const override {
    if (panel * scores_.panel_lanes() < keys.columns) Pack(scores_, keys, panel, packed);
  }
  void PackValues(const GemmSource& values, int64_t panel, std::byte* packed) const override {
    Pack(means_, values, panel, packed);
  }

  void Score(const float* queries, int64_t /*pitch*/, const AttentionBlock& block,
             const std::byte* keys, std::byte* scratch) const override {
    const int64_t panels = CeilDiv(block.keys, scores_.panel_lanes());
    const bool one_block = scores_.units() == scores_.panels();
    Run(scores_, queries, keys, one_block ? panels : scores_.units(), scratch, block.scores);
  }
  // Keys that are not seen have a weight of zero.
  void Mean(const AttentionBlock& block, const std::byte* values, std::byte* scratch,
            float* means) const override {
    for (int64_t r = 0; r < block.rows; ++r) {
      float* const weights = block.scores + r * block.pitch;
      std::fill(weights + block.keys, weights + shape_.keys, 0.0f);
    }
    Run(means_, block.scores, values, means_.units(), scratch, means);
  }

 private:
  RoundedProducts(const AttentionShape& shape, Product scores, Product means)
      : shape_(shape), scores_(std::move(scores)), means_(std::move(means)) {}

  static void Pack(const Product& product, const GemmSource& right, int64_t panel,
                   std::byte* packed) {
    product.Pack({.values = right.base, .k_step = right.k_stride, .n_step = right.n_stride}, packed,
                 panel, panel + 1);
  }
  static void Run(const Product& product, const float* left, const std::byte* panels, int64_t units,
                  std::byte* scratch, float* out) {
    void* outputs[] = {out};
    const KernelArgs args{
        .inputs = nullptr, .outputs = outputs, .scratch = scratch, .shared = nullptr};
    product.Run({.args = args, .left = reinterpret_cast<const std::byte*>(left), .panels = panels},
                0, units);
  }

  AttentionShape shape_;
  Product scores_, means_;
};

// Scores that are scaled once differ from those of scaled queries and keys by less than their
// rounding to bfloat16.
kernels::OpDescription ScaledOnce(kernels::OpDescription op) {
  op.params.as<kernels::AttentionParams>().by_roots = false;
  return op;
}

}  // namespace

Result<kernels::KernelPlan> PlanAttentionBf16(const kernels::OpDescription& op,
                                              const kernels::PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckBf16(context));
  FUSELITE_ASSIGN_OR_RETURN(const AttentionShape shape, kernels::ResolveAttention(op));
  if (shape.bytes) return Unsupported("caches of bytes are not rounded to bfloat16");
  if (shape.mask_count > 0 && shape.keys > kMostHidden * shape.queries) {
    return Unsupported("caches are read in float32, as far as they are filled");
  }
  if (shape.queries < kFewestQueries) {
    return Unsupported(shape.queries, " queries do not repay packing keys and values");
  }
  FUSELITE_ASSIGN_OR_RETURN(const RoundedProducts products,
                            RoundedProducts::Plan(shape, context.isa));
  FUSELITE_ASSIGN_OR_RETURN(auto draft,
                            MakeAttentionKernel(ScaledOnce(op), context.isa,
                                                std::make_shared<RoundedProducts>(products)));
  return kernels::KernelPlan::MadeLater(
      std::move(draft),
      [products](const kernels::OpDescription& described,
                 const kernels::BuildContext& build) -> Result<std::unique_ptr<Kernel>> {
        FUSELITE_ASSIGN_OR_RETURN(auto built, products.Build());
        return MakeAttentionKernel(ScaledOnce(described), build.isa, std::move(built));
      });
}

}  // namespace fuselite::jit
