// PAD, PADV2, MIRROR_PAD, TILE, BROADCAST_TO, DEPTH_TO_SPACE, SPACE_TO_DEPTH, SPACE_TO_BATCH_ND,
// BATCH_TO_SPACE_ND, REVERSE_V2, REVERSE_SEQUENCE: against their definitions.
#include "kernels/pad/pad.h"
#include "kernels/reverse/reverse.h"
#include "kernels/space/space.h"
#include "kernels/stablehlo/pad.h"
#include "tests/kernels/movement_tester.h"

namespace fuselite::kernels::testing {
namespace {

// Rows of two: (before, after) of each dimension, or crops.
TestTensor Pairs(const std::vector<int32_t>& values) {
  return TestTensor::Of<int32_t>(DataType::kInt32, {static_cast<int32_t>(values.size() / 2), 2},
                                 values);
}

TestTensor Zeros(const Shape& shape) {
  return TestTensor::Of<int32_t>(DataType::kInt32, shape, std::vector<int32_t>(shape.elements()));
}

std::vector<int32_t> RandomPaddings(Random& random, int rank) {
  std::vector<int32_t> paddings;
  for (int i = 0; i < 2 * rank; ++i) {
    paddings.push_back(static_cast<int32_t>(random.Chance(0.5) ? random.Int(1, 3) : 0));
  }
  return paddings;
}

TEST(PadTest, MatchesItsDefinition) {
  for (int i = 0; i < 2 * kCases; ++i) {
    Random random(100 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(1, 5));
    const Shape shape = RandomShape(random, rank, 5);
    const std::vector<int32_t> paddings = RandomPaddings(random, rank);
    const DataType type = kWidths[i % 4];
    const auto tensor = RandomTensor(random, type, shape);
    const bool given = random.Chance(0.5);
    OpTester tester(given ? "PADV2" : "PAD");
    tester.Input(tensor).Constant(Pairs(paddings));
    TestTensor value = RandomTensor(random, type, {}, false);
    if (given) {
      tester.Input(value);
    } else {
      std::memset(value.bytes(), 0, BitWidth(type) / 8);
      if (type == DataType::kUInt8) {
        value.at<uint8_t>(0) = 77;
        tester.Output(type, {{0.5f}, {77}});
      }
    }
    ExpectMoved(tester, random, [&](int, Index o) {
      for (int d = 0; d < rank; ++d) {
        o[d] -= paddings[2 * d];
        if (o[d] < 0 || o[d] >= shape[d]) return ElementOf(value, 0);
      }
      return ElementOf(tensor, Flatten(shape, o));
    });
  }
}

TEST(ComplexPartsTest, MatchTheirDefinition) {
  for (int i = 0; i < 2 * kCases; ++i) {
    Random random(900 + i);
    SCOPED_TRACE(random.Trace());
    const bool wide = random.Chance(0.3), imaginary = random.Chance(0.5);
    Shape shape = RandomShape(random, static_cast<int>(random.Int(0, 3)), 7);
    if (random.Chance(0.5)) shape.push_back(static_cast<int32_t>(random.Int(1, 90)));
    const auto tensor =
        RandomTensor(random, wide ? DataType::kComplex128 : DataType::kComplex64, shape);
    OpTester tester(imaginary ? "IMAG" : "REAL");
    tester.Input(tensor);
    ExpectMoved(tester, random, [&](int, const Index& o) {
      return ElementOf(tensor, Flatten(shape, o)) + (imaginary ? (wide ? 8 : 4) : 0);
    });
    if (HasFailure()) return;
  }
}

TEST(StablehloPadTest, MatchesItsDefinition) {
  for (int i = 0; i < 4 * kCases; ++i) {
    Random random(500 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(0, 4));
    const Shape shape = RandomShape(random, rank, 6);
    const DataType type = kWidths[i % 4];
    OpTester tester("STABLEHLO_PAD");
    auto& pad = tester.params<StablehloPadParams>();
    pad.low.count = pad.high.count = pad.interior.count = rank;
    for (int d = 0; d < rank; ++d) {
      pad.low.values[d] = static_cast<int32_t>(random.Int(-3, 3));
      pad.high.values[d] = static_cast<int32_t>(random.Int(-3, 3));
      pad.interior.values[d] = static_cast<int32_t>(random.Chance(0.5) ? random.Int(1, 2) : 0);
    }
    const auto tensor = RandomTensor(random, type, shape);
    const auto value = RandomTensor(random, type, {}, false);
    tester.Input(tensor).Input(value);
    ExpectMoved(tester, random, [&](int, Index o) {
      for (int d = 0; d < rank; ++d) {
        o[d] -= pad.low.values[d];
        const int32_t step = pad.interior.values[d] + 1;
        if (o[d] < 0 || o[d] % step != 0 || o[d] / step >= shape[d]) return ElementOf(value, 0);
        o[d] /= step;
      }
      return ElementOf(tensor, Flatten(shape, o));
    });
    if (HasFailure()) return;
  }
}

TEST(PadTest, Refuses) {
  const auto code = [](std::vector<int32_t> paddings) {
    OpTester tester("PAD");
    tester.Input(Zeros({2, 3})).Constant(Pairs(paddings));
    return tester.Infer().code();
  };
  EXPECT_EQ(code({0, 1, 2, 0}), StatusCode::kOk);
  EXPECT_EQ(code({0, -1, 0, 0}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, 1}), StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, 1 << 28, 0, 1 << 28}), StatusCode::kOk);
  EXPECT_EQ(code({0, 1 << 30, 0, 1 << 30}), StatusCode::kOutOfMemory);  // 2^60 elements
  EXPECT_EQ(code({0, 2147483647, 0, 0}), StatusCode::kInvalidArgument);
  OpTester value("PADV2");
  value.Input(TestTensor::Of<int8_t>(DataType::kInt8, {1}, {1}, {{1.0f}, {0}}));
  value.Constant(Pairs({1, 1}));
  value.Constant(TestTensor::Of<int8_t>(DataType::kInt8, {}, {1}, {{2.0f}, {0}}));
  value.Output(DataType::kInt8, {{1.0f}, {0}});
  EXPECT_EQ(value.Infer().code(), StatusCode::kInvalidArgument);
}

