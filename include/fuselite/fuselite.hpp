// fuselite for C++17 and newer: runs .tflite models on the CPU.
//
//   fuselite::Interpreter interpreter("model.tflite", {.num_threads = 2});  // C++20's initializers
//   fuselite::Tensor input = interpreter.input(0);
//   std::copy(pixels.begin(), pixels.end(), input.data<float>());
//   interpreter.Invoke();
//   const float* scores = interpreter.output(0).data<float>();
//
// A thin layer over the C interface (fuselite/interpreter.h, fuselite/delegate.h), all of it in
// this header, so that the library's compiler and yours need not agree. Errors are thrown as
// fuselite::Error. One thread at a time may use an interpreter, but Cancel() is for any thread; a
// Model may be shared by threads.
#ifndef FUSELITE_FUSELITE_HPP_
#define FUSELITE_FUSELITE_HPP_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fuselite/delegate.h"
#include "fuselite/interpreter.h"

namespace fuselite {

// What went wrong, in one line: what, where, what to do.
class Error : public std::runtime_error {
 public:
  Error(FuseliteStatus code, const std::string& what) : std::runtime_error(what), code_(code) {}
  FuseliteStatus code() const { return code_; }

 private:
  FuseliteStatus code_;
};

// Options of the delegate by name, as docs/options.md lists them: {{"isa", "avx2"}}.
using DelegateOptions = std::map<std::string, std::string>;

namespace internal {

struct Delete {
  void operator()(FuseliteModel* model) const { FuseliteModelDelete(model); }
  void operator()(FuseliteInterpreter* interpreter) const {
    FuseliteInterpreterDelete(interpreter);
  }
  void operator()(TfLiteDelegate* delegate) const { FuseliteDelegateDelete(delegate); }
  void operator()(char* text) const { FuseliteFree(text); }
};

template <class T>
using Handle = std::unique_ptr<T, Delete>;

inline void Check(FuseliteStatus status) {
  if (status != kFuseliteOk) throw Error(status, FuseliteLastError());
}
template <class T>
Handle<T> Check(T* created) {
  if (created == nullptr) throw Error(FuseliteLastStatus(), FuseliteLastError());
  return Handle<T>(created);
}

// The FuseliteType of a C++ type.
template <class T>
struct TypeOf;
#define FUSELITE_TYPE_OF(type, code)            \
  template <>                                   \
  struct TypeOf<type> {                         \
    static constexpr FuseliteType kCode = code; \
  }
FUSELITE_TYPE_OF(float, kFuseliteFloat32);
FUSELITE_TYPE_OF(double, kFuseliteFloat64);
FUSELITE_TYPE_OF(int8_t, kFuseliteInt8);
FUSELITE_TYPE_OF(uint8_t, kFuseliteUInt8);
FUSELITE_TYPE_OF(int16_t, kFuseliteInt16);
FUSELITE_TYPE_OF(uint16_t, kFuseliteUInt16);
FUSELITE_TYPE_OF(int32_t, kFuseliteInt32);
FUSELITE_TYPE_OF(uint32_t, kFuseliteUInt32);
FUSELITE_TYPE_OF(int64_t, kFuseliteInt64);
FUSELITE_TYPE_OF(uint64_t, kFuseliteUInt64);
FUSELITE_TYPE_OF(bool, kFuseliteBool);
#undef FUSELITE_TYPE_OF

}  // namespace internal

// The delegate, for TensorFlow Lite's own interpreter too: get() is what
// TfLiteInterpreterOptionsAddDelegate() and tflite::Interpreter::ModifyGraphWithDelegate() take.
// It may serve several interpreters and must outlive them.
class Delegate {
 public:
  // Throws where an option is wrong; the message names the nearest valid one.
  explicit Delegate(std::initializer_list<DelegateOptions::value_type> options)
      : Delegate(DelegateOptions(options)) {}
  explicit Delegate(const DelegateOptions& options = DelegateOptions()) {
    std::vector<char*> keys, values;
    for (const auto& [key, value] : options) {
      keys.push_back(const_cast<char*>(key.c_str()));      // NOLINT: read only
      values.push_back(const_cast<char*>(value.c_str()));  // NOLINT: read only
    }
    static thread_local std::string error;
    error.clear();
    const auto report = [](const char* message) { error = message; };
    handle_.reset(
        tflite_plugin_create_delegate(keys.data(), values.data(), options.size(), report));
    if (handle_ == nullptr) throw Error(kFuseliteInvalidArgument, error);
  }

  TfLiteDelegate* get() const { return handle_.get(); }
  // Ends the runs under way at their next step. For any thread.
  void Cancel() const { FuseliteDelegateCancel(get()); }
  // What became of each node: "text", "json" or "dot".
  std::string Explain(const char* format = "text") const {
    const internal::Handle<char> text(FuseliteDelegateExplain(get(), format));
    if (text == nullptr) {
      throw Error(kFuseliteInvalidArgument,
                  std::string(format != nullptr ? format : "null") +
                      " is no format: there are \"text\", \"json\" and \"dot\"");
    }
    return text.get();
  }

 private:
  internal::Handle<TfLiteDelegate> handle_;
};

// A model that was read and checked. Cheap to copy.
class Model {
 public:
  // The file is mapped.
  explicit Model(const std::string& path)
      : handle_(internal::Check(FuseliteModelLoadFile(path.c_str()))) {}
  // The bytes are copied.
  Model(const void* data, size_t size)
      : handle_(internal::Check(FuseliteModelLoadMemory(data, size))) {}

