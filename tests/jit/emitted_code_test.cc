// How much code there is of a function: what tiles and layers have alike is emitted once.
#include <vector>

#include "gtest/gtest.h"
#include "jit/depthwise/depthwise_s8_emitter.h"
#include "jit/product/gemm_s8_emitter.h"

namespace fuselite::jit {
namespace {

GemmS8Spec Product(int64_t depth) {
  GemmS8Spec spec;
  spec.depth.runs = {{0, depth}};
  spec.a_step = depth;
  spec.out_step = 64;
  spec.tail.requantization.emplace();
  return spec;
}

SharedCode Emit(const GemmS8Spec& spec, const std::vector<Tile>& tiles) {
  Result<SharedCode> code = EmitGemmS8(spec, tiles, "product");
  EXPECT_TRUE(code.ok()) << code.status().ToString();
  return *code;
}

TEST(EmittedCodeTest, EqualTilesAreOneFunction) {
  const GemmS8Spec spec = Product(64);
  const Tile whole{4, 2, 8}, last{4, 1, 8}, rest{1, 2, 8};
  const SharedCode code = Emit(spec, {whole, whole, rest, rest, last});
  EXPECT_EQ(code->entry<GemmS8Function>(0), code->entry<GemmS8Function>(1));
  EXPECT_EQ(code->entry<GemmS8Function>(2), code->entry<GemmS8Function>(3));
  EXPECT_NE(code->entry<GemmS8Function>(0), code->entry<GemmS8Function>(2));
  EXPECT_NE(code->entry<GemmS8Function>(0), code->entry<GemmS8Function>(4));
  EXPECT_EQ(code->bytes().size(), Emit(spec, {whole, rest, last})->bytes().size());
}

// What rarely used forms take, more than half of a short product, is emitted for the longest alone.
TEST(EmittedCodeTest, TilesShareWhatIsRarelyUsed) {
  const GemmS8Spec spec = Product(4);
  const Tile tile{4, 2, 8}, shorter{3, 2, 8}, narrower{4, 1, 8};
  const size_t alone = Emit(spec, {tile})->bytes().size();
  EXPECT_LT(Emit(spec, {tile, shorter})->bytes().size(), alone * 3 / 2);
  EXPECT_LT(Emit(spec, {tile, narrower})->bytes().size(), alone * 3 / 2);
}

TEST(EmittedCodeTest, LongDepthsAreLoops) {
  const std::vector<Tile> tiles = {{4, 2, 8}};
  const size_t twice = Emit(Product(256), tiles)->bytes().size();
  EXPECT_EQ(Emit(Product(512), tiles)->bytes().size(), twice);
}

// Three rows of a window with three runs of four steps, of eight multiplications each.
TEST(EmittedCodeTest, WindowsOfManyMultiplicationsAreLoops) {
  const auto bytes = [](int64_t rows) {
    GemmS8Spec spec = Product(8);
    spec.depth.runs = {{0, 8}, {32, 8}, {64, 8}};
    spec.depth.outer = rows;
    spec.depth.outer_step = 1000;
    return Emit(spec, {{4, 2, 8}})->bytes().size();
  };
  EXPECT_LT(bytes(3), bytes(1) * 3 / 2);
}

// A row of 8 tiles: the first and the last one have a column outside of the image.
TEST(EmittedCodeTest, TilesAtBordersShareTheirTail) {
  const auto bytes = [](int32_t before) {
    DepthwiseS8Spec spec;
    const kernels::WindowAxis y{.input = 9, .filter = 3, .output = 7};
    spec.window = {.y = y, .x = y};
    spec.window.x.before = before;
    spec.window.x.output = 24;
    spec.window.x.input = 24 + 2 - 2 * before;
    spec.pixel_bytes = spec.out_pixel_bytes = 32;
    spec.tail.requantization.emplace();
    const Result<SharedCode> code = EmitDepthwiseS8(spec, SplitChannels(spec, 32), "depthwise");
    EXPECT_TRUE(code.ok()) << code.status().ToString();
    return (*code)->bytes().size();
  };
  EXPECT_GT(bytes(1), bytes(0));
  EXPECT_LT(bytes(1), bytes(0) * 5 / 2);
}

}  // namespace
}  // namespace fuselite::jit