TEST(MirrorPadTest, MatchesItsDefinition) {
  for (int i = 0; i < kCases; ++i) {
    Random random(200 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(1, 4));
    const bool reflect = random.Chance(0.5);
    const Shape shape = RandomShape(random, rank, 5);
    std::vector<int32_t> paddings;
    for (int d = 0; d < 2 * rank; ++d) {
      paddings.push_back(static_cast<int32_t>(random.Int(0, shape[d / 2] - (reflect ? 1 : 0))));
    }
    const auto tensor = RandomTensor(random, kWidths[i % 4], shape);
    OpTester tester("MIRROR_PAD");
    tester.params<MirrorPadParams>().mode = reflect ? MirrorMode::kReflect : MirrorMode::kSymmetric;
    tester.Input(tensor).Constant(Pairs(paddings));
    ExpectMoved(tester, random, [&](int, Index o) {
      for (int d = 0; d < rank; ++d) {
        o[d] -= paddings[2 * d];
        if (o[d] < 0) o[d] = -o[d] - (reflect ? 0 : 1);
        if (o[d] >= shape[d]) o[d] = 2 * shape[d] - o[d] - (reflect ? 2 : 1);
      }
      return ElementOf(tensor, Flatten(shape, o));
    });
  }
}

TEST(MirrorPadTest, RefusesMoreThanThereIs) {
  for (const bool reflect : {false, true}) {
    for (const int32_t padding : {2, 3, 4}) {
      OpTester tester("MIRROR_PAD");
      tester.params<MirrorPadParams>().mode =
          reflect ? MirrorMode::kReflect : MirrorMode::kSymmetric;
      tester.Input(Zeros({3})).Constant(Pairs({padding, 0}));
      EXPECT_EQ(tester.Infer().ok(), padding <= (reflect ? 2 : 3)) << padding;
    }
  }
}

TEST(TileTest, MatchesItsDefinition) {
  for (int i = 0; i < kCases; ++i) {
    Random random(300 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(1, i % 10 == 0 ? 8 : 4));
    const Shape shape = RandomShape(random, rank, rank > 4 ? 2 : 5);
    std::vector<int32_t> multiples;
    for (int d = 0; d < rank; ++d) multiples.push_back(static_cast<int32_t>(random.Int(0, 9) % 4));
    const auto tensor = RandomTensor(random, kWidths[i % 4], shape);
    OpTester tester("TILE");
    tester.Input(tensor).Constant(Ints(multiples));
    ExpectMoved(tester, random, [&](int, Index o) {
      for (int d = 0; d < rank; ++d) o[d] %= shape[d];
      return ElementOf(tensor, Flatten(shape, o));
    });
  }
}