  std::vector<std::string> signatures() const {
    std::vector<std::string> keys(FuseliteModelSignatureCount(get()));
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = FuseliteModelSignatureKey(get(), i);
    return keys;
  }
  const FuseliteModel* get() const { return handle_.get(); }

 private:
  std::shared_ptr<FuseliteModel> handle_;
};

// What a tensor is now: valid until the interpreter resizes, allocates or invokes.
class Tensor {
 public:
  explicit Tensor(const FuseliteTensor& tensor) : tensor_(tensor) {}

  std::string name() const { return tensor_.name; }
  FuseliteType type() const { return tensor_.type; }
  std::vector<int32_t> shape() const { return {tensor_.dims, tensor_.dims + tensor_.rank}; }
  size_t bytes() const { return tensor_.bytes; }
  // real = scale * (value - zero_point); scale 0: not quantized, or per channel, see c_struct().
  float scale() const { return tensor_.scale; }
  int32_t zero_point() const { return tensor_.zero_point; }

  // The elements, of which there are bytes() / sizeof(T). Throws where the tensor has another type.
  template <class T>
  T* data() const {
    if (tensor_.type != internal::TypeOf<T>::kCode) {
      throw Error(kFuseliteInvalidArgument, "\"" + name() + "\" is " +
                                                FuseliteTypeName(tensor_.type) + ", not " +
                                                FuseliteTypeName(internal::TypeOf<T>::kCode));
    }
    return static_cast<T*>(tensor_.data);
  }
  void* raw() const { return tensor_.data; }
  const FuseliteTensor& c_struct() const { return tensor_; }

 private:
  FuseliteTensor tensor_;
};

struct InterpreterOptions {
  int num_threads = 0;    // 0: the delegate's choice, the physical cores that the process may use
  std::string signature;  // empty: the model's first subgraph
  bool delegate = true;   // false: the reference kernels alone
  DelegateOptions delegate_options;
};

// A model ready to run: memory is allocated and the delegate is applied.
class Interpreter {
 public:
  explicit Interpreter(const std::string& path, const InterpreterOptions& options = {})
      : Interpreter(Model(path), options) {}
  explicit Interpreter(Model model, const InterpreterOptions& options = {})
      : model_(std::move(model)) {
    FuseliteInterpreterOptions c_options = FuseliteInterpreterOptionsDefault();
    c_options.num_threads = options.num_threads;
    if (!options.signature.empty()) c_options.signature = options.signature.c_str();
    handle_ = internal::Check(FuseliteInterpreterCreate(model_.get(), &c_options));
    if (options.delegate) {
      delegate_ = std::make_unique<Delegate>(options.delegate_options);
      ApplyDelegate(delegate_->get());
    }
    Allocate();
  }

  size_t input_count() const { return FuseliteInterpreterInputCount(get()); }
  size_t output_count() const { return FuseliteInterpreterOutputCount(get()); }
  Tensor input(size_t i) const {
    return Found(FuseliteInterpreterInput(get(), i), "input " + std::to_string(i), input_count());
  }
  Tensor output(size_t i) const {
    return Found(FuseliteInterpreterOutput(get(), i), "output " + std::to_string(i),
                 output_count());
  }
  // By the names that the signature gives them.
  Tensor input(const std::string& name) const {
    return Found(FuseliteInterpreterSignatureInput(get(), nullptr, name.c_str()),
                 "input \"" + name + "\"", input_count());
  }
  Tensor output(const std::string& name) const {
    return Found(FuseliteInterpreterSignatureOutput(get(), nullptr, name.c_str()),
                 "output \"" + name + "\"", output_count());
  }
  Tensor tensor(int32_t index) const {
    FuseliteTensor tensor;
    internal::Check(FuseliteInterpreterTensor(get(), index, &tensor));
    return Tensor(tensor);
  }

  // Gives the i-th input another shape. Allocate() must follow.
  void Resize(size_t i, const std::vector<int32_t>& shape) {
    internal::Check(FuseliteInterpreterResizeInput(get(), i, shape.data(), shape.size()));
  }
  void Allocate() { internal::Check(FuseliteInterpreterAllocate(get())); }
  // Throws with code() kFuseliteCancelled where Cancel() ended it.
  void Invoke() { internal::Check(FuseliteInterpreterInvoke(get())); }
  // Variable tensors; resource variables keep their values, as in LiteRT.
  void ResetVariables() { FuseliteInterpreterResetVariables(get()); }
  // Ends the invoke that is under way, or else the next one. For any thread.
  void Cancel() {
    FuseliteInterpreterCancel(get());
    if (delegate_) delegate_->Cancel();
  }

  // Another delegate, which must outlive the interpreter; to be followed by Allocate().
  void ApplyDelegate(TfLiteDelegate* delegate) {
    internal::Check(FuseliteInterpreterApplyDelegate(get(), delegate));
  }
  // Null where the options said so.
  const Delegate* delegate() const { return delegate_.get(); }
  const Model& model() const { return model_; }
  FuseliteInterpreter* get() const { return handle_.get(); }

 private:
  // The tensor `index`; -1 is none: the model has `count` inputs or outputs, but not this one.
  Tensor Found(int32_t index, const std::string& what, size_t count) const {
    if (index >= 0) return tensor(index);
    throw Error(kFuseliteInvalidArgument,
                "the model has no " + what + ", of " + std::to_string(count));
  }

  Model model_;
  std::unique_ptr<Delegate> delegate_;  // outlives the interpreter
  internal::Handle<FuseliteInterpreter> handle_;
};

}  // namespace fuselite

#endif  // FUSELITE_FUSELITE_HPP_
