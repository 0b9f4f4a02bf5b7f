#include "tests/fuzz/fitting_operands.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

namespace fuselite::fuzz {
namespace {

// What an operand is beside the tensor that an operator works on, whose shape is `first`.
enum class Role {
  kFirst,         // that tensor
  kLike,          // of its type and shape
  kElement,       // one element of its type
  kFiveElements,  // of its type
  kRowElements,   // of its type, one for each row
  kRow,           // of its type, as long as its last dimension
  kDiagonal,      // of its type, without its last dimension
  kBoxes,         // of its type, four corners for each row
  kVolume,        // of its type, a filter over three dimensions
  kThreshold,     // one float
  kAxis,          // one dimension
  kAxes,          // some dimensions, perhaps twice the same
  kPermutation,
  kShape,
  kSameSize,  // a shape of as many elements
  kWider,     // a shape that it can be broadcast to
  kFactors,   // small numbers, one for each dimension
  kStarts,    // a place in it
  kSizes,     // how many elements from some place on; -1: all
  kStrides,
  kPaddings,  // before and behind each dimension
  kPair,      // sizes of images
  kBlocks,
  kPairPaddings,
  kIndices,     // rows of its first dimension
  kPlaces,      // five places along its first dimension
  kRowNumbers,  // for each row a number, which never falls
  kRowIndices,  // for each row its own number
  kParts,       // numbers that add up to its first dimension
  kCount,
};

struct Fit {
  std::string_view name;
  int rank;
  std::vector<Role> operands;
};

std::span<const Fit> Fits() {
  using enum Role;
  static const std::vector<Fit> kFits = {
      {"ADD_N", 0, {kFirst, kLike, kLike}},
      {"ARG_MAX", 0, {kFirst, kAxis}},
      {"ARG_MIN", 0, {kFirst, kAxis}},
      {"AVERAGE_POOL_2D", 4, {}},
      {"BATCH_TO_SPACE_ND", 4, {kFirst, kBlocks, kPairPaddings}},
      {"BROADCAST_ARGS", 0, {kFactors, kFactors}},
      {"BROADCAST_TO", 0, {kFirst, kWider}},
      {"CONCATENATION", 0, {kFirst, kLike, kLike}},
      {"CONV_3D", 5, {kFirst, kVolume, kFiveElements}},
      {"CUMSUM", 0, {kFirst, kAxis}},
      {"DEPTH_TO_SPACE", 4, {}},
      {"DILATE", 0, {kFirst, kFactors, kElement}},
      {"DYNAMIC_UPDATE_SLICE", 0, {kFirst, kLike, kStarts}},
      {"EMBEDDING_LOOKUP", 2, {kIndices, kFirst}},
      {"EXPAND_DIMS", 0, {kFirst, kAxis}},
      {"FILL", 0, {kFactors, kElement}},
      {"GATHER", 0, {kFirst, kIndices}},
      {"GATHER_ND", 0, {kFirst, kPlaces}},
      {"HASHTABLE_LOOKUP", 0, {kIndices, kRowIndices, kFirst}},
      {"L2_POOL_2D", 4, {}},
      {"LOCAL_RESPONSE_NORMALIZATION", 4, {}},
      {"MATRIX_SET_DIAG", 0, {kFirst, kDiagonal}},
      {"MAX_POOL_2D", 4, {}},
      {"MEAN", 0, {kFirst, kAxes}},
      {"MIRROR_PAD", 0, {kFirst, kPaddings}},
      {"NON_MAX_SUPPRESSION_V4", 1, {kBoxes, kRowElements, kCount, kThreshold, kThreshold}},
      {"NON_MAX_SUPPRESSION_V5",
       1,
       {kBoxes, kRowElements, kCount, kThreshold, kThreshold, kThreshold}},
      {"ONE_HOT", 0, {kFirst, kCount, kElement, kElement}},
      {"PACK", 0, {kFirst, kLike, kLike}},
      {"PAD", 0, {kFirst, kPaddings, kElement}},
      {"PADV2", 0, {kFirst, kPaddings, kElement}},
      {"PRELU", 0, {kFirst, kRow}},
      {"RANGE", 0, {kElement, kElement, kElement}},
      {"REDUCE_ALL", 0, {kFirst, kAxes}},
      {"REDUCE_ANY", 0, {kFirst, kAxes}},
      {"REDUCE_MAX", 0, {kFirst, kAxes}},
      {"REDUCE_MIN", 0, {kFirst, kAxes}},
      {"REDUCE_PROD", 0, {kFirst, kAxes}},
      {"REDUCE_WINDOW", 0, {kFirst, kElement, kFactors, kStrides, kStrides}},
      {"RESHAPE", 0, {kFirst, kSameSize}},
      {"RESIZE_BILINEAR", 4, {kFirst, kPair}},
      {"RESIZE_NEAREST_NEIGHBOR", 4, {kFirst, kPair}},
      {"REVERSE_SEQUENCE", 0, {kFirst, kIndices}},
      {"REVERSE_V2", 0, {kFirst, kAxes}},
      {"RFFT2D", 0, {kFirst, kPair}},
      {"SCATTER_ND", 1, {kPlaces, kFiveElements, kShape}},
      {"SEGMENT_SUM", 0, {kFirst, kRowNumbers}},
      {"SELECT", 0, {kFirst, kLike, kLike}},
      {"SELECT_V2", 0, {kFirst, kLike, kLike}},
      {"SLICE", 0, {kFirst, kStarts, kSizes}},
      {"SPACE_TO_BATCH_ND", 4, {kFirst, kBlocks, kPairPaddings}},
      {"SPACE_TO_DEPTH", 4, {}},
      {"SPARSE_TO_DENSE", 1, {kPlaces, kShape, kFiveElements, kElement}},
      {"SPLIT", 0, {kAxis, kFirst}},
      {"SPLIT_V", 0, {kFirst, kParts, kAxis}},
      {"STRIDED_SLICE", 0, {kFirst, kStarts, kFactors, kStrides}},
      {"SUM", 0, {kFirst, kAxes}},
      {"TILE", 0, {kFirst, kFactors}},
      {"TOPK_V2", 0, {kFirst, kCount}},
      {"TRANSPOSE", 0, {kFirst, kPermutation}},
      {"UNIQUE", 1, {}},
      {"UNSORTED_SEGMENT_MAX", 0, {kFirst, kRowNumbers, kCount}},
      {"UNSORTED_SEGMENT_MIN", 0, {kFirst, kRowNumbers, kCount}},
      {"UNSORTED_SEGMENT_PROD", 0, {kFirst, kRowNumbers, kCount}},
      {"UNSORTED_SEGMENT_SUM", 0, {kFirst, kRowNumbers, kCount}},
  };
  return kFits;
}

const Fit* Find(std::string_view name) {
  for (const Fit& fit : Fits()) {
    if (fit.name == name) return &fit;
  }
  return nullptr;
}

FittingOperand Integers(const Shape& shape, const std::vector<int32_t>& values) {
  FittingOperand operand{.info = {.type = DataType::kInt32, .shape = shape}, .values = {}};
  operand.values.resize(values.size() * sizeof(int32_t));
  if (!values.empty()) std::memcpy(operand.values.data(), values.data(), operand.values.size());
  return operand;
}

FittingOperand Vector(const std::vector<int32_t>& values) {
  return Integers({static_cast<int32_t>(values.size())}, values);
}

// `count` numbers from [low, high].
std::vector<int32_t> DrawIntegers(int64_t count, int64_t low, int64_t high, Random& random) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  for (int32_t& value : values) {
    value = static_cast<int32_t>(random.Int(low, std::max(low, high)));
  }
  return values;
}

// For each dimension of `first` what `draw` gives for it.
template <class Draw>
FittingOperand PerDimension(const Shape& first, Draw draw) {
  std::vector<int32_t> values;
  for (int i = 0; i < first.rank(); ++i) values.push_back(static_cast<int32_t>(draw(first[i])));
  return Vector(values);
}

FittingOperand Permutation(int rank, Random& random) {
  std::vector<int32_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  for (int i = rank; i > 1; --i) std::swap(order[i - 1], order[random.Int(0, i - 1)]);
  return Vector(order);
}

// The dimensions of `first`, two of them merged or exchanged, or one of them open.
FittingOperand SameSize(const Shape& first, Random& random) {
  std::vector<int32_t> sizes;
  for (int i = 0; i < first.rank(); ++i) sizes.push_back(first[i]);
  if (sizes.size() > 1 && random.Chance(0.5)) {
    sizes[1] *= sizes[0];
    sizes.erase(sizes.begin());
  } else {
    std::reverse(sizes.begin(), sizes.end());
  }
  if (!sizes.empty() && random.Chance(0.3)) sizes[0] = -1;
  return Vector(sizes);
}

FittingOperand Wider(const Shape& first, Random& random) {
  std::vector<int32_t> sizes = DrawIntegers(random.Int(0, 2), 1, 3, random);
  for (int i = 0; i < first.rank(); ++i) {
    sizes.push_back(first[i] == 1 ? static_cast<int32_t>(random.Int(1, 20)) : first[i]);
  }
  return Vector(sizes);
}

// Numbers of as many rows as the first dimension has, here and there one more than before.
FittingOperand RowNumbers(int32_t rows, Random& random) {
  std::vector<int32_t> numbers;
  for (int32_t i = 0, number = 0; i < rows; ++i) {
    numbers.push_back(number += random.Chance(0.4) ? 1 : 0);
  }
  return Vector(numbers);
}

FittingOperand RowIndices(int32_t rows) {
  std::vector<int32_t> numbers(static_cast<size_t>(rows));
  std::iota(numbers.begin(), numbers.end(), 0);
  return Vector(numbers);
}

FittingOperand Parts(int32_t whole, Random& random) {
  const auto part = static_cast<int32_t>(random.Int(0, whole));
  return Vector({part, random.Chance(0.3) ? -1 : whole - part});
}

Shape WithoutLast(const Shape& first) {
  Shape shape;
  for (int i = 0; i + 1 < first.rank(); ++i) shape.push_back(first[i]);
  return shape;
}

FittingOperand OneAxis(int rank, Random& random) {
  const std::vector<int32_t> axis = DrawIntegers(1, -rank, rank - 1, random);
  return Integers(random.Chance(0.5) ? Shape{} : Shape{1}, axis);
}

FittingOperand Draw(Role role, DataType type, const Shape& first, Random& random) {
  const int rank = first.rank();
  const int32_t rows = rank > 0 ? first[0] : 1;
  const auto of_type = [&](const Shape& shape) {
    return FittingOperand{.info = {.type = type, .shape = shape}, .values = {}};
  };
  switch (role) {
    case Role::kFirst:
    case Role::kLike: return of_type(first);
    case Role::kElement: return of_type({});
    case Role::kRow: return of_type({rank > 0 ? first.dim(-1) : 1});
    case Role::kDiagonal: return of_type(WithoutLast(first));
    case Role::kAxis: return OneAxis(rank, random);
    case Role::kAxes: return Vector(DrawIntegers(random.Int(1, 3), -rank, rank - 1, random));
    case Role::kPermutation: return Permutation(rank, random);
    case Role::kSameSize: return SameSize(first, random);
    case Role::kWider: return Wider(first, random);
    case Role::kFactors: return Vector(DrawIntegers(rank, 1, 3, random));
    case Role::kStarts: return PerDimension(first, [&](int n) { return random.Int(0, n / 2); });
    case Role::kSizes: return PerDimension(first, [&](int n) { return random.Int(-1, n / 2); });
    case Role::kStrides: return Vector(DrawIntegers(rank, 1, 2, random));
    case Role::kPaddings: return Integers({rank, 2}, DrawIntegers(2 * rank, 0, 2, random));
    case Role::kPair: return Vector(DrawIntegers(2, 1, 8, random));
    case Role::kBlocks: return Vector(DrawIntegers(2, 1, 2, random));
    case Role::kPairPaddings: return Integers({2, 2}, DrawIntegers(4, 0, 2, random));
    case Role::kIndices: return Vector(DrawIntegers(random.Int(1, 20), 0, rows - 1, random));
    case Role::kFiveElements: return of_type({5});
    case Role::kShape: return PerDimension(first, [](int n) { return n; });
    case Role::kPlaces: return Integers({5, 1}, DrawIntegers(5, 0, rows - 1, random));
    case Role::kRowNumbers: return RowNumbers(rows, random);
    case Role::kRowIndices: return RowIndices(rows);
    case Role::kBoxes: return of_type({rows, 4});
    case Role::kThreshold: return {.info = {.type = DataType::kFloat32}, .values = {}};
    case Role::kVolume: return of_type({2, 1, 3, rank > 0 ? first.dim(-1) : 1, 5});
    case Role::kRowElements: return of_type({rows});
    case Role::kParts: return Parts(rows, random);
    case Role::kCount: return Integers({}, DrawIntegers(1, 1, 6, random));
  }
  return of_type(first);
}

// The numbers of `narrow` as int64.
FittingOperand Widened(const FittingOperand& narrow) {
  FittingOperand wide{.info = narrow.info, .values = {}};
  wide.info.type = DataType::kInt64;
  wide.values.resize(2 * narrow.values.size());
  for (size_t i = 0; i < narrow.values.size() / sizeof(int32_t); ++i) {
    int32_t value;
    std::memcpy(&value, narrow.values.data() + i * sizeof value, sizeof value);
    const int64_t widened = value;
    std::memcpy(wide.values.data() + i * sizeof widened, &widened, sizeof widened);
  }
  return wide;
}

}  // namespace

int FittingRank(std::string_view name) {
  const Fit* fit = Find(name);
  return fit == nullptr ? 0 : fit->rank;
}

std::optional<FittingOperand> DrawFittingOperand(std::string_view name, size_t index, DataType type,
                                                 const Shape& first, Random& random) {
  const Fit* fit = Find(name);
  if (fit == nullptr || index >= fit->operands.size()) return std::nullopt;
  FittingOperand operand = Draw(fit->operands[index], type, first, random);
  return type == DataType::kInt64 && !operand.values.empty() ? Widened(operand) : operand;
}

}  // namespace fuselite::fuzz
