// Operators whose parameters and operands name dimensions and places of one another: STABLEHLO's,
// with lists for them, and a few of TFLite's.
#include <algorithm>
#include <numeric>

#include "kernels/reduce_window/stablehlo.h"
#include "kernels/reverse/reverse.h"
#include "kernels/stablehlo/scatter.h"
#include "tests/fuzz/fitting_cases.h"
#include "tests/fuzz/fitting_tensors.h"

namespace fuselite::fuzz {
namespace {

using namespace kernels;
using namespace kernels::testing;

template <class List>
List ListOf(const std::vector<int32_t>& values) {
  List list{};
  list.count = static_cast<int32_t>(values.size());
  std::ranges::copy(values, list.values);
  return list;
}

std::vector<int32_t> DrawList(Random& random, int count, int32_t low, int32_t high) {
  std::vector<int32_t> list;
  for (int i = 0; i < count; ++i) list.push_back(Dim(random, low, high));
  return list;
}

// Some of the numbers below `count`, in order.
std::vector<int32_t> Some(Random& random, int count, double chance) {
  std::vector<int32_t> some;
  for (int i = 0; i < count; ++i) {
    if (random.Chance(chance)) some.push_back(i);
  }
  return some;
}

std::vector<int32_t> Others(const std::vector<int32_t>& some, int count) {
  std::vector<int32_t> others;
  for (int i = 0; i < count; ++i) {
    if (std::ranges::count(some, i) == 0) others.push_back(i);
  }
  return others;
}

DataType SomeType(Random& random) {
  return random.Pick({DataType::kFloat32, DataType::kInt8, DataType::kInt16, DataType::kInt32,
                      DataType::kInt64, DataType::kBool, DataType::kFloat16, DataType::kUInt8});
}

// Slices, or windows, of an operand, and vectors of indices that say where they lie.
struct Slices {
  Shape operand, indices;
  std::vector<int32_t> sizes;      // of a slice
  std::vector<int32_t> gone;       // dimensions of the operand in which a slice has one element
  std::vector<int32_t> index_map;  // entry i of a vector is a place along this dimension
  int axis = 0;                    // of `indices`, along which the vectors lie
  // What has a slice for each vector: its shape, and which dimensions are the slices'.
  Shape slices;
  std::vector<int32_t> slice_dims;
};

Slices DrawSlices(Random& random) {
  Slices s;
  const int rank = Dim(random, 1, 4);
  s.operand = SmallShape(random, rank);
  s.gone = Some(random, rank, 0.4);
  const std::vector<int32_t> kept = Others(s.gone, rank);
  for (int d = 0; d < rank; ++d) s.sizes.push_back(Dim(random, 1, s.operand[d]));
  for (const int32_t d : s.gone) s.sizes[d] = 1;
  s.index_map.resize(static_cast<size_t>(rank));
  std::iota(s.index_map.begin(), s.index_map.end(), 0);
  std::swap(s.index_map[0], s.index_map[random.Int(0, rank - 1)]);
  s.index_map.resize(static_cast<size_t>(random.Int(1, rank)));
  const Shape batch = SmallShape(random, Dim(random, 0, 2));
  s.axis = Dim(random, 0, batch.rank());
  for (int d = 0; d <= batch.rank(); ++d) {
    if (d == s.axis) s.indices.push_back(static_cast<int32_t>(s.index_map.size()));
    if (d < batch.rank()) s.indices.push_back(batch[d]);
  }
  const int all = batch.rank() + static_cast<int>(kept.size());
  // The slices' dimensions in front, behind, or between the vectors'.
  while (s.slice_dims.size() != kept.size()) s.slice_dims = Some(random, all, 0.5);
  int of_slice = 0, of_batch = 0;
  for (int d = 0; d < all; ++d) {
    const bool slice = std::ranges::count(s.slice_dims, d) > 0;
    s.slices.push_back(slice ? s.sizes[kept[of_slice++]] : batch[of_batch++]);
  }
  return s;
}

TestTensor Places(Random& random, const Shape& shape) {
  if (random.Chance(0.7)) return Numbers(random, shape, -1, 6);
  TestTensor wide({.type = DataType::kInt64, .shape = shape});
  wide.Fill(random, -1, 6);
  return wide;
}

FittingCase StablehloGather(Random& random) {
  const Slices s = DrawSlices(random);
  OpTester tester("STABLEHLO_GATHER");
  SetParameter(tester, "offset_dims", ListOf<IntList>(s.slice_dims));
  SetParameter(tester, "collapsed_slice_dims", ListOf<IntList>(s.gone));
  SetParameter(tester, "start_index_map", ListOf<IntList>(s.index_map));
  SetParameter(tester, "slice_sizes", ListOf<IntList>(s.sizes));
  SetParameter(tester, "index_vector_dim", int64_t{s.axis});
  tester.Input(Any(random, SomeType(random), s.operand)).Input(Places(random, s.indices));
  return {std::move(tester)};
}

FittingCase StablehloScatter(Random& random) {
  const Slices s = DrawSlices(random);
  OpTester tester("STABLEHLO_SCATTER");
  auto& p = tester.params<ScatterParams>();
  p.function = static_cast<ScatterFunction>(random.Int(1, 5));
  p.window_dims = ListOf<IntList>(s.slice_dims);
  p.inserted_dims = ListOf<IntList>(s.gone);
  p.index_map = ListOf<IntList>(s.index_map);
  p.index_vector_dim = s.axis;
  const DataType type = SomeType(random);
  tester.Input(Any(random, type, s.operand)).Input(Places(random, s.indices));
  tester.Input(Any(random, type, s.slices));
  return {std::move(tester)};
}

FittingCase StablehloPad(Random& random) {
  const int rank = Dim(random, 1, 4);
  OpTester tester("STABLEHLO_PAD");
  for (const char* name : {"edge_padding_low", "edge_padding_high"}) {
    SetParameter(tester, name, ListOf<IntList>(DrawList(random, rank, -2, 3)));
  }
  SetParameter(tester, "interior_padding", ListOf<IntList>(DrawList(random, rank, 0, 2)));
  const DataType type = SomeType(random);
  tester.Input(Any(random, type, SmallShape(random, rank))).Input(Any(random, type, {}));
  return {std::move(tester)};
}

FittingCase StablehloReduceWindow(Random& random) {
  const int rank = Dim(random, 1, 4);
  OpTester tester("STABLEHLO_REDUCE_WINDOW");
  auto& p = tester.params<StablehloReduceWindowParams>();
  p.function = static_cast<WindowFunction>(random.Int(1, 6));
  p.sizes = ListOf<IntList>(DrawList(random, rank, 1, 3));
  p.strides = ListOf<IntList>(DrawList(random, rank, 1, 3));
  p.base_dilations = ListOf<IntList>(DrawList(random, rank, 1, 2));
  p.window_dilations = ListOf<IntList>(DrawList(random, rank, 1, 2));
  p.padding = ListOf<PairList>(DrawList(random, 2 * rank, -1, 2));
  const DataType type = SomeType(random);
  tester.Input(Any(random, type, SmallShape(random, rank))).Input(Any(random, type, {}));
  return {std::move(tester)};
}

// The input has the shape that a convolution makes of the output, mostly.
FittingCase Conv3DTranspose(Random& random) {
  OpTester tester("CONV_3D_TRANSPOSE");
  const auto padding = random.Pick({Padding::kSame, Padding::kValid});
  SetParameter(tester, "padding", padding);
  const int32_t channels = Dim(random, 1, 5), inputs = Dim(random, 1, 5), n = Dim(random, 1, 2);
  Shape out{n}, in{n}, filter;
  for (const char* axis : {"d", "h", "w"}) {
    const int32_t size = Dim(random, 1, 6), taps = Dim(random, 1, 3), stride = Dim(random, 1, 2);
    const int32_t dilation = stride == 1 ? Dim(random, 1, 2) : 1;
    SetParameter(tester, std::string("stride_") + axis, stride);
    SetParameter(tester, std::string("dilation_") + axis + "_factor", dilation);
    const int32_t reach = padding == Padding::kSame ? 1 : (taps - 1) * dilation + 1;
    out.push_back(size);
    in.push_back(std::max(1, (size - reach + stride) / stride));
    filter.push_back(taps);
  }
  out.push_back(channels);
  in.push_back(inputs);
  filter.push_back(channels);
  filter.push_back(inputs);
  const std::vector<int32_t> dims(out.dims().begin(), out.dims().end());
  tester.Constant(TestTensor::Of<int32_t>(DataType::kInt32, {5}, dims));
  tester.Input(Floats(random, filter, 1)).Input(Floats(random, in, 1));
  if (random.Chance(0.5)) tester.Input(Floats(random, {channels}, 1));
  return {std::move(tester)};
}

FittingCase ReverseSequence(Random& random) {
  const int rank = Dim(random, 2, 4);
  const Shape shape = SmallShape(random, rank);
  OpTester tester("REVERSE_SEQUENCE");
  const int32_t line = Dim(random, 0, rank - 1);
  const int32_t batch = (line + Dim(random, 1, rank - 1)) % rank;
  SetParameter(tester, "seq_dim", line);
  SetParameter(tester, "batch_dim", batch);
  const DataType type = random.Pick(
      {DataType::kFloat32, DataType::kUInt8, DataType::kInt16, DataType::kInt32, DataType::kInt64});
  tester.Input(Any(random, type, shape));
  TestTensor lengths(
      {.type = random.Pick({DataType::kInt32, DataType::kInt64}), .shape = {shape[batch]}});
  lengths.Fill(random, 0, shape[line]);
  tester.Input(lengths);
  return {std::move(tester)};
}

// Ids of one place stand together, mostly.
FittingCase SparseEmbedding(Random& random) {
  const int32_t ids = Dim(random, 1, 9), rows = Dim(random, 1, 9), depth = Dim(random, 1, 3);
  OpTester tester("EMBEDDING_LOOKUP_SPARSE");
  SetParameter(tester, "combiner", Dim(random, 0, 2));
  const std::vector<int32_t> shape = DrawList(random, depth, 1, 4);
  std::vector<std::vector<int32_t>> places;
  for (int i = 0; i < ids; ++i) {
    places.emplace_back();
    for (const int32_t size : shape) places.back().push_back(Dim(random, 0, size - 1));
  }
  if (random.Chance(0.8)) std::ranges::sort(places);
  std::vector<int32_t> indices;
  for (const auto& place : places) indices.insert(indices.end(), place.begin(), place.end());
  tester.Input(Numbers(random, {ids}, 0, rows - 1));
  tester.Input(TestTensor::Of<int32_t>(DataType::kInt32, {ids, depth}, indices));
  tester.Constant(TestTensor::Of<int32_t>(DataType::kInt32, {depth}, shape));
  tester.Input(Floats(random, {ids}, 1)).Input(Floats(random, {rows, Dim(random, 1, 9)}, 1));
  return {std::move(tester)};
}

// Random bits of a state, which only two lengths can be.
FittingCase BitGenerator(Random& random) {
  OpTester tester("STABLEHLO_RNG_BIT_GENERATOR");
  SetParameter(tester, "algorithm", Dim(random, 0, 2));
  tester.Input(Any(random, DataType::kUInt64, {Dim(random, 2, 3)})).Output(DataType::kUInt64);
  tester.op.outputs.push_back(
      {.type = random.Pick({DataType::kInt32, DataType::kUInt32, DataType::kInt64}),
       .shape = SmallShape(random, Dim(random, 1, 3))});
  return {std::move(tester)};
}

FittingCase LshProjection(Random& random) {
  OpTester tester("LSH_PROJECTION");
  SetParameter(tester, "type", Dim(random, 1, 2));
  const Shape shape = SmallShape(random, Dim(random, 1, 2));
  tester.Input(Floats(random, {Dim(random, 1, 4), Dim(random, 1, 8)}, 1));
  tester.Input(Any(random, SomeType(random), shape));
  if (random.Chance(0.5)) tester.Input(Floats(random, {shape[0]}, 1));
  return {std::move(tester)};
}

FittingCase Unique(Random& random) {
  OpTester tester("UNIQUE");
  SetParameter(tester, "idx_out_type", random.Pick({DataType::kInt32, DataType::kInt64}));
  tester.Constant(Any(random, SomeType(random), {Dim(random, 1, 30)}));
  tester.Output().Output();
  return {std::move(tester)};
}

}  // namespace

FittingCase DrawIndexedCase(Random& random) {
  switch (random.Int(0, 9)) {
    case 0: return StablehloGather(random);
    case 1: return StablehloScatter(random);
    case 2: return StablehloPad(random);
    case 3: return StablehloReduceWindow(random);
    case 4: return Conv3DTranspose(random);
    case 5: return ReverseSequence(random);
    case 6: return BitGenerator(random);
    case 7: return LshProjection(random);
    case 8: return Unique(random);
    default: return SparseEmbedding(random);
  }
}

}  // namespace fuselite::fuzz