// Blocks that are put together anew, blocks that are copied, and lines of one run or of many.
TEST(TileTest, LargeOutputsMatchTheDefinition) {
  const std::pair<Shape, std::vector<int32_t>> cases[] = {
      {{1, 6, 6, 8}, {3, 1, 2, 3}},      // two levels, all of them copied
      {{7, 7, 300}, {3, 2, 2}},          // lines of one run
      {{3, 2, 5, 1000}, {2, 3, 1, 1}},   // runs longer than what is copied
      {{2, 9, 40, 33}, {3, 2, 3, 5}},    // lines of the last two dimensions
      {{5, 4099}, {3, 18}},              // of the last one
      {{3, 7, 70000}, {2, 2, 1}},        // of nothing repeated, two of the last one together
      {{1, 1, 5, 30}, {300, 40, 1, 2}},  // of one unit
  };
  int width = 0;
  for (const auto& one : cases) {
    Random random(350 + width);
    SCOPED_TRACE(random.Trace());
    const Shape& shape = one.first;
    const auto tensor = RandomTensor(random, kWidths[width++ % 4], shape);
    OpTester tester("TILE");
    tester.Input(tensor).Constant(Ints(one.second));
    ExpectMoved(tester, random, [&](int, Index o) {
      for (int d = 0; d < shape.rank(); ++d) o[d] %= shape[d];
      return ElementOf(tensor, Flatten(shape, o));
    });
  }
}

TEST(BroadcastToTest, MatchesItsDefinition) {
  for (int i = 0; i < kCases; ++i) {
    Random random(400 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(0, 5));
    const Shape to = RandomShape(random, rank, 5);
    Shape from;
    for (int d = static_cast<int>(random.Int(0, rank)); d < rank; ++d) {
      from.push_back(random.Chance(0.5) ? 1 : to[d]);
    }
    const auto tensor = RandomTensor(random, kWidths[i % 4], from);
    OpTester tester("BROADCAST_TO");
    tester.Input(tensor).Constant(Ints({to.dims().begin(), to.dims().end()}));
    ExpectMoved(tester, random, [&](int, Index o) {
      o.erase(o.begin(), o.begin() + (rank - from.rank()));
      for (int d = 0; d < from.rank(); ++d) o[d] = from[d] == 1 ? 0 : o[d];
      return ElementOf(tensor, Flatten(from, o));
    });
  }
  OpTester tester("BROADCAST_TO");
  tester.Input(Zeros({2})).Constant(Ints({3}));
  EXPECT_EQ(tester.Infer().code(), StatusCode::kInvalidArgument);
}

TEST(DepthTest, MatchesItsDefinition) {
  for (int i = 0; i < kCases; ++i) {
    Random random(500 + i);
    SCOPED_TRACE(random.Trace());
    const auto b = static_cast<int32_t>(random.Int(1, 3));
    const auto c = static_cast<int32_t>(random.Int(1, 5));
    const Shape deep = {2, static_cast<int32_t>(random.Int(1, 4)),
                        static_cast<int32_t>(random.Int(1, 4)), b * b * c};
    const Shape wide = {2, deep[1] * b, deep[2] * b, c};
    const bool to_space = random.Chance(0.5);
    constexpr DataType kTaken[] = {DataType::kUInt8, DataType::kFloat32, DataType::kInt64};
    const auto tensor = RandomTensor(random, kTaken[i % 3], to_space ? deep : wide);
    OpTester tester(to_space ? "DEPTH_TO_SPACE" : "SPACE_TO_DEPTH");
    tester.params<BlockSizeParams>().block_size = b;
    tester.Input(tensor);
    ExpectMoved(tester, random, [&](int, const Index& o) {
      const Index in =
          to_space ? Index{o[0], o[1] / b, o[2] / b, (o[1] % b * b + o[2] % b) * c + o[3]}
                   : Index{o[0], o[1] * b + o[3] / c / b, o[2] * b + o[3] / c % b, o[3] % c};
      return ElementOf(tensor, Flatten(tensor.info().shape, in));
    });
    EXPECT_EQ(tester.op.outputs[0].shape, to_space ? wide : deep);
  }
}

TEST(SpaceToBatchTest, MatchesItsDefinition) {
  for (int i = 0; i < 2 * kCases; ++i) {
    Random random(600 + i);
    SCOPED_TRACE(random.Trace());
    const int spatial = static_cast<int>(random.Int(1, 2));
    const int rank = spatial + 2;
    Shape shape = RandomShape(random, rank, 6);
    std::vector<int32_t> block, paddings;
    for (int m = 0; m < spatial; ++m) {
      block.push_back(static_cast<int32_t>(random.Int(1, 3)));
      paddings.push_back(static_cast<int32_t>(random.Int(0, 4)));
      paddings.push_back(0);
      while ((shape[m + 1] + paddings[2 * m] + paddings[2 * m + 1]) % block[m]) {
        ++paddings[2 * m + 1];
      }
    }
    const auto tensor = RandomTensor(random, kWidths[i % 4], shape);
    TestTensor zero(TensorInfo{.type = tensor.info().type, .shape = {}});
    std::memset(zero.bytes(), 0, 8);
    OpTester tester("SPACE_TO_BATCH_ND");
    tester.Input(tensor).Constant(Ints(block)).Constant(Pairs(paddings));
    if (tensor.info().type == DataType::kUInt8) {
      zero.at<uint8_t>(0) = 200;
      tester.Output(DataType::kUInt8, {{1.0f}, {200}});
      tester.op.inputs[0].quantization = {{1.0f}, {200}};
    }
    ExpectMoved(tester, random, [&](int, Index o) {
      int64_t position = o[0] / shape[0];
      o[0] %= shape[0];
      for (int m = spatial - 1; m >= 0; --m) {
        o[m + 1] = o[m + 1] * block[m] + position % block[m] - paddings[2 * m];
        position /= block[m];
      }
      for (int d = 0; d < rank; ++d) {
        if (o[d] < 0 || o[d] >= shape[d]) return ElementOf(zero, 0);
      }
      return ElementOf(tensor, Flatten(shape, o));
    });
  }
}

