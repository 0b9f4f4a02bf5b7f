#include "kernels/sparse.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

// A sparse constant, stored level by level as the layout says.
class Encoder {
 public:
  Encoder(const Shape& shape, const std::vector<float>& dense, SparseLayout layout)
      : shape_(shape), dense_(dense), layout_(std::move(layout)), index_(layout_.levels.size()) {
    for (int32_t dim : shape.dims()) sizes_.push_back(dim);
    for (size_t k = 0; k < layout_.block_map.size(); ++k) {
      const int level = LevelOf(shape.rank() + static_cast<int>(k));
      sizes_.push_back(layout_.levels[level].dense_size);
      sizes_[layout_.block_map[k]] /= layout_.levels[level].dense_size;
    }
    for (size_t i = 0; i < layout_.levels.size(); ++i) {
      SparseLevel& level = layout_.levels[i];
      if (level.compressed) {
        level.segments.push_back(0);
      } else {
        level.dense_size = sizes_[layout_.traversal_order[i]];
      }
    }
    Store(0);
  }
  const SparseLayout& layout() const { return layout_; }
  const std::vector<float>& values() const { return values_; }

 private:
  int LevelOf(int dimension) const {
    return static_cast<int>(std::ranges::find(layout_.traversal_order, dimension) -
                            layout_.traversal_order.begin());
  }

  float Element() const {
    std::vector<int> index(index_.begin(), index_.begin() + shape_.rank());
    for (size_t k = 0; k < layout_.block_map.size(); ++k) {
      int& outer = index[layout_.block_map[k]];
      outer = outer * sizes_[shape_.rank() + k] + index_[shape_.rank() + k];
    }
    int64_t at = 0;
    for (int d = 0; d < shape_.rank(); ++d) at = at * shape_[d] + index[d];
    return dense_[at];
  }

  bool IsEmpty(size_t level) {
    if (level == layout_.levels.size()) return Element() == 0;
    const int dimension = layout_.traversal_order[level];
    for (int i = 0; i < sizes_[dimension]; ++i) {
      index_[dimension] = i;
      if (!IsEmpty(level + 1)) return false;
    }
    return true;
  }

  void Store(size_t level) {
    if (level == layout_.levels.size()) return values_.push_back(Element());
    const int dimension = layout_.traversal_order[level];
    for (int i = 0; i < sizes_[dimension]; ++i) {
      index_[dimension] = i;
      if (layout_.levels[level].compressed) {
        if (IsEmpty(level + 1)) continue;
        layout_.levels[level].indices.push_back(i);
        index_[dimension] = i;
      }
      Store(level + 1);
    }
    if (layout_.levels[level].compressed) {
      layout_.levels[level].segments.push_back(
          static_cast<int32_t>(layout_.levels[level].indices.size()));
    }
  }

  const Shape shape_;
  const std::vector<float>& dense_;
  SparseLayout layout_;
  std::vector<int> sizes_, index_;  // of dimensions, those of blocks behind the tensor's own
  std::vector<float> values_;
};

std::vector<float> RandomDense(Random& random, const Shape& shape) {
  std::vector<float> dense(shape.elements());
  for (float& value : dense) value = random.Chance(0.3) ? random.Float(1, 2) : 0;
  return dense;
}

// The tensor's dimensions and those of blocks in any order, the blocks' own stored dense.
SparseLayout RandomLayout(Random& random, const Shape& shape) {
  SparseLayout layout;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] % 2 == 0 && random.Chance(0.4)) layout.block_map.push_back(d);
  }
  const int count = shape.rank() + static_cast<int>(layout.block_map.size());
  for (int i = 0; i < count; ++i) layout.traversal_order.push_back(i);
  for (int i = count - 1; i > 0; --i) {
    std::swap(layout.traversal_order[i], layout.traversal_order[random.Int(0, i)]);
  }
  for (int dimension : layout.traversal_order) {
    const bool block = dimension >= shape.rank();
    layout.levels.push_back(
        {.compressed = !block && random.Chance(0.6), .dense_size = block ? 2 : 0});
  }
  return layout;
}

