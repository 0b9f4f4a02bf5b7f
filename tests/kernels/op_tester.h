// Runs any operator's candidates on buffers of a test's own, the hard way: misaligned and pitched
// operands between guard bytes, garbage in scratch, units in random ranges and order, constants out
// of reach once they are packed.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "kernels/operator.h"
#include "kernels/step_store.h"
#include "runtime/memory/aligned_buffer.h"
#include "tests/kernels/guarded_bytes.h"
#include "tests/kernels/model_constants.h"
#include "tests/kernels/random.h"

namespace fuselite::kernels::testing {

// A tensor with its bytes. They start `misalign` bytes behind an aligned address, rows are pitched
// as `info` says, and whatever lies around and between the rows keeps its pattern: CheckGuards.
// Copies share the bytes; Clone has its own.
class TestTensor {
 public:
  static constexpr int kGuard = 0xA5;

  TestTensor() = default;
  explicit TestTensor(TensorInfo info, size_t misalign = 0)
      : info_(std::move(info)), misalign_(misalign) {
    if (info_.absent()) return;
    buffer_ = std::make_shared<AlignedBuffer>(kAlignment + misalign + SpanBytes() + kAlignment);
    std::memset(buffer_->data(), kGuard, buffer_->size());
  }
  // Dense, with these values.
  template <class T>
  static TestTensor Of(DataType type, Shape shape, const std::vector<T>& values,
                       Quantization quantization = {}) {
    TestTensor tensor({.type = type, .shape = shape, .quantization = std::move(quantization)});
    EXPECT_EQ(tensor.info().bytes(), values.size() * sizeof(T)) << shape;
    if (!values.empty()) std::memcpy(tensor.bytes(), values.data(), tensor.info().bytes());
    return tensor;
  }
  TestTensor Clone() const {
    TestTensor copy(info_, misalign_);
    if (buffer_) std::memcpy(copy.buffer_->data(), buffer_->data(), buffer_->size());
    return copy;
  }

  const TensorInfo& info() const { return info_; }
  bool absent() const { return buffer_ == nullptr; }
  std::byte* bytes() const { return buffer_->data() + kAlignment + misalign_; }
  // From the first row's begin to the last row's end.
  size_t span_bytes() const { return absent() ? 0 : SpanBytes(); }
  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(bytes());
  }
  int64_t width() const { return info_.shape.rank() ? info_.shape.dim(-1) : 1; }
  int64_t rows() const { return width() ? info_.elements() / width() : 0; }
  // Element `i` in dense order.
  template <class T>
  T& at(int64_t i) const {
    return data<T>()[i / width() * info_.pitch() + i % width()];
  }
  template <class T>
  std::vector<T> values() const {
    std::vector<T> result(info_.elements());
    for (int64_t i = 0; i < info_.elements(); ++i) result[i] = at<T>(i);
    return result;
  }
  // Uniform in [low, high]; rounded for integer types; all bits of bytes of int4 and int2.
  void Fill(Random& random, double low, double high) const {
    for (int64_t i = 0; !absent() && i < info_.elements(); ++i) {
      switch (info_.type) {
        case DataType::kFloat32: at<float>(i) = random.Float(low, high); break;
        case DataType::kFloat64: at<double>(i) = random.Float(low, high); break;
        case DataType::kInt8: at<int8_t>(i) = random.Int(low, high); break;
        case DataType::kUInt8: at<uint8_t>(i) = random.Int(low, high); break;
        case DataType::kBool: at<bool>(i) = random.Chance(0.5); break;
        case DataType::kInt16: at<int16_t>(i) = random.Int(low, high); break;
        case DataType::kInt32: at<int32_t>(i) = random.Int(low, high); break;
        case DataType::kInt64: at<int64_t>(i) = random.Int(low, high); break;
        case DataType::kUInt16: at<uint16_t>(i) = random.Int(low, high); break;
        case DataType::kUInt32: at<uint32_t>(i) = random.Int(low, high); break;
        case DataType::kUInt64: at<uint64_t>(i) = random.Int(low, high); break;
        case DataType::kInt4: data<uint8_t>()[i / 2] = random.Int(0, 255); break;
        case DataType::kInt2: data<uint8_t>()[i / 4] = random.Int(0, 255); break;
        default: FAIL() << "Fill does not know " << DataTypeName(info_.type);
      }
    }
  }
  void CheckGuards(std::string_view what) const {
    if (absent()) return;
    const auto* all = reinterpret_cast<const uint8_t*>(buffer_->data());
    const size_t begin = kAlignment + misalign_;
    const size_t row_bytes = RowBytes(width()), pitch_bytes = RowBytes(info_.pitch());
    for (size_t i = 0; i < buffer_->size(); ++i) {
      const bool inside =
          i >= begin && i < begin + SpanBytes() && (i - begin) % pitch_bytes < row_bytes;
      if (!inside && all[i] != kGuard) {
        ADD_FAILURE() << what << ": byte " << static_cast<int64_t>(i - begin)
                      << " outside of the tensor " << info_.shape << " was written";
        return;
      }
    }
  }

