#include "runtime/execution/executable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "runtime/memory/aligned_buffer.h"
#include "tests/runtime/toy_kernels.h"

namespace fuselite {
namespace {

using testing::HasSubstr;

constexpr int64_t kUnits = 100;
constexpr size_t kBytes = kUnits * sizeof(float);

ToyKernel Nothing(int64_t units = kUnits, int64_t grain = 1) {
  return ToyKernel(
      units, [](const KernelArgs&, int, int64_t, int64_t) { return Status(); }, grain);
}

std::string BuildError(ExecutableBuilder builder) {
  return std::move(builder).Build().status().ToString();
}

TEST(ExecutableBuilder, ResolvesPlacesAndAliases) {
  ExecutableBuilder b;
  const float data[4] = {};
  const int in = b.AddInput(kBytes), out = b.AddOutput(kBytes), variable = b.AddVariable(8);
  const int constant = b.AddConstant(data, sizeof(data));
  const int second = b.AddInput(12);
  const int temporary = b.AddTemporary(kBytes);
  const int part = b.AddAlias(temporary, 64, 128), inner = b.AddAlias(part, 32, 16);
  const int slice = b.AddAlias(constant, 8, 4), head = b.AddAlias(out, 4, 8);
  b.AddStep(MakeStep("a", Nothing(), {in, constant, -1}, {temporary}));
  b.AddStep(MakeStep("b", Nothing(), {inner, slice, second, variable}, {out, head}));
  const auto built = std::move(b).Build();
  ASSERT_TRUE(built.ok()) << built.status().ToString();
  const Executable& e = **built;
  EXPECT_EQ(e.inputs(), 2);
  EXPECT_EQ(e.outputs(), 1);
  EXPECT_EQ(e.variables(), 1);
  EXPECT_EQ(e.values()[second].index, 1);
  EXPECT_EQ(e.values()[inner].placement, Placement::kArena);
  EXPECT_EQ(e.values()[inner].offset, e.values()[temporary].offset + 96);
  EXPECT_EQ(e.values()[slice].data, data + 2);
  EXPECT_EQ(e.values()[head].placement, Placement::kOutput);
  EXPECT_EQ(e.values()[head].offset, 4u);
  EXPECT_GE(e.arena_bytes(), kBytes);
}

TEST(ExecutableBuilder, ReusesMemoryOfValuesThatAreDead) {
  ExecutableBuilder b;
  const int in = b.AddInput(kBytes), out = b.AddOutput(kBytes);
  int last = in;
  for (int i = 0; i < 10; ++i) {
    const int next = b.AddTemporary(kBytes);
    b.AddStep(MakeStep("s", Nothing(), {last}, {next}));
    last = next;
  }
  b.AddStep(MakeStep("s", Nothing().Scratch(100, 1000), {last}, {out}));
  const auto built = std::move(b).Build();
  ASSERT_TRUE(built.ok());
  EXPECT_LT((*built)->arena_bytes(), 2 * AlignUp(kBytes) + 1024 + 64);
  EXPECT_EQ((*built)->scratch_bytes(), 128u);
}

// Values of some pages begin at other places in a page than the ones before them; smaller ones lie
// close together.
TEST(ExecutableBuilder, PartsLargeValues) {
  for (const size_t bytes : {size_t{8} << 10, size_t{16} << 10, size_t{64} << 10}) {
    ExecutableBuilder b;
    const int out = b.AddOutput(kBytes), first = b.AddTemporary(bytes);
    const int second = b.AddTemporary(bytes), third = b.AddTemporary(bytes);
    b.AddStep(MakeStep("write", Nothing(), {}, {first, second, third}));
    b.AddStep(MakeStep("read", Nothing(), {first, second, third}, {out}));
    const auto built = std::move(b).Build();
    ASSERT_TRUE(built.ok());
    std::set<size_t> places;
    for (const int value : {first, second, third}) {
      places.insert((*built)->values()[value].offset % 4096);
    }
    const bool large = bytes >= 16 << 10;
    EXPECT_EQ(places.size(), large ? 3u : 1u) << bytes;
    EXPECT_EQ((*built)->arena_bytes(), 3 * (bytes + (large ? 192 : 0)));
  }
}

TEST(ExecutableBuilder, RefusesWhatCannotRun) {
  ExecutableBuilder read_first;
  const int t = read_first.AddTemporary(4);
  read_first.AddStep(MakeStep("reader", Nothing(), {t}, {}));
  EXPECT_THAT(BuildError(std::move(read_first)), HasSubstr("step reader reads value 0 before"));

  ExecutableBuilder writes_input;
  const int in = writes_input.AddInput(4);
  writes_input.AddStep(MakeStep("writer", Nothing(), {}, {in}));
  EXPECT_THAT(BuildError(std::move(writes_input)), HasSubstr("step writer writes value 0, which"));

  ExecutableBuilder bad_id;
  bad_id.AddStep(MakeStep("s", Nothing(), {3}, {}));
  EXPECT_THAT(BuildError(std::move(bad_id)), HasSubstr("names value 3 of 0"));

  ExecutableBuilder unwritten;
  unwritten.AddOutput(4);
  EXPECT_THAT(BuildError(std::move(unwritten)), HasSubstr("no step writes output 0"));

  ExecutableBuilder huge;
  huge.AddTemporary(size_t{1} << 50);
  EXPECT_THAT(BuildError(std::move(huge)), HasSubstr("more than any machine"));

  ExecutableBuilder many;
  for (int i = 0; i <= 1 << 20; ++i) many.AddTemporary(0);
  EXPECT_THAT(BuildError(std::move(many)), HasSubstr("values are too many"));

  ExecutableBuilder no_data;
  no_data.AddConstant(nullptr, 4);
  EXPECT_THAT(BuildError(std::move(no_data)), HasSubstr("constant 0 has no data"));

  ExecutableBuilder no_kernel;
  Step hollow;
  hollow.name = "hollow";
  no_kernel.AddStep(std::move(hollow));
  EXPECT_THAT(BuildError(std::move(no_kernel)), HasSubstr("hollow has no kernel"));
}

TEST(ExecutableBuilder, TakesPartsOfWhatHasThem) {
  constexpr size_t kMost = SIZE_MAX;
  struct {
    int of;
    size_t offset, bytes;
    bool has;
  } const kParts[] = {
      {0, 0, 10, true},     {0, 10, 0, true},  {0, 3, 7, true},   {0, 8, 3, false},
      {0, 11, 0, false},    {0, 11, 5, false}, {0, 0, 11, false}, {0, 5, size_t{1} << 40, false},
      {0, kMost, 1, false}, {1, 0, 0, false},  {2, 0, 0, false},  {-1, 0, 0, false}};
  for (const auto& [of, offset, bytes, has] : kParts) {
    ExecutableBuilder b;
    b.AddTemporary(10);
    b.AddAlias(of, offset, bytes);
    const std::string error = BuildError(std::move(b));
    EXPECT_EQ(error == "ok", has) << error;
    if (!has) {
      EXPECT_THAT(error, HasSubstr("of value " + std::to_string(of) + ", which"));
    }
  }
}

TEST(ExecutableBuilder, NamesTheFirstOfItsErrors) {
  ExecutableBuilder b;
  b.AddAlias(b.AddTemporary(10), 8, 3);
  b.AddAlias(0, 9, 9);
  b.AddTemporary(size_t{1} << 50);
  EXPECT_THAT(BuildError(std::move(b)), HasSubstr("value 1 is bytes [8, 11)"));
}

TEST(ExecutableBuilder, AsksNothingOfWhatHasNoBytes) {
  ExecutableBuilder b;
  b.AddOutput(0);
  b.AddConstant(nullptr, 0);
  EXPECT_EQ(BuildError(std::move(b)), "ok");
}

TEST(ExecutableBuilder, KnowsWhatMayBeReadAndWritten) {
  using Add = int (*)(ExecutableBuilder&, size_t);
  static const float data[4] = {};
  struct {
    const char* what;
    Add add;
    bool given, writable;
  } const kPlaces[] = {
      {"input", [](auto& b, size_t n) { return b.AddInput(n); }, true, false},
      {"output", [](auto& b, size_t n) { return b.AddOutput(n); }, false, true},
      {"variable", [](auto& b, size_t n) { return b.AddVariable(n); }, true, true},
      {"temporary", [](auto& b, size_t n) { return b.AddTemporary(n); }, false, true},
      {"constant", [](auto& b, size_t n) { return b.AddConstant(data, n); }, true, false},
  };
  for (const auto& [what, add, given, writable] : kPlaces) {
    SCOPED_TRACE(what);
    for (const size_t bytes : {size_t{0}, size_t{16}}) {
      ExecutableBuilder reads, writes;
      const int out = reads.AddOutput(4);
      reads.AddStep(MakeStep("s", Nothing(), {add(reads, bytes)}, {out}));
      // What has no bytes has nothing to be read too early, and no output to be written.
      const std::string error = BuildError(std::move(reads));
      if (what == std::string("output") && bytes == 0) continue;
      EXPECT_EQ(error == "ok", given || bytes == 0) << error;
      writes.AddStep(MakeStep("s", Nothing(), {}, {add(writes, bytes)}));
      EXPECT_EQ(BuildError(std::move(writes)) == "ok", writable);
    }
    ExecutableBuilder part, later;
    const int whole = add(part, 16), out = part.AddOutput(4);
    part.AddStep(MakeStep("s", Nothing(), {part.AddAlias(whole, 8, 8)}, {out}));
    EXPECT_EQ(BuildError(std::move(part)) == "ok", given) << "a part of it";
    if (!writable) continue;
    const int value = add(later, 16), read = later.AddOutput(4);
    later.AddStep(MakeStep("reads", Nothing(), {value}, {read}));
    later.AddStep(MakeStep("writes", Nothing(), {}, {value}));
    EXPECT_EQ(BuildError(std::move(later)) == "ok", given) << "it is written later";
  }
}

TEST(ExecutableBuilder, TakesNamesOfValuesThatThereAre) {
  for (const int id : {-2, 1, 1 << 30}) {
    for (const bool read : {true, false}) {
      ExecutableBuilder b;
      const int out = b.AddOutput(4);
      b.AddStep(MakeStep("s", Nothing(), {read ? id : -1}, {out, read ? -1 : id}));
      EXPECT_THAT(BuildError(std::move(b)), HasSubstr("names value"));
    }
  }
  ExecutableBuilder b;
  const int out = b.AddOutput(4);
  b.AddStep(MakeStep("s", Nothing(), {-1}, {out, -1}));
  EXPECT_EQ(BuildError(std::move(b)), "ok");
}

TEST(Stages, WaitOnlyForWhatTheyNeed) {
  ExecutableBuilder b;
  const int in = b.AddInput(kBytes), out = b.AddOutput(kBytes);
  const int left = b.AddTemporary(kBytes), right = b.AddTemporary(kBytes);
  b.AddStep(MakeStep("left", Nothing(), {in}, {left}));
  b.AddStep(MakeStep("right", Nothing(), {in}, {right}));  // independent of left
  b.AddStep(MakeStep("join", Nothing(), {left, right}, {out}));
  const auto built = std::move(b).Build();
  ASSERT_TRUE(built.ok());
  const auto stages = (*built)->stages();
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_FALSE(stages[0].waits);
  EXPECT_FALSE(stages[1].waits);
  EXPECT_TRUE(stages[2].waits);
}

// What was written before a wait is there: nobody waits for it again.
TEST(Stages, WaitOnceForWhatIsBeforeAWait) {
  ExecutableBuilder b;
  const int in = b.AddInput(kBytes), first = b.AddTemporary(kBytes), out = b.AddOutput(kBytes);
  b.AddStep(MakeStep("first", Nothing(), {in}, {first}));
  b.AddStep(MakeStep("two", Nothing().Phases({50, 60}), {in}, {b.AddOutput(0)}));
  b.AddStep(MakeStep("third", Nothing(), {first}, {out}));
  const auto built = std::move(b).Build();
  ASSERT_TRUE(built.ok());
  const auto stages = (*built)->stages();
  ASSERT_EQ(stages.size(), 4u);
  EXPECT_TRUE(stages[2].waits);
  EXPECT_FALSE(stages[3].waits);
}

TEST(Stages, WaitForWhoeverUsesTheSameVariable) {
  ExecutableBuilder b;
  const int in = b.AddInput(kBytes), state = b.AddVariable(kBytes);
  b.AddStep(MakeStep("first", Nothing(), {in, state}, {b.AddOutput(kBytes)}));
  b.AddStep(MakeStep("second", Nothing(), {in, state}, {b.AddOutput(kBytes)}));
  const auto built = std::move(b).Build();
  ASSERT_TRUE(built.ok());
  EXPECT_TRUE((*built)->stages()[1].waits);
}

TEST(Stages, WaitWhereMemoryIsReused) {
  ExecutableBuilder b;
  const int in = b.AddInput(kBytes), out = b.AddOutput(2 * kBytes);
  const int a = b.AddTemporary(kBytes), c = b.AddTemporary(kBytes);
  const int low = b.AddAlias(out, 0, kBytes), high = b.AddAlias(out, kBytes, kBytes);
  b.AddStep(MakeStep("a", Nothing(), {in}, {a}));
  b.AddStep(MakeStep("low", Nothing(), {a}, {low}));
  b.AddStep(MakeStep("c", Nothing(), {in}, {c}));  // in the memory of a, which low still reads
  b.AddStep(MakeStep("high", Nothing(), {c}, {high}));
  const auto built = std::move(b).Build();
  ASSERT_TRUE(built.ok());
  EXPECT_EQ((*built)->values()[a].offset, (*built)->values()[c].offset);
  EXPECT_TRUE((*built)->stages()[1].waits);
  EXPECT_TRUE((*built)->stages()[2].waits);
  EXPECT_TRUE((*built)->stages()[3].waits);
}

TEST(Stages, PartsOfOneOutputAreIndependent) {
  ExecutableBuilder b;
  const int in = b.AddInput(kBytes), out = b.AddOutput(2 * kBytes);
  const int low = b.AddAlias(out, 0, kBytes), high = b.AddAlias(out, kBytes, kBytes);
  b.AddStep(MakeStep("low", Nothing(), {in}, {low}));
  b.AddStep(MakeStep("high", Nothing(), {in}, {high}));
  b.AddStep(MakeStep("other", Nothing(), {in}, {b.AddOutput(2 * kBytes)}));
  const int third = b.AddOutput(2 * kBytes);
  b.AddStep(MakeStep("high", Nothing(), {in}, {b.AddAlias(third, kBytes, kBytes)}));
  b.AddStep(MakeStep("low", Nothing(), {in}, {b.AddAlias(third, 0, kBytes)}));
  const auto built = std::move(b).Build();
  ASSERT_TRUE(built.ok());
  for (const Stage& stage : (*built)->stages()) EXPECT_FALSE(stage.waits);
}

TEST(Stages, SmallPhasesInARowAreOneStage) {
  ExecutableBuilder b;
  const int in = b.AddInput(kBytes), out = b.AddOutput(kBytes);
  const int t = b.AddTemporary(kBytes), u = b.AddTemporary(kBytes);
  b.AddStep(MakeStep("big", Nothing(), {in}, {t}));
  b.AddStep(MakeStep("small", Nothing(29, 20), {t}, {u}));
  b.AddStep(MakeStep("empty", Nothing(0), {u}, {u}));
  b.AddStep(MakeStep("small2", Nothing().Phases({1, 1}), {u}, {out}));
  const auto built = std::move(b).Build();
  ASSERT_TRUE(built.ok());
  const auto stages = (*built)->stages();
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[1].parts.size(), 3u);
  EXPECT_EQ(stages[1].units, 1);
  EXPECT_TRUE(stages[1].waits);
}

TEST(Stages, OneAndAHalfGrainsAreShared) {
  for (const int64_t units : {29, 30}) {
    ExecutableBuilder b;
    const int in = b.AddInput(kBytes), out = b.AddOutput(kBytes), t = b.AddTemporary(kBytes);
    b.AddStep(MakeStep("a", Nothing(units, 20), {in}, {t}));
    b.AddStep(MakeStep("b", Nothing(units, 20), {t}, {out}));
    const auto built = std::move(b).Build();
    ASSERT_TRUE(built.ok());
    EXPECT_EQ((*built)->stages().size(), units == 29 ? 1u : 2u);
    EXPECT_EQ((*built)->stages()[0].is_row(), units == 29);
  }
}

// What reads much is shared however short it is, if there are units for it.
TEST(Stages, LittleWorkOnManyBytesIsShared) {
  constexpr size_t kMany = 16 << 10;
  for (const auto& [bytes, units, shared] :
       {std::tuple(kMany, 12, true), {kMany, 4, true}, {kMany, 3, false}, {kMany - 1, 12, false}}) {
    ExecutableBuilder b;
    b.AddStep(MakeStep("s", Nothing(units, 20), {b.AddInput(bytes)}, {b.AddOutput(kBytes)}));
    const auto built = std::move(b).Build();
    ASSERT_TRUE(built.ok());
    const Stage& stage = (*built)->stages()[0];
    EXPECT_EQ(stage.is_row(), !shared) << bytes << ' ' << units;
    EXPECT_EQ(stage.grain, shared ? units / 4 : units + 1) << bytes << ' ' << units;
  }
}

TEST(Stages, PhasesOfAStepWaitForEachOther) {
  for (const std::vector<int64_t>& phases : {std::vector<int64_t>{50, 60}, {1, 60}, {60, 1}}) {
    ExecutableBuilder b;
    const int in = b.AddInput(0), out = b.AddOutput(0);  // no bytes that could conflict
    b.AddStep(MakeStep("two", Nothing().Phases(phases), {in}, {out}));
    const auto built = std::move(b).Build();
    ASSERT_TRUE(built.ok());
    ASSERT_EQ((*built)->stages().size(), 2u);
    EXPECT_TRUE((*built)->stages()[1].waits) << phases[0];
  }
}

TEST(UsefulThreads, FollowUnitsGrainAndCost) {
  const auto useful = [](int64_t units, int64_t grain, double cost) {
    ExecutableBuilder b;
    const int in = b.AddInput(kBytes), out = b.AddOutput(kBytes);
    b.AddStep(MakeStep("s", Nothing(units, grain), {in}, {out}, cost));
    return (*std::move(b).Build())->useful_threads();
  };
  EXPECT_EQ(useful(100, 1, 1e9), 100);
  EXPECT_EQ(useful(100, 30, 1e9), 3);
  EXPECT_EQ(useful(100, 60, 1e9), 1);
  EXPECT_EQ(useful(100, 1, 1000), 1);
  EXPECT_EQ(useful(100, 1, -1), 100);
}

}  // namespace
}  // namespace fuselite
