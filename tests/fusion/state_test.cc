// What is read of the host's state before a node changes it stays what it was.
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::ElementsAre;
using Read = ValueId (*)(GraphBuilder&, ValueId);

// `early` reads the state before RNN changes it, `late` what `early` read, after.
void ExpectReadBeforeWritten(Read early, Read late) {
  GraphBuilder b;
  const ValueId x = b.Input({2, 3}), state = b.Variable({2, 6});
  const ValueId read = early(b, state);
  b.Output(b.Rnn(x, state));
  b.Output(late(b, read));
  ExpectFusedEqualsUnfused(b.graph(), 1e-6f);
}

ValueId Half(GraphBuilder& b, ValueId v) { return b.Op("MUL", {v, b.Scalar(0.5f)}); }
ValueId Plus0(GraphBuilder& b, ValueId v) { return b.Op("ADD", {v, b.Scalar(0)}); }
ValueId Negative(GraphBuilder& b, ValueId v) { return b.Op("NEG", {v}); }
ValueId Logistic(GraphBuilder& b, ValueId v) { return b.Op("LOGISTIC", {v}); }
ValueId Reshaped(GraphBuilder& b, ValueId v) { return b.Op("RESHAPE", {v, b.Ints({3, 4})}); }
ValueId Flat(GraphBuilder& b, ValueId v) { return b.Op("RESHAPE", {v, b.Ints({12})}); }
ValueId Turned(GraphBuilder& b, ValueId v) { return b.Op("TRANSPOSE", {v, b.Ints({1, 0})}); }
ValueId Rows(GraphBuilder& b, ValueId v) {
  return b.Op("SLICE", {v, b.Ints({0, 0}), b.Ints({1, b.shape(v)[1]})});
}
ValueId Doubled(GraphBuilder& b, ValueId v) {
  return b.Op("CONCATENATION", {v, Negative(b, v)}, {{"axis", 0}});
}
ValueId Layer(GraphBuilder& b, ValueId v) { return b.Dense(v, 5); }
ValueId Mean(GraphBuilder& b, ValueId v) {
  return b.Op("MEAN", {v, b.Ints({1})}, {{"keep_dims", 1}});
}
ValueId Gated(GraphBuilder& b, ValueId v) { return b.Op("MUL", {v, b.Op("LOGISTIC", {v})}); }

TEST(State, IsReadBeforeItIsWritten) {
  for (const Read early :
       {Half, Plus0, Negative, Logistic, Reshaped, Turned, Rows, Doubled, Layer, Mean, Gated}) {
    for (const Read late : {Half, Negative, Flat, Turned, Gated}) {
      GraphBuilder probe;
      const ValueId read = early(probe, probe.Input({2, 6}));
      if (late == Flat && probe.graph().value(read).info.elements() != 12) continue;
      if (late == Turned && probe.shape(read).rank() != 2) continue;
      ExpectReadBeforeWritten(early, late);
      if (HasFailure()) return;
    }
  }
}

TEST(State, IsMovedThoughNobodyReadsWhatTheNodeGives) {
  GraphBuilder b;
  const ValueId x = b.Input({2, 3});
  b.Rnn(x, b.Variable({2, 6}));
  b.Output(b.Op("NEG", {x}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("RNN", "NEG"));
}

TEST(State, ALayerThatReadsItTakesNoTail) {
  GraphBuilder b;
  const ValueId state = b.Variable({2, 6});
  const ValueId half = Half(b, state);
  b.Output(b.Rnn(b.Input({2, 3}), state));
  b.Output(Negative(b, half));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 0).ops(), ElementsAre("MUL", "RNN", "NEG"));
}

// SiLU's x, read once before it is written and once behind.
TEST(State, IsNoOperandOfAPatternThatReadsItTwice) {
  GraphBuilder b;
  const ValueId state = b.Variable({2, 6});
  const ValueId gate = b.Op("LOGISTIC", {state});
  b.Output(b.Rnn(b.Input({2, 3}), state));
  b.Output(b.Op("MUL", {state, gate}));
  EXPECT_THAT(ExpectFusedEqualsUnfused(b.graph(), 1e-6f).ops(),
              ElementsAre("LOGISTIC", "RNN", "MUL"));
}

}  // namespace
}  // namespace fuselite::fusion::testing