 private:
  size_t RowBytes(int64_t elements) const {
    return (static_cast<size_t>(elements) * BitWidth(info_.type) + 7) / 8;
  }
  size_t SpanBytes() const {
    if (info_.row_pitch == 0) return info_.bytes();
    return rows() == 0 ? 0 : (rows() - 1) * RowBytes(info_.pitch()) + RowBytes(width());
  }

  TensorInfo info_;
  size_t misalign_ = 0;
  std::shared_ptr<AlignedBuffer> buffer_;
};

class OpTester {
 public:
  OpDescription op;
  std::vector<TestTensor> inputs;
  int threads = 1;
  Precision precision = Precision::kDefault;

  // Parameters have their defaults.
  explicit OpTester(std::string_view name) {
    op.op = FindOperator(name);
    EXPECT_NE(op.op, nullptr) << name;
    if (op.op != nullptr) SetDefaults(op.op->fields, op.params.data());
  }
  template <class T>
  T& params() {
    return op.params.as<T>();
  }
  // A run-time value, a constant (dense), an absent optional operand; each the next input.
  OpTester& Input(TestTensor tensor) {
    op.inputs.push_back(tensor.info());
    inputs.push_back(std::move(tensor));
    return *this;
  }
  OpTester& Constant(const TestTensor& tensor) {
    Input(tensor);
    op.inputs.back().data = tensor.absent() ? nullptr : tensor.bytes();
    return *this;
  }
  // The constant of this place comes with each run instead, if it is there and of whole bytes.
  OpTester& AtRunTime(size_t input) {
    if (input < inputs.size() && BitWidth(op.inputs[input].type) >= 8) {
      op.inputs[input].data = nullptr;
    }
    return *this;
  }
  OpTester& Absent() { return Input(TestTensor()); }
  // What the model knows of an output before shapes are known: type and quantization.
  OpTester& Output(DataType type = DataType::kNone, Quantization quantization = {}) {
    op.outputs.push_back({.type = type, .quantization = std::move(quantization)});
    return *this;
  }
  // One output of unknown type where none was declared.
  Status Infer() {
    if (op.outputs.empty()) Output();
    return kernels::Infer(op);
  }

  // Plans and builds the candidate, and runs it. Infer() came before. Outputs start
  // `misalign` elements behind an aligned address. kUnsupported where the candidate refuses.
  Result<std::vector<TestTensor>> Run(std::string_view candidate, Isa isa, uint64_t seed = 1,
                                      size_t misalign = 0) const {
    for (const Candidate& c : op.op->candidates) {
      if (c.name == candidate) return RunCandidate(c, isa, seed, misalign);
    }
    return NotFound("no candidate ", candidate);
  }
  Result<std::vector<TestTensor>> RunCandidate(const Candidate& candidate, Isa isa,
                                               uint64_t seed = 1, size_t misalign = 0) const {
    const std::unique_ptr<PackedStore> packed = NewPackedStore();
    StepStore store(*packed);
    const BuildContext context({.isa = isa, .precision = precision, .threads = threads}, &store);
    ModelConstants constants(op);
    const OpDescription& described = constants.op();
    FUSELITE_ASSIGN_OR_RETURN(const KernelPlan plan, candidate.Plan(described, context));
    FUSELITE_ASSIGN_OR_RETURN(const std::shared_ptr<const Kernel> kernel,
                              plan.Build(described, context));
    CheckPlan(plan.kernel(), *kernel);
    OpTester step = *this;
    step.LetGo(constants, store);
    std::vector<TestTensor> outputs;
    for (const TensorInfo& info : op.outputs) {
      outputs.emplace_back(info, misalign * ((BitWidth(info.type) + 7) / 8));
    }
    FUSELITE_RETURN_IF_ERROR(step.RunKernel(*kernel, outputs, seed));
    for (const TestTensor& output : outputs) output.CheckGuards(kernel->name());
    // What holds state is another operation the second time.
    if (op.op->state_inputs.empty()) {
      step.RunGuarded(*kernel, outputs, seed, GuardedBytes::Edge::kBegin, 1);
      step.RunGuarded(*kernel, outputs, seed, GuardedBytes::Edge::kEnd, 2);
      step.RunInPlace(*kernel, outputs, seed);
    }
    return outputs;
  }