Result<PackedWeights> UnpackFloats(const SparseLayout& layout, const Shape& shape,
                                   const std::vector<float>& values) {
  const auto store = NewPackedStore();
  return Unpack(layout, {.type = DataType::kFloat32, .shape = shape},
                std::as_bytes(std::span(values)), *store);
}

TEST(SparseTest, UnpacksEveryLayout) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    Shape shape;
    for (int64_t d = random.Int(1, 4); d > 0; --d) {
      shape.push_back(static_cast<int32_t>(random.Int(1, 6)));
    }
    const std::vector<float> dense = RandomDense(random, shape);
    const Encoder encoded(shape, dense, RandomLayout(random, shape));
    const auto unpacked = UnpackFloats(encoded.layout(), shape, encoded.values());
    ASSERT_TRUE(unpacked.ok()) << unpacked.status().ToString();
    const auto* values = (*unpacked)->as<float>();
    EXPECT_EQ(std::vector<float>(values, values + dense.size()), dense);
  }
}

TEST(SparseTest, BelievesNothing) {
  const Shape shape{2, 4};
  const SparseLayout good{{0, 1}, {}, {{false, 2}, {true, 0, {0, 1, 2}, {3, 0}}}};
  const std::vector<float> values = {5, 6};
  ASSERT_TRUE(UnpackFloats(good, shape, values).ok());
  const auto code = [&](const std::function<void(SparseLayout&)>& spoil,
                        const std::vector<float>& stored) {
    SparseLayout layout = good;
    spoil(layout);
    return UnpackFloats(layout, shape, stored).status().code();
  };
  constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;
  EXPECT_EQ(code([](SparseLayout& l) { l.levels[1].indices = {4, 0}; }, values), kInvalid);
  EXPECT_EQ(code([](SparseLayout& l) { l.levels[1].indices = {-1, 0}; }, values), kInvalid);
  EXPECT_EQ(code([](SparseLayout& l) { l.levels[1].segments = {0, 2, 1}; }, values), kInvalid);
  EXPECT_EQ(code([](SparseLayout& l) { l.levels[1].segments = {0, 1}; }, values), kInvalid);
  EXPECT_EQ(code([](SparseLayout& l) { l.levels[1].segments = {0, 1, 9}; }, values), kInvalid);
  EXPECT_EQ(code([](SparseLayout& l) { l.levels[0].dense_size = 3; }, values), kInvalid);
  EXPECT_EQ(code([](SparseLayout& l) { l.traversal_order = {0, 0}; }, values), kInvalid);
  EXPECT_EQ(code([](SparseLayout& l) { l.block_map = {1}; }, values), kInvalid);
  EXPECT_EQ(code([](SparseLayout& l) { l.levels.pop_back(); }, values), kInvalid);
  EXPECT_EQ(code([](SparseLayout&) {}, {5}), kInvalid);
}

TEST(SparseTest, TakesNoMoreThanItIsWorth) {
  constexpr StatusCode kInvalid = StatusCode::kInvalidArgument;
  const auto code = [](const SparseLayout& layout, const Shape& shape) {
    return UnpackFloats(layout, shape, {5}).status().code();
  };
  // One value: a megabyte and 256 times the 16 bytes that say so, and not a gigabyte.
  const SparseLayout one{{0, 1}, {}, {{false, 1}, {true, 0, {0, 1}, {3}}}};
  EXPECT_EQ(code(one, {1, (1 << 18) + 1024}), StatusCode::kOk);
  EXPECT_EQ(code(one, {1, (1 << 18) + 1025}), kInvalid);
  EXPECT_EQ(code(one, {1, 1 << 28}), kInvalid);
  // Blocks of one element inside of one another.
  SparseLayout nested{{0, 1}, {0, 0, 0}, {{false, 1}, {false, 4}, {false, 1}, {false, 1}}};
  nested.traversal_order = {0, 1, 2, 3, 4};
  nested.levels.push_back({false, 1});
  EXPECT_EQ(code(nested, {1, 4}), kInvalid);
  // No value, and as many rows as there are atoms to look for them in.
  const SparseLayout none{{0, 1, 2}, {}, {{false, 1 << 30}, {false, 1 << 30}, {false, 0}}};
  EXPECT_EQ(code(none, {1 << 30, 1 << 30, 0}), StatusCode::kOk);
}

}  // namespace
}  // namespace fuselite::kernels::testing
