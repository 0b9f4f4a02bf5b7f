// Whole models: a file of drawn operators, its structure or some of its bytes changed, loaded, and
// run in fuselite's interpreter with its own kernels and with the delegate.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "interpreter/interpreter.h"
#include "kernels/composite.h"
#include "partitioner/delegate.h"
#include "partitioner/report/explanation.h"
#include "runtime/support/log.h"
#include "runtime/tflite/builtin_codes.h"
#include "tests/fuzz/model_grower.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/text_phrases.h"

namespace fuselite::fuzz {
namespace {

using namespace interpreter;

constexpr Budget kBudget{.max_memory = 64 << 20, .max_multiply_adds = 3'000'000};

bool IsFloat(DataType type) {
  return type != DataType::kInt8 && type != DataType::kUInt8 && type != DataType::kInt16 &&
         type != DataType::kInt32 && type != DataType::kInt64 && type != DataType::kBool;
}

bool HasFloats(const Interpreter& interpreter) {
  for (int i = 0; i < interpreter.tensor_count(); ++i) {
    if (IsFloat(interpreter.tensor(i).type)) return true;
  }
  return false;
}

void FillInputs(Interpreter& interpreter, uint64_t seed) {
  Random random(seed);
  for (size_t i = 0; i < interpreter.inputs().size(); ++i) {
    const TensorView input = interpreter.input(static_cast<int>(i));
    if (input.type == DataType::kString && !input.constant && input.shape.elements() < 100) {
      std::vector<std::string> strings;
      for (int64_t n = input.shape.elements(); n > 0; --n) {
        strings.emplace_back(random.Pick({"a", "a b a", ""}));
      }
      const Status set = interpreter.SetStrings(static_cast<int>(i), TextTable(strings));
      EXPECT_TRUE(set.ok()) << set.message();
      continue;
    }
    const auto values = DrawValues({.type = input.type, .shape = input.shape}, random);
    const bool fits = input.data != nullptr && !input.constant && values.size() == input.bytes;
    if (fits && !values.empty()) std::memcpy(input.data, values.data(), values.size());
  }
}

// Cancels what runs for longer than a tenth of a second: a changed loop may have no end.
class Deadline {
 public:
  explicit Deadline(Interpreter& interpreter)
      : thread_([this, &interpreter] {
          std::unique_lock lock(mutex_);
          const auto over = [this] { return over_; };
          if (!ended_.wait_for(lock, std::chrono::milliseconds(100), over)) interpreter.Cancel();
        }) {}
  ~Deadline() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    ended_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

Status Invoke(Interpreter& interpreter, const Model& model) {
  std::optional<Deadline> deadline;
  if (model.subgraphs.size() > 1) deadline.emplace(interpreter);
  return interpreter.Invoke();
}

// Whether interpreter and delegate compute the same. Not of a composite whose name is known: the
// delegate takes the name's word, and the interpreter that of a decomposition that was drawn. Nor
// of random numbers, which without a seed differ from one interpreter to the next.
bool Compares(const Model& model) {
  return std::ranges::none_of(model.subgraphs, [](const ModelSubgraph& graph) {
    return std::ranges::any_of(graph.operators, [](const ModelOperator& op) {
      return kernels::FindComposite(op.composite_name) != nullptr ||
             op.builtin_code == tflite::kTfLiteBuiltinRandomUniform ||
             op.builtin_code == tflite::kTfLiteBuiltinRandomStandardNormal ||
             op.builtin_code == tflite::kTfLiteBuiltinMultinomial;
    });
  });
}

// The interpreter after a run, or null where something was refused.
std::unique_ptr<Interpreter> Run(const std::shared_ptr<const Model>& model,
                                 partitioner::Delegate* delegate, uint64_t seed) {
  InterpreterOptions options;
  options.budget = kBudget;
  auto interpreter = Interpreter::Create(model, options);
  if (!interpreter.ok()) return nullptr;
  if (delegate != nullptr && !(*interpreter)->ApplyDelegate(delegate->c_struct()).ok()) {
    return nullptr;
  }
  if (!(*interpreter)->AllocateTensors().ok()) return nullptr;
  FillInputs(**interpreter, seed);
  return Invoke(**interpreter, *model).ok() ? *std::move(interpreter) : nullptr;
}

// What a caller does once a model has run.
struct Again {
  int input = -1;  // gets these sizes; -1: none
  std::vector<int32_t> dims;
  bool resets = false, removes = false;
};

Again DrawAgain(const Interpreter& interpreter, Random& random) {
  Again again;
  again.resets = random.Chance(0.3);
  again.removes = random.Chance(0.2);
  const auto inputs = static_cast<int64_t>(interpreter.inputs().size());
  if (inputs == 0 || random.Chance(0.3)) return again;
  again.input = static_cast<int>(random.Int(0, inputs - 1));
  const Shape shape = interpreter.input(again.input).shape;
  again.dims.assign(shape.dims().begin(), shape.dims().end());
  if (!again.dims.empty() && random.Chance(0.8)) {
    again.dims[random.Int(0, shape.rank() - 1)] = static_cast<int32_t>(random.Int(0, 4));
  }
  return again;
}

bool RunAgain(Interpreter& interpreter, const Model& model, const Again& again) {
  if (again.resets) interpreter.ResetVariables();
  if (again.removes && !interpreter.RemoveDelegates().ok()) return false;
  if (again.input >= 0 && !interpreter.ResizeInput(again.input, again.dims).ok()) return false;
  if (!interpreter.AllocateTensors().ok()) return false;
  FillInputs(interpreter, 2);
  interpreter.SetProfiling(true);
  const bool ran = Invoke(interpreter, model).ok();
  EXPECT_TRUE(!ran || interpreter.TakeEvents().size() >= interpreter.Plan().size());
  return ran;
}

void ExpectSame(const Interpreter& expected, const Interpreter& actual) {
  const bool exact = !HasFloats(expected);
  for (size_t i = 0; i < expected.outputs().size(); ++i) {
    const TensorView wanted = expected.output(static_cast<int>(i));
    const TensorView given = actual.output(static_cast<int>(i));
    // The handle of a variable, which says nothing beyond the graph.
    if (wanted.type == DataType::kResource) continue;
    EXPECT_EQ(wanted.shape, given.shape) << "output " << i;
    if (!exact || wanted.bytes != given.bytes || wanted.bytes == 0) continue;
    EXPECT_EQ(std::memcmp(wanted.data, given.data, wanted.bytes), 0)
        << "output " << i << " of " << expected.Plan().front();
  }
}

// What a user may set, and the tools with it.
partitioner::Options DrawOptions(Random& random) {
  partitioner::Options options;
  options.isa = random.Chance(0.8) ? DetectIsa() : Isa::kScalar;
  options.jit = random.Chance(0.8);
  options.num_threads = random.Chance(0.8) ? 1 : 2;
  options.budget = kBudget;
  options.fusion = random.Chance(0.9);
  if (random.Chance(0.1)) options.max_partitions = 1;
  if (random.Chance(0.1)) options.min_nodes_per_partition = 2;
  if (random.Chance(0.1)) options.ops_deny = {"TANH", "ADD"};
  options.keep_profile = random.Chance(0.2);
  options.keep_events = random.Chance(0.2);
  return options;
}

// Has everything written that the delegate would say, and reads none of it.
class Listening {
 public:
  Listening() {
    SetLogSink([](LogLevel, std::string_view message, void*) { EXPECT_FALSE(message.empty()); });
    SetLogLevel(LogLevel::kDebug);
  }
  ~Listening() {
    SetLogLevel(LogLevel::kOff);
    SetLogSink(nullptr);
  }
};

// What is told of the delegate's work.
void CheckReports(const partitioner::Delegate& delegate) {
  const partitioner::Explanation explanation = delegate.Explain();
  EXPECT_FALSE(partitioner::ToText(explanation).empty());
  EXPECT_TRUE(partitioner::ToJson(explanation).starts_with("{"));
  EXPECT_TRUE(partitioner::ToDot(explanation).starts_with("digraph"));
  OpeningTimes(explanation);
  const auto profile = delegate.state()->profile().Times();
  const auto events = delegate.state()->profile().Events();
  EXPECT_TRUE(delegate.state()->Profiles() || (profile.empty() && events.empty()));
}

}  // namespace

void FuzzOne(std::span<const uint8_t> bytes) {
  Random random(bytes);
  partitioner::Options options = DrawOptions(random);
  const bool reports = random.Chance(0.2);
  const std::vector<std::byte> file = ModelGrower(random).Grow();
  if (reports) options.explain_file = options.profile_file = "/dev/null";
  const auto model = LoadModelFromMemory(file, nullptr);
  if (!model.ok()) return;
  for (const ModelSubgraph& graph : (*model)->subgraphs) {
    for (const ModelTensor& tensor : graph.tensors) {
      if (tensor.shape.elements() > 1 << 20) return;  // a changed byte in a shape
    }
  }
  std::optional<Listening> listening;
  if (reports) listening.emplace();
  const auto expected = Run(*model, nullptr, 1);
  partitioner::Delegate delegate(options);
  const auto actual = Run(*model, &delegate, 1);
  if (reports) CheckReports(delegate);
  if (expected == nullptr || actual == nullptr || !Compares(**model)) return;
  ExpectSame(*expected, *actual);
  const Again again = DrawAgain(*expected, random);
  if (RunAgain(*expected, **model, again) && RunAgain(*actual, **model, again)) {
    ExpectSame(*expected, *actual);
  }
}

}  // namespace fuselite::fuzz