  // What a plan does once a kernel is built: constants of which `store` packed all that the kernel
  // reads are no inputs of its runs, and whoever still reads them is killed.
  void LetGo(ModelConstants& constants, const StepStore& store) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!store.IsAllOf(constants.op(), i)) continue;
      constants.Forbid(i);
      inputs[i] = TestTensor();
    }
  }

  // Runs the kernel again, as run `run`, with every operand, and its own memory, against a page
  // that nobody may touch; the outputs must be the same.
  void RunGuarded(const Kernel& kernel, const std::vector<TestTensor>& outputs, uint64_t seed,
                  GuardedBytes::Edge edge, uint32_t run) const {
    std::vector<std::unique_ptr<GuardedBytes>> memory;
    const auto place = [&](const void* from, size_t bytes) {
      memory.push_back(std::make_unique<GuardedBytes>(from, bytes, edge));
      return memory.back()->data();
    };
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const TestTensor& t : inputs) {
      in.push_back(t.absent() ? nullptr : place(t.bytes(), t.span_bytes()));
    }
    for (const TestTensor& t : outputs) {
      const TestTensor unwritten(t.info());
      out.push_back(t.absent() ? nullptr : place(unwritten.bytes(), t.span_bytes()));
    }
    const AlignedBuffer garbage(AlignUp(kernel.scratch_bytes()) + AlignUp(kernel.shared_bytes()));
    if (garbage.data() != nullptr) std::memset(garbage.data(), 0xFF, garbage.size());
    std::byte* scratch = place(garbage.data(), AlignUp(kernel.scratch_bytes()));
    std::byte* shared = place(garbage.data(), AlignUp(kernel.shared_bytes()));
    Random random(seed);
    for (int phase = 0; phase < kernel.phases(); ++phase) {
      const int64_t units = kernel.units(phase);
      const int64_t half = units > 1 ? random.Int(1, units - 1) : units;
      for (const auto& [begin, end] : {std::pair(half, units), std::pair(int64_t{0}, half)}) {
        if (begin == end) continue;
        const Status status =
            kernel.Run({in.data(), out.data(), scratch, shared, &run}, phase, begin, end);
        EXPECT_TRUE(status.ok()) << kernel.name() << ": " << status.ToString();
      }
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].absent()) continue;
      EXPECT_EQ(std::memcmp(out[i], outputs[i].bytes(), outputs[i].span_bytes()), 0)
          << kernel.name() << ": output " << i << " differs where memory is guarded";
    }
  }

  // Runs the kernel again with output 0 over the input that allows it; the outputs must be the
  // same.
  void RunInPlace(const Kernel& kernel, const std::vector<TestTensor>& outputs,
                  uint64_t seed) const {
    const int input = kernel.in_place_input();
    if (input < 0 || inputs[input].absent()) return;
    OpTester again = *this;
    again.inputs[input] = inputs[input].Clone();
    std::vector<TestTensor> out{again.inputs[input]};
    for (size_t i = 1; i < outputs.size(); ++i) out.push_back(outputs[i].Clone());
    const Status status = again.RunKernel(kernel, out, seed);
    EXPECT_TRUE(status.ok()) << kernel.name() << ": " << status.ToString();
    for (size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_EQ(std::memcmp(out[i].bytes(), outputs[i].bytes(), outputs[i].span_bytes()), 0)
          << kernel.name() << ": output " << i << " differs in place of input " << input;
    }
  }

  // What is asked of a plan is true of the kernel.
  static void CheckPlan(const Kernel& plan, const Kernel& kernel) {
    EXPECT_EQ(plan.in_place_input(), kernel.in_place_input()) << kernel.name();
    EXPECT_EQ(plan.phases(), kernel.phases()) << kernel.name();
    EXPECT_EQ(plan.scratch_bytes(), kernel.scratch_bytes()) << kernel.name();
    EXPECT_EQ(plan.shared_bytes(), kernel.shared_bytes()) << kernel.name();
  }

  // Every unit once, in ranges of random size and order.
  Status RunKernel(const Kernel& kernel, const std::vector<TestTensor>& outputs,
                   uint64_t seed) const {
    Random random(seed);
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const TestTensor& t : inputs) in.push_back(t.absent() ? nullptr : t.bytes());
    for (const TestTensor& t : outputs) out.push_back(t.absent() ? nullptr : t.bytes());
    const AlignedBuffer scratch(kernel.scratch_bytes() + kAlignment);
    const AlignedBuffer shared(kernel.shared_bytes() + kAlignment);
    std::memset(shared.data(), 0xFF, shared.size());
    for (int phase = 0; phase < kernel.phases(); ++phase) {
      std::vector<std::pair<int64_t, int64_t>> ranges;
      const int64_t units = kernel.units(phase);
      for (int64_t begin = 0; begin < units;) {
        const int64_t end = std::min(units, begin + random.Int(1, std::max<int64_t>(1, units)));
        ranges.emplace_back(begin, end);
        begin = end;
      }
      for (size_t i = ranges.size(); i > 1; --i) {
        std::swap(ranges[i - 1], ranges[random.Int(0, static_cast<int64_t>(i) - 1)]);
      }
      for (const auto& [begin, end] : ranges) {
        std::memset(scratch.data(), 0xFF, scratch.size());
        FUSELITE_RETURN_IF_ERROR(
            kernel.Run({in.data(), out.data(), scratch.data(), shared.data()}, phase, begin, end));
      }
    }
    const auto* over = reinterpret_cast<const uint8_t*>(shared.data()) + kernel.shared_bytes();
    EXPECT_TRUE(std::all_of(over, over + kAlignment, [](uint8_t b) { return b == 0xFF; }))
        << kernel.name() << " wrote behind its shared memory";
    return Status();
  }
};

