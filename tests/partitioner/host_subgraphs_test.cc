// The other subgraphs of hosts that show less than they should, and what is read of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/stablehlo/region.h"
#include "partitioner/claim/variables.h"
#include "partitioner/import/subgraphs.h"
#include "runtime/tflite/builtin_codes.h"
#include "runtime/tflite/params.h"
#include "tests/partitioner/fake_host.h"

namespace fuselite::partitioner {
namespace {

using ::testing::ElementsAre;
using testing::FakeHost;
using ::testing::HasSubstr;
using namespace tflite;

// A graph whose host shows another one as each of its subgraphs.
class HostSubgraphTest : public ::testing::Test {
 protected:
  HostSubgraphTest() {
    shown = {};
    shown.graph = &other_.context;
    host_.context.AcquireSubgraphContext = [](TfLiteContext*, int, TfLiteContext** graph) {
      *graph = shown.graph;
      return shown.status;
    };
    host_.context.ReleaseSubgraphContext = [](TfLiteContext*, int) {
      ++shown.released;
      return kTfLiteOk;
    };
    for (int i = 0; i < 2; ++i) value_ = Add(value_);
  }
  int Add(int value) {
    const int out = other_.AddTensor({1, 4});
    other_.AddNode("ABS", {value}, {out});
    return out;
  }
  Result<HostSubgraph> Acquire() { return HostSubgraph::Acquire(&host_.context, 1); }