TEST(BatchToSpaceTest, MatchesItsDefinition) {
  for (int i = 0; i < 2 * kCases; ++i) {
    Random random(700 + i);
    SCOPED_TRACE(random.Trace());
    const int spatial = static_cast<int>(random.Int(1, 2));
    const int rank = spatial + 2;
    Shape shape = RandomShape(random, rank, 4);
    const int32_t images = shape[0];
    std::vector<int32_t> block, crops;
    for (int m = 0; m < spatial; ++m) {
      block.push_back(static_cast<int32_t>(random.Int(1, 3)));
      shape.set(0, shape[0] * block[m]);
      const int32_t size = shape[m + 1] * block[m];
      crops.push_back(static_cast<int32_t>(random.Int(0, size)));
      crops.push_back(static_cast<int32_t>(random.Int(0, size - crops.back())));
    }
    const auto tensor = RandomTensor(random, kWidths[i % 4], shape);
    OpTester tester("BATCH_TO_SPACE_ND");
    tester.Input(tensor).Constant(Ints(block)).Constant(Pairs(crops));
    ExpectMoved(tester, random, [&](int, Index o) {
      int64_t position = 0;
      for (int m = 0; m < spatial; ++m) {
        const int64_t at = o[m + 1] + crops[2 * m];
        position = position * block[m] + at % block[m];
        o[m + 1] = at / block[m];
      }
      o[0] += position * images;
      return ElementOf(tensor, Flatten(shape, o));
    });
  }
}

TEST(ReverseTest, MatchesItsDefinition) {
  for (int i = 0; i < kCases; ++i) {
    Random random(800 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(1, 4));
    const Shape shape = RandomShape(random, rank, 7);
    std::vector<int32_t> axes;
    for (int d = 0; d < rank; ++d) {
      if (random.Chance(0.5)) axes.push_back(random.Chance(0.5) ? d : d - rank);
    }
    const auto tensor = RandomTensor(random, kWidths[i % 4], shape);
    OpTester tester("REVERSE_V2");
    tester.Input(tensor).Constant(Ints(axes));
    ExpectMoved(tester, random, [&](int, Index o) {
      for (int32_t axis : axes) {
        const int d = axis < 0 ? axis + rank : axis;
        o[d] = shape[d] - 1 - o[d];
      }
      return ElementOf(tensor, Flatten(shape, o));
    });
  }
}

TEST(ReverseSequenceTest, MatchesItsDefinition) {
  for (int i = 0; i < kCases; ++i) {
    Random random(900 + i);
    SCOPED_TRACE(random.Trace());
    const int rank = static_cast<int>(random.Int(2, 4));
    const int seq = static_cast<int>(random.Int(0, rank - 1));
    const int batch = (seq + static_cast<int>(random.Int(1, rank - 1))) % rank;
    const Shape shape = RandomShape(random, rank, 6);
    std::vector<int32_t> lengths;
    for (int b = 0; b < shape[batch]; ++b) {
      lengths.push_back(static_cast<int32_t>(random.Int(0, shape[seq])));
    }
    const auto tensor = RandomTensor(random, kWidths[i % 4], shape, false);
    OpTester tester("REVERSE_SEQUENCE");
    tester.params<ReverseSequenceParams>() = {seq, batch};
    tester.Input(tensor).Input(Ints(lengths));
    ExpectMoved(
        tester, random,
        [&](int, Index o) {
          const int32_t length = lengths[o[batch]];
          if (o[seq] < length) o[seq] = length - 1 - o[seq];
          return ElementOf(tensor, Flatten(shape, o));
        },
        false);
  }
}

TEST(ReverseSequenceTest, FailsOnLengthsOutOfRange) {
  OpTester tester("REVERSE_SEQUENCE");
  tester.params<ReverseSequenceParams>() = {1, 0};
  tester.Input(Zeros({1, 3})).Input(Ints({4}));
  ASSERT_TRUE(tester.Infer().ok());
  EXPECT_EQ(tester.Run("reference", Isa::kScalar).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fuselite::kernels::testing
