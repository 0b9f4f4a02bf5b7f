// Tails of every kind of stage behind a value as it is.
#include "tests/fuzz/fitting_cases.h"
#include "tests/fuzz/fitting_tensors.h"
#include "tests/kernels/tail_cases.h"

namespace fuselite::fuzz {
namespace {

using namespace kernels;
using namespace kernels::testing;

constexpr DataType kF32 = DataType::kFloat32;

// Any function first; behind it those that enlarge no error.
TailStage Function(Random& random, bool first) {
  const UnaryKind kind =
      first ? static_cast<UnaryKind>(random.Int(0, kUnaryKindCount - 1))
            : random.Pick({UnaryKind::kClamp, UnaryKind::kLeakyRelu, UnaryKind::kElu,
                           UnaryKind::kHardSwish, UnaryKind::kLogistic, UnaryKind::kTanh,
                           UnaryKind::kAbs, UnaryKind::kNeg, UnaryKind::kAffine});
  return TailStage::Unary(kind, random.Pick({-0.5f, 0.2f}), random.Pick({0.5f, 1.5f}));
}

// The operand's shape decides what is read of it for each row.
TailStage Operand(Random& random, bool first, int64_t width) {
  const BinaryKind kind =
      first ? static_cast<BinaryKind>(random.Int(0, kBinaryKindCount - 1))
            : random.Pick({BinaryKind::kAdd, BinaryKind::kReverseSub, BinaryKind::kMaximum});
  return TailStage::Binary(kind, {.input = 1,
                                  .row_stride = random.Chance(0.5) ? width : 0,
                                  .channel_stride = Dim(random, 0, 1)});
}

FittingCase OfFloats(Random& random) {
  OpTester tester("FUSELITE_ELEMENTWISE");
  const Shape shape = SmallShape(random, Dim(random, 1, 3));
  tester.Input(Floats(random, shape, random.Pick({1.0f, 30.0f})));
  const int64_t stages = random.Int(1, 4);
  for (int64_t i = 0; i < stages; ++i) {
    tester.op.tail.stages.push_back(random.Chance(0.6) ? Function(random, i == 0)
                                                       : Operand(random, i == 0, shape.dim(-1)));
  }
  tester.Input(Floats(random, shape, 3));
  tester.op.tail_inputs = 1;
  return {std::move(tester)};
}

struct Codes {
  DataType type;
  int32_t low, high;
};

TailStage Requantized(Random& random, const Codes& codes, int64_t channels) {
  if (random.Chance(0.6)) return RandomRequantize(random, channels, codes.low, codes.high);
  TailStage stage;
  stage.kind = TailStage::Kind::kRescale;
  stage.real_scales = ChannelValues<double>::Repeated(
      static_cast<size_t>(random.Chance(0.5) ? 1 : channels), 0.013);
  stage.zero_point = Dim(random, codes.low, codes.high);
  stage.min = codes.low;
  stage.max = codes.high;
  return stage;
}

// Goes from codes to floats, through a function, and back.
void AddIsland(Tail& tail, const Codes& codes, Random& random) {
  TailStage in, out;
  in.kind = TailStage::Kind::kDequantize;
  in.scales = {0.05f};
  in.zero_point = Dim(random, codes.low, codes.high);
  out.kind = TailStage::Kind::kQuantize;
  out.scales = {0.25f};
  out.zero_point = Dim(random, codes.low, codes.high);
  out.min = codes.low;
  out.max = codes.high;
  tail.stages.push_back(in);
  tail.stages.push_back(TailStage::Unary(
      random.Pick({UnaryKind::kClamp, UnaryKind::kAbs, UnaryKind::kNeg, UnaryKind::kLeakyRelu}),
      -0.5f, 1.5f));
  tail.stages.push_back(out);
}

// Sums or codes to codes; all of these are exact.
FittingCase OfCodes(Random& random) {
  const Codes codes =
      random.Pick({Codes{DataType::kInt8, -128, 127}, Codes{DataType::kUInt8, 0, 255},
                   Codes{DataType::kInt16, -32768, 32767}});
  OpTester tester("FUSELITE_ELEMENTWISE");
  const Shape shape = SmallShape(random, Dim(random, 1, 3));
  const bool sums = random.Chance(0.5);
  TestTensor x({.type = sums ? DataType::kInt32 : codes.type, .shape = shape});
  if (sums) {
    for (int64_t i = 0; i < x.info().elements(); ++i) x.at<int32_t>(i) = RandomAccumulator(random);
  } else {
    x.Fill(random, codes.low, codes.high);
  }
  tester.Input(x);
  Tail& tail = tester.op.tail;
  const int32_t width = shape.dim(-1);
  if (sums) tail.stages.push_back(Requantized(random, codes, width));
  if (BitWidth(codes.type) == 8 && random.Chance(0.4)) tail.stages.push_back(RandomLookup(random));
  if (random.Chance(0.3)) AddIsland(tail, codes, random);
  if (tail.empty() || random.Chance(0.4)) {
    TailStage add = RandomQuantizedAdd(random, width, codes.low, codes.high);
    add.operand.input = 1;
    if (add.operand.row_stride == 1) add.operand.row_stride = 0;
    tail.stages.push_back(add);
  }
  TestTensor y({.type = codes.type, .shape = shape});
  y.Fill(random, codes.low, codes.high);
  tester.Input(y);
  tester.op.tail_inputs = 1;
  tester.Output(codes.type);
  return {std::move(tester)};
}

}  // namespace

FittingCase DrawTailCase(Random& random) {
  return random.Chance(0.5) ? OfFloats(random) : OfCodes(random);
}

}  // namespace fuselite::fuzz
