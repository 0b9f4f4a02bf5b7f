// A host made for tests of the delegate: a list of nodes behind the C structs, with every answer
// that a real host could give under the test's control. It runs delegate kernels only.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kernels/operator.h"
#include "runtime/tensor.h"
#include "runtime/tflite/abi.h"
#include "runtime/tflite/arrays.h"

namespace fuselite::partitioner::testing {

class FakeHost {
 public:
  FakeHost();
  ~FakeHost();
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  int AddTensor(const Shape& shape, DataType type = DataType::kFloat32);
  int AddConstant(const Shape& shape, std::vector<float> values);
  int AddConstant(const Shape& shape, std::vector<int32_t> values);
  // `op` with the defaults of its field table, changed by `params` where it is given.
  int AddNode(std::string_view op, std::vector<int> inputs, std::vector<int> outputs,
              const kernels::Params* params = nullptr, int version = 1);
  // A node that runs subgraphs; `options` is the host's struct, and the caller's.
  int AddControlFlow(int builtin_code, std::vector<int> inputs, std::vector<int> outputs,
                     void* options);
  int AddCustomNode(const char* name, std::vector<int> inputs, std::vector<int> outputs);
  // Tensors that somebody outside reads.
  void SetOutputs(std::vector<int> outputs) { graph_outputs_ = std::move(outputs); }

  // The delegate's Prepare, as a host calls it.
  tflite::TfLiteStatus Apply(tflite::TfLiteDelegate* delegate);
  // Prepares and runs the delegate kernels in order.
  tflite::TfLiteStatus Prepare();
  tflite::TfLiteStatus Invoke();
  // What a host does before it applies its delegates again.
  void DropKernels();

  void Resize(int tensor, const Shape& shape);
  void* Memory(int tensor) { return context.tensors[tensor].data.data; }
  float* Floats(int tensor) { return static_cast<float*>(Memory(tensor)); }
  Shape ShapeOf(int tensor) const;

  tflite::TfLiteContext context{};
  std::deque<tflite::TfLiteNode> nodes;
  std::deque<tflite::TfLiteRegistration> registrations;
  std::vector<std::vector<int>> kernels;  // nodes of each delegate kernel
  std::vector<std::string> errors;        // what was reported
  int nodes_shown = 0;                    // while kernels were made for the delegate, the last time
  bool fail_plan = false, fail_preview = false, fail_resize = false;
  // What is shown of a node: an error, or nothing although all went well.
  enum class Shows { kAll, kError, kNoNode, kNoRegistration };
  std::map<int, Shows> shows;  // by node; of others, all
  bool fail_replace = false;
  bool splits_later = false;  // makes a kernel of each node, whatever was said before

 private:
  struct Kernel {
    tflite::TfLiteRegistration registration;
    tflite::TfLiteNode node;
    tflite::TfLiteDelegateParams params;
  };

  int AddTensorOf(const Shape& shape, DataType type, std::shared_ptr<void> memory, bool constant);
  int Add(tflite::TfLiteRegistration registration, std::vector<int> inputs,
          std::vector<int> outputs);
  tflite::TfLiteIntArray* Own(const std::vector<int>& values);
  std::vector<tflite::TfLiteDelegateParams> Partitions(const tflite::TfLiteIntArray* taken,
                                                       bool splits);
  static FakeHost& Self(const tflite::TfLiteContext* context) {
    return *static_cast<FakeHost*>(context->impl_);
  }
  static void ReportError(tflite::TfLiteContext* context, const char* format, ...);
  static tflite::TfLiteStatus GetPlan(tflite::TfLiteContext* context,
                                      tflite::TfLiteIntArray** plan);
  static tflite::TfLiteStatus GetNode(tflite::TfLiteContext* context, int index,
                                      tflite::TfLiteNode** node,
                                      tflite::TfLiteRegistration** registration);
  static tflite::TfLiteStatus Preview(tflite::TfLiteContext* context,
                                      const tflite::TfLiteIntArray* taken,
                                      tflite::TfLiteDelegateParams** params, int* count);
  static tflite::TfLiteStatus Replace(tflite::TfLiteContext* context,
                                      tflite::TfLiteRegistration registration,
                                      const tflite::TfLiteIntArray* taken,
                                      tflite::TfLiteDelegate* delegate);
  static tflite::TfLiteStatus ResizeTensor(tflite::TfLiteContext* context,
                                           tflite::TfLiteTensor* tensor,
                                           tflite::TfLiteIntArray* dims);

  std::vector<tflite::TfLiteTensor> table_;
  std::vector<std::shared_ptr<void>> memory_;  // of each tensor
  std::set<int> grown_;                        // tensors in memory of their own, as LiteRT has it
  std::vector<std::shared_ptr<void>> owned_;   // arrays and option structs
  std::vector<int> graph_outputs_;
  std::vector<tflite::TfLiteDelegateParams> preview_;
  std::deque<Kernel> running_;
};

}  // namespace fuselite::partitioner::testing
