// Tilings of products that are never computed: what covers the matrix, and who gets a part of it.
#include <gtest/gtest.h>

#include "kernels/product/tiling.h"
#include "tests/kernels/random.h"

namespace fuselite::kernels {
namespace {

using testing::Random;

// Tiles of up to 28 registers; panels of floats for `depth` terms.
class Registers final : public MicroKernel {
 public:
  Registers(int lanes, int64_t depth) : lanes_(lanes), depth_(depth) {}

  std::string types() const override { return "f32"; }
  std::string target() const override { return "paper"; }
  int lanes() const override { return lanes_; }
  int max_rows(int vectors) const override { return std::min(8, 28 / (vectors + 1)); }
  double TileCycles(int rows, int vectors) const override {
    return static_cast<double>(depth_) * std::max(rows * vectors / 2.0, 4.0) + 20;
  }
  int64_t row_bytes() const override { return depth_ * 4; }
  int64_t small_block_bytes() const override { return 32 << 10; }
  size_t panel_bytes(int vectors) const override {
    return static_cast<size_t>(4 * lanes_ * vectors * (depth_ + 1));
  }
  void PackPanel(const RightMatrix&, const PanelChannels&, std::byte*) const override {}
  std::string layout() const override { return {}; }
  Result<std::shared_ptr<const MicroKernel>> Emit(std::span<const Tile>, const TileCalls&,
                                                  const std::string&) const override {
    return Unsupported("paper has no code");
  }
  void Run(const TileRun&) const override {}

 private:
  int lanes_;
  int64_t depth_;
};

TEST(TilingTest, CoversEveryRowAndColumnOnce) {
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const Registers kernel(1 << random.Int(2, 4), random.Int(1, 2000));
    const int64_t rows = random.Int(1, 40), columns = random.Int(1, 400);
    const int threads = static_cast<int>(random.Int(1, 8));
    const Tiling t = ChooseTiling(kernel, rows, columns, 1, threads);
    SCOPED_TRACE(::testing::Message() << "case " << i << ": " << rows << " x " << columns);
    EXPECT_EQ((t.tiles_per_line - (t.last_rows > 0)) * t.rows + t.last_rows, rows);
    const int64_t vectors = (t.panels - 1) * t.vectors + t.last_vectors;
    EXPECT_EQ((vectors - 1) * kernel.lanes() + t.last_lanes, columns);
    EXPECT_LE(t.rows, kernel.max_rows(t.vectors));
    EXPECT_TRUE(t.last_lanes >= 1 && t.last_lanes <= kernel.lanes());
    EXPECT_TRUE(t.last_vectors >= 1 && t.last_vectors <= t.vectors);
  }
}

// One row by 128 channels is one panel, whose weights one core would wait for.
TEST(TilingTest, DividesASingleTileOfMuchWeightAmongThreads) {
  const Registers heavy(16, 640), light(16, 128);
  EXPECT_EQ(ChooseTiling(heavy, 1, 128).panels, 1);
  EXPECT_EQ(ChooseTiling(heavy, 1, 128, 1, 2).panels, 2);
  EXPECT_EQ(ChooseTiling(heavy, 1, 128, 1, 4).panels, 4);
  EXPECT_EQ(ChooseTiling(light, 1, 128, 1, 2).panels, 1) << "half a microsecond";
  EXPECT_EQ(ChooseTiling(heavy, 1, 16, 1, 4).panels, 1) << "a vector has no parts";
  const Tiling many = ChooseTiling(heavy, 64, 128, 1, 2), alone = ChooseTiling(heavy, 64, 128);
  EXPECT_EQ(many.vectors, alone.vectors) << "rows are shared, not panels";
}

}  // namespace
}  // namespace fuselite::kernels