  struct Shown {
    TfLiteContext* graph = nullptr;
    TfLiteStatus status = kTfLiteOk;
    int released = 0;
  };
  static Shown shown;
  FakeHost host_, other_;
  int value_ = other_.AddTensor({1, 4});
};

HostSubgraphTest::Shown HostSubgraphTest::shown;

TEST_F(HostSubgraphTest, IsThereWhereTheHostGivesOneAndSaysSo) {
  EXPECT_TRUE(Acquire().ok());
  shown.status = kTfLiteError;
  EXPECT_EQ(Acquire().status().message(), "there is no subgraph 1");
  shown.status = kTfLiteOk;
  shown.graph = nullptr;
  EXPECT_EQ(Acquire().status().message(), "there is no subgraph 1");
}

TEST_F(HostSubgraphTest, IsGivenBackUnlessItIsTheCallersOwn) {
  { const Result<HostSubgraph> acquired = Acquire(); }
  EXPECT_EQ(shown.released, 1);
  shown.graph = &host_.context;
  { const Result<HostSubgraph> acquired = Acquire(); }
  EXPECT_EQ(shown.released, 1);
}

TEST_F(HostSubgraphTest, PlansAreTheFilesNodes) {
  EXPECT_THAT(*Acquire()->Plan(), ElementsAre(0, 1));
  // A delegate has taken the second one, and says which nodes that were.
  const IntArrayPtr nodes = MakeIntArray(std::vector{5, 7});
  TfLiteDelegateParams params{};
  params.nodes_to_replace = nodes.get();
  TfLiteDelegate delegate{};
  other_.nodes[1].delegate = &delegate;
  other_.nodes[1].builtin_data = &params;
  EXPECT_THAT(*Acquire()->Plan(), ElementsAre(0, 5, 7));
  other_.nodes[1].builtin_data = nullptr;
  EXPECT_EQ(Acquire()->Plan().status().message(), "a delegate has taken nodes of subgraph 1");
}

TEST_F(HostSubgraphTest, NodesThatAreNotShownAreNone) {
  using Shows = FakeHost::Shows;
  for (const Shows shows : {Shows::kError, Shows::kNoNode, Shows::kNoRegistration}) {
    other_.shows = {{1, shows}};
    EXPECT_EQ(Acquire()->Plan().status().message(), "the host does not show node 1 of a subgraph");
  }
  other_.shows.clear();
  other_.fail_plan = true;
  EXPECT_EQ(Acquire()->Plan().status().message(), "the host does not show the plan of a subgraph");
}

// Tensor 0 is what the caller gives, 1 and 2 are made.
TEST_F(HostSubgraphTest, InputsAreTheFirstTensors) {
  EXPECT_THAT(*Acquire()->Inputs(1), ElementsAre(0));
  EXPECT_THAT(Acquire()->Inputs(2).status().message(), HasSubstr("are not its first 2 tensors"));
  EXPECT_THAT(Acquire()->Inputs(0).status().message(), HasSubstr("are not its first 0 tensors"));
  // Nobody makes another one that is read.
  const int stray = other_.AddTensor({1, 4}), out = other_.AddTensor({1, 4});
  other_.AddNode("ADD", {value_, stray}, {out});
  EXPECT_THAT(Acquire()->Inputs(1).status().message(), HasSubstr("are not its first 1 tensors"));
  other_.context.tensors[stray].is_variable = true;
  EXPECT_THAT(*Acquire()->Inputs(1), ElementsAre(0));
}

TEST_F(HostSubgraphTest, InputsMustBeThere) {
  FakeHost empty;
  shown.graph = &empty.context;
  empty.AddTensor({1, 4});
  EXPECT_THAT(*Acquire()->Inputs(1), ElementsAre(0));
  EXPECT_THAT(Acquire()->Inputs(2).status().message(), HasSubstr("are not its first 2 tensors"));
}

TEST_F(HostSubgraphTest, OutputsAreWhatTheHostWouldGiveOut) {
  other_.SetOutputs({value_});
  const int result = host_.AddTensor({1, 4});
  EXPECT_THAT(*Acquire()->Outputs(host_.context, std::array{result}), ElementsAre(value_));
  EXPECT_THAT(Acquire()->Outputs(host_.context, std::array{result, result}).status().message(),
              HasSubstr("gives 1 tensors, expected 2"));
  other_.fail_preview = true;
  EXPECT_THAT(Acquire()->Outputs(host_.context, std::array{result}).status().message(),
              HasSubstr("does not show the outputs"));
}

// Several are told apart by type and shape.
TEST_F(HostSubgraphTest, OutputsOfOneKindHaveNoOrder) {
  const int other = Add(value_), wide = other_.AddTensor({1, 8});
  other_.AddNode("CONCATENATION", {value_, other}, {wide});
  const int of_one = host_.AddTensor({1, 4}), of_other = host_.AddTensor({1, 8});
  const int of_none = host_.AddTensor({1, 5});
  const auto outputs = [&](std::array<int, 2> results) {
    return Acquire()->Outputs(host_.context, results);
  };
  const auto unclear = HasSubstr("does not show the order of the outputs");
  other_.SetOutputs({other, wide});
  EXPECT_THAT(*outputs({of_one, of_other}), ElementsAre(other, wide));
  EXPECT_THAT(*outputs({of_other, of_one}), ElementsAre(wide, other));
  EXPECT_THAT(outputs({of_one, of_none}).status().message(), unclear);
  EXPECT_THAT(outputs({of_one, of_one}).status().message(), unclear);
  other_.SetOutputs({value_, other});
  EXPECT_THAT(outputs({of_one, of_one}).status().message(), unclear);
}

TEST_F(HostSubgraphTest, OutputsAreThoseOfOnePartition) {
  other_.SetOutputs({value_});
  const int result = host_.AddTensor({1, 4});
  static decltype(other_.context.PreviewDelegatePartitioning) preview;
  preview = other_.context.PreviewDelegatePartitioning;
  other_.context.PreviewDelegatePartitioning = [](TfLiteContext* context,
                                                  const TfLiteIntArray* taken,
                                                  TfLiteDelegateParams** params, int* count) {
    const TfLiteStatus status = preview(context, taken, params, count);
    *count = 2;
    return status;
  };
  EXPECT_THAT(Acquire()->Outputs(host_.context, std::array{result}).status().message(),
              HasSubstr("does not show the outputs"));
}

// Names tell the order of two inputs that are alike, where they have any.
TEST_F(HostSubgraphTest, InputsOfOneKindHaveNamesOrNoOrder) {
  FakeHost two;
  shown.graph = &two.context;
  const int x = two.AddTensor({1, 4}), y = two.AddTensor({1, 4});
  two.AddNode("ADD", {x, y}, {two.AddTensor({1, 4})});
  const auto unclear = HasSubstr("does not show the order of the inputs");
  two.context.tensors[x].name = "block.impl_arg0";
  two.context.tensors[y].name = nullptr;
  EXPECT_THAT(Acquire()->Inputs(2).status().message(), unclear);
  two.context.tensors[y].name = "block.impl_arg1";
  EXPECT_THAT(*Acquire()->Inputs(2), ElementsAre(x, y));
}

// The function of a scatter would be the scatter itself.
TEST_F(HostSubgraphTest, RegionsAreOtherSubgraphs) {
  const int x = host_.AddTensor({4}), at = host_.AddTensor({1, 1}, DataType::kInt32);
  const int y = host_.AddTensor({4});
  const int node = host_.AddNode("STABLEHLO_SCATTER", {x, at, x}, {y});
  shown.graph = &host_.context;
  EXPECT_THAT(ImportNode(&host_.context, node, true).status().message(),
              HasSubstr("it runs its own subgraph"));
  // Another one that says what is done with both values.
  FakeHost sum;
  sum.AddNode("STABLEHLO_ADD", {sum.AddTensor({}), sum.AddTensor({})}, {sum.AddTensor({})});
  shown.graph = &sum.context;
  const Result<ImportedNode> added = ImportNode(&host_.context, node, true);
  EXPECT_TRUE(added.ok()) << added.status().ToString();
}

class FakeVariables : public HostSubgraphTest {
 protected:
  FakeVariables() { other_.fail_plan = true; }  // nobody looks there
  std::string WhyNot(int node) {
    std::vector<int> plan(host_.nodes.size());
    for (size_t i = 0; i < plan.size(); ++i) plan[i] = static_cast<int>(i);
    const GraphVariables variables(&host_.context, plan);
    EXPECT_TRUE(variables.Concerns(node));
    return variables.Import(node).status().message();
  }
  int handle_ = host_.AddTensor({1}, DataType::kInt32), value_ = host_.AddTensor({1, 8});
  TfLiteVarHandleParams unnamed_{};
};

TEST_F(FakeVariables, AreTheHostsWhereItHidesItsSubgraphs) {
  host_.context.AcquireSubgraphContext = nullptr;
  host_.AddControlFlow(kTfLiteBuiltinVarHandle, {}, {handle_}, &unnamed_);
  const int read = host_.AddControlFlow(kTfLiteBuiltinReadVariable, {handle_}, {value_}, nullptr);
  EXPECT_EQ(WhyNot(read), "the host does not show who initializes the variables");
}

TEST_F(FakeVariables, HaveHandlesThatAreTensors) {
  for (const int handle : {-1, 1 << 20}) {
    const int node = host_.AddControlFlow(kTfLiteBuiltinVarHandle, {}, {handle}, &unnamed_);
    EXPECT_THAT(WhyNot(node), HasSubstr("reads or assigns no value"));
  }
}

TEST_F(FakeVariables, AreReadIntoOneTensor) {
  host_.AddControlFlow(kTfLiteBuiltinVarHandle, {}, {handle_}, nullptr);
  const int read =
      host_.AddControlFlow(kTfLiteBuiltinReadVariable, {handle_}, {value_, value_}, nullptr);
  EXPECT_THAT(WhyNot(read), HasSubstr("reads or assigns no value"));
}

TEST_F(FakeVariables, AreFilledBySubgraphsThatAreNamed) {
  host_.AddControlFlow(kTfLiteBuiltinCallOnce, {}, {}, nullptr);
  host_.AddControlFlow(kTfLiteBuiltinVarHandle, {}, {handle_}, &unnamed_);
  const int read = host_.AddControlFlow(kTfLiteBuiltinReadVariable, {handle_}, {value_}, nullptr);
  host_.context.AcquireSubgraphContext = nullptr;
  EXPECT_EQ(WhyNot(read), "the host does not show who initializes the variables");
}

TEST_F(FakeVariables, HaveOneHandleOfNothingElse) {
  const int other = host_.AddTensor({1}, DataType::kInt32);
  host_.AddControlFlow(kTfLiteBuiltinVarHandle, {}, {handle_, other}, &unnamed_);
  const int read = host_.AddControlFlow(kTfLiteBuiltinReadVariable, {handle_}, {value_}, nullptr);
  EXPECT_THAT(WhyNot(read), HasSubstr("whose handle is no VAR_HANDLE's"));
}

TEST_F(FakeVariables, AreFilledWithConstantsAlone) {
  TfLiteCallOnceParams first{.init_subgraph_index = 0};
  host_.AddControlFlow(kTfLiteBuiltinCallOnce, {}, {}, &first);
  host_.AddControlFlow(kTfLiteBuiltinVarHandle, {}, {handle_}, &unnamed_);
  const int read = host_.AddControlFlow(kTfLiteBuiltinReadVariable, {handle_}, {value_}, nullptr);
  for (const bool to_two : {false, true}) {
    FakeHost initializer;
    shown.graph = &initializer.context;
    const int handle = initializer.AddTensor({1}, DataType::kInt32);
    const int value = initializer.AddTensor({1, 8});
    initializer.AddControlFlow(kTfLiteBuiltinVarHandle, {}, {handle}, &unnamed_);
    const std::vector<int> outputs = to_two ? std::vector{value} : std::vector<int>();
    initializer.AddControlFlow(kTfLiteBuiltinAssignVariable, {handle, value}, outputs, nullptr);
    EXPECT_THAT(WhyNot(read), HasSubstr(to_two ? "CALL_ONCE runs ASSIGN_VARIABLE"
                                               : "CALL_ONCE assigns what is no constant"));
  }
}

TEST_F(FakeVariables, AreFilledByNodesThatAreShown) {
  TfLiteCallOnceParams first{.init_subgraph_index = 1};
  host_.AddControlFlow(kTfLiteBuiltinCallOnce, {}, {}, &first);
  host_.AddControlFlow(kTfLiteBuiltinVarHandle, {}, {handle_}, &unnamed_);
  const int read = host_.AddControlFlow(kTfLiteBuiltinReadVariable, {handle_}, {value_}, nullptr);
  other_.fail_plan = false;
  const int hidden = other_.AddControlFlow(kTfLiteBuiltinAssignVariable, {}, {}, nullptr);
  other_.shows[hidden] = FakeHost::Shows::kError;
  EXPECT_THAT(WhyNot(read), HasSubstr("does not show node 2 of a subgraph"));
}

}  // namespace
}  // namespace fuselite::partitioner
