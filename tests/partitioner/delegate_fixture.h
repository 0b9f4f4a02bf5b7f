// Graphs of layers behind a host made for tests (fake_host.h), and a delegate applied to them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "partitioner/delegate.h"
#include "tests/partitioner/fake_host.h"

namespace fuselite::partitioner::testing {

inline Options DefaultOptions() {
  return *ParseOptions({}, [](const char*) { return nullptr; });
}

inline std::vector<float> Ramp(int64_t count) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 7) - 3;
  return values;
}

// y = x w^T for one row, in double.
inline std::vector<double> Expected(const float* x, const std::vector<float>& w, int inputs) {
  std::vector<double> y(w.size() / inputs);
  for (size_t o = 0; o < y.size(); ++o) {
    for (int i = 0; i < inputs; ++i) y[o] += double{x[i]} * w[o * inputs + i];
  }
  return y;
}

// Fully connected layers of 64x64 in a row, each 4096 multiply-adds, with what a test puts between.
class DelegateTest : public ::testing::Test {
 protected:
  static constexpr int kWidth = 64;

  int Layer(int input) {
    const int output = host_.AddTensor({1, kWidth});
    const int weights = host_.AddConstant({kWidth, kWidth}, Ramp(kWidth * kWidth));
    host_.AddNode("FULLY_CONNECTED", {input, weights, -1}, {output});
    return output;
  }
  int Layers(int input, int count) {
    for (int i = 0; i < count; ++i) input = Layer(input);
    return input;
  }
  int Custom(int input) {
    const int output = host_.AddTensor({1, kWidth});
    host_.AddCustomNode("Foo", {input}, {output});
    return output;
  }
  void Apply(const Options& options) {
    delegate_ = std::make_unique<Delegate>(options);
    ASSERT_EQ(host_.Apply(delegate_->c_struct()), tflite::kTfLiteOk);
  }
  std::vector<std::string> Reasons() const {
    const Explanation explanation = delegate_->Explain();
    std::vector<std::string> reasons;
    for (const Verdict& verdict : explanation.graphs.at(0).verdicts) {
      reasons.push_back(verdict.reason);
    }
    return reasons;
  }

  FakeHost host_;
  std::unique_ptr<Delegate> delegate_;
  int input_ = host_.AddTensor({1, kWidth});
};

}  // namespace fuselite::partitioner::testing
