// Models, operators and a delegate that are made for tests: simple enough that every result can be
// told.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "interpreter/file/writer.h"
#include "interpreter/interpreter.h"
#include "runtime/tflite/abi.h"
#include "runtime/tflite/arrays.h"

#define ASSERT_OK(expr)                                  \
  do {                                                   \
    const Status ok_status = (expr);                     \
    ASSERT_TRUE(ok_status.ok()) << ok_status.ToString(); \
  } while (false)

namespace fuselite::interpreter {

// "AddOne": y = x + 1, float32, of one shape. "Count": n = {the number of elements of x, rounded
// down from x[0]} zeros: a shape that depends on values. "Sum": y = a + b. "Fails": its invoke
// reports "as asked".
const OpResolver& TestOperators();

std::shared_ptr<const Model> Load(const ModelWriter& writer);
std::unique_ptr<Interpreter> Open(const ModelWriter& writer, InterpreterOptions options = {});
// With the operators that the interpreter itself has.
std::unique_ptr<Interpreter> OpenBuiltin(const ModelWriter& writer);

// in -> AddOne -> ... -> AddOne -> out, float32[2]: `length` of them. Tensor i is the i-th value.
void WriteChain(ModelWriter& writer, int length);

std::vector<float> RunOn(Interpreter& interpreter, const std::vector<float>& input);
std::vector<float> Output(const Interpreter& interpreter, int i = 0);

// Claims AddOne and Sum nodes that `claims` agrees to, and computes them like the originals.
struct TestDelegate {
  TestDelegate();
  tflite::TfLiteDelegate delegate{};
  std::vector<int> claims;           // node indices; empty: none
  bool fail_prepare = false;         // of the delegate
  bool fail_kernel_prepare = false;  // of its kernels
  // What its kernels give stays in `kept`, of which the host gets copies when it asks.
  bool keeps = false;
  bool fail_copy = false;
  // What it saw.
  struct Partition {
    std::vector<int> nodes, inputs, outputs;
  };
  std::vector<Partition> partitions;  // of its kernels, in the order of their init
  std::vector<Partition> preview;
  int prepares = 0;
  int kernels_alive = 0;
  int kernel_prepares = 0;
  int invokes = 0;
  // The shapes of the values that nobody else sees, in the kernel that was prepared last.
  std::vector<std::vector<int>> shapes_inside;
  std::map<int, std::vector<float>> kept;  // by tensor, whose number is the handle
  int copies = 0;
};

}  // namespace fuselite::interpreter