// No pitch, or one that leaves a gap behind each row of `width` elements.
inline int64_t RandomPitch(Random& random, int64_t width) {
  return random.Chance(0.3) ? width + random.Int(1, 9) : 0;
}
// Leaves, in some cases, a gap behind each row of the output.
inline void PitchOutput(OpTester& tester, Random& random) {
  TensorInfo& output = tester.op.outputs[0];
  output.row_pitch = RandomPitch(random, output.shape.rank() == 0 ? 1 : output.shape.dim(-1));
}

// Where the machine has vectors, a fast candidate must have taken nearly all of the `cases`.
inline void ExpectMostRan(int runs, int cases) {
  EXPECT_GE(runs, RunnableIsas().size() > 1 ? cases * 9 / 10 : 0);
}

// Operators from `make(random)`, inferred, the outputs of some pitched. `compare(tester, random)`
// gives how many runs of fast candidates were not refused.
template <class Make, class Compare>
void CompareRandomly(int cases, Make make, Compare compare) {
  int runs = 0;
  for (int seed = 1; seed <= cases; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = make(random);
    const Status inferred = tester.Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    PitchOutput(tester, random);
    runs += compare(tester, random);
    if (::testing::Test::HasFailure()) return;
  }
  ExpectMostRan(runs, cases);
}

// Byte for byte, gaps between rows left out.
template <class T>
void ExpectSame(const TestTensor& expected, const TestTensor& actual, std::string_view what) {
  ASSERT_EQ(expected.info().shape, actual.info().shape) << what;
  int shown = 0;
  for (int64_t i = 0; i < expected.info().elements() && shown < 5; ++i) {
    const T e = expected.at<T>(i), a = actual.at<T>(i);
    if (!std::ranges::equal(std::as_bytes(std::span(&e, 1)), std::as_bytes(std::span(&a, 1)))) {
      ADD_FAILURE() << what << ": element " << i << " is " << +a << ", expected " << +e;
      ++shown;
    }
  }
}

// |actual - expected| <= tolerance(i), NaN equal to NaN.
template <class Tolerance>
void ExpectNear(const TestTensor& expected, const TestTensor& actual, Tolerance tolerance,
                std::string_view what) {
  ASSERT_EQ(expected.info().shape, actual.info().shape) << what;
  int shown = 0;
  for (int64_t i = 0; i < expected.info().elements() && shown < 5; ++i) {
    const float e = expected.at<float>(i), a = actual.at<float>(i);
    if (e == a || (std::isnan(e) && std::isnan(a))) continue;
    if (!(std::abs(e - a) <= tolerance(i))) {
      ADD_FAILURE() << what << ": element " << i << " is " << a << ", expected " << e << " within "
                    << tolerance(i);
      ++shown;
    }
  }
}

}  // namespace fuselite::kernels::testing
