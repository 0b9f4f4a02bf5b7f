// Running .tflite models without LiteRT: the C++ interface. include/fuselite/interpreter.h has the
// same in C.
//
//   auto model = LoadModelFromFile("model.tflite");
//   auto interpreter = Interpreter::Create(*model);
//   (*interpreter)->AllocateTensors();
//   fill (*interpreter)->input(0).data ...
//   (*interpreter)->Invoke();
//
// Operators run as the scalar references of kernels/; speed is what a delegate brings.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "interpreter/file/loader.h"
#include "interpreter/op_resolver.h"
#include "interpreter/subgraph.h"
#include "runtime/support/status.h"
#include "runtime/tensor.h"
#include "runtime/tflite/abi.h"

namespace fuselite::interpreter {

struct InterpreterOptions {
  // What delegates are told; -1: no wish.
  int num_threads = -1;
  // Keeps every value until the next invoke, instead of reusing memory.
  bool preserve_all_tensors = false;
  // Lets delegates' partitions reach past nodes that are not theirs.
  bool cluster_partitions = true;
  // What is beyond it is refused by AllocateTensors, or by Invoke where shapes are known only then.
  Budget budget;
  // The key of the signature whose subgraph the interpreter runs; empty: the first subgraph.
  std::string signature;
  // Whom to ask for operators; null: the builtin ones. Used by Create only.
  const OpResolver* resolver = nullptr;
};

// A tensor as it is between calls. `data` is writable for inputs and variables. Valid until the
// next ResizeInput, AllocateTensors or ApplyDelegate; of dynamic tensors, until the next Invoke.
struct TensorView {
  int index = -1;
  std::string_view name;
  DataType type = DataType::kNone;
  Shape shape;
  std::vector<int32_t> shape_signature;  // -1 where a dimension may change; empty where none may
  Quantization quantization;
  void* data =
      nullptr;  // null before AllocateTensors, and for values inside a delegate's partition
  size_t bytes = 0;
  bool constant = false;
  bool is_variable = false;
};

// One running instance of a model. One thread at a time may use it, but Cancel() is for any thread.
// Instances of one Model share its constants.
class Interpreter {
 public:
  // kUnsupported names the operators that nobody implements; kNotFound, the signatures that there
  // are where the one of the options is not among them.
  static Result<std::unique_ptr<Interpreter>> Create(std::shared_ptr<const Model> model,
                                                     const InterpreterOptions& options = {});
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  const Model& model() const { return *host_.model; }

  // The main subgraph is the first one, or that of the options' signature.
  int main_subgraph() const { return main_; }
  // Tensor indices of the main subgraph's ends.
  std::span<const int> inputs() const { return main().inputs(); }
  std::span<const int> outputs() const { return main().outputs(); }
  int tensor_count() const { return main().tensor_count(); }
  // Preconditions: in range.
  TensorView tensor(int index) const;
  TensorView input(int i) const { return tensor(inputs()[i]); }
  TensorView output(int i) const { return tensor(outputs()[i]); }
  // The index of the tensor with this name, -1 where there is none.
  int FindTensor(std::string_view name) const;

  // A signature by its key: its tensors by name. nullptr where there is none.
  const Signature* FindSignature(std::string_view key) const;
  // The signature of the options, else the first one of the main subgraph; nullptr where there is
  // none.
  const Signature* main_signature() const { return signature_; }
  // The tensor index that a signature of the main subgraph gives to `name`; -1 where it has no
  // such.
  static int FindInput(const Signature& signature, std::string_view name);
  static int FindOutput(const Signature& signature, std::string_view name);

  // `i` counts the inputs. AllocateTensors must follow before Invoke.
  Status ResizeInput(int i, std::span<const int32_t> dims);
  Status AllocateTensors();
  // After AllocateTensors: the strings of input `i`, as many as its shape has, with the table that
  // interpreter/strings.h describes. The bytes are copied.
  Status SetStrings(int i, std::span<const std::byte> table);
  Status Invoke();
  // Lets output `output` lie in the memory of input `input`, of the same size, until shapes change:
  // what updates a cache then does so in place. Whoever reads the input must do so before the
  // output is written. After AllocateTensors.
  Status ShareMemory(int input, int output);
  // Makes the invoke that is under way, or else the next one, end with kCancelled at the next
  // operator.
  void Cancel() { host_.cancelled = true; }
  // Variable tensors; resource variables keep their values, as in LiteRT.
  void ResetVariables();

  // Offers every subgraph to the delegate, which must outlive the interpreter. Where it fails, the
  // model runs as if no delegate had been applied.
  Status ApplyDelegate(tflite::TfLiteDelegate* delegate);
  Status RemoveDelegates();

  // The nodes that run, in order, and what they are called.
  std::vector<std::string> Plan() const;

  // Events are recorded while profiling is on.
  void SetProfiling(bool on);
  std::vector<NodeEvent> TakeEvents();

 private:
  Interpreter() = default;
  Status ChooseMain(const std::string& signature);
  const Subgraph& main() const { return *host_.subgraphs[main_]; }
  Subgraph& main() { return *host_.subgraphs[main_]; }

  SubgraphHost host_;
  int main_ = 0;
  const Signature* signature_ = nullptr;  // in the model
};

}  // namespace fuselite::interpreter
