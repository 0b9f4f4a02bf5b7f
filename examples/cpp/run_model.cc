// The shortest way to run a .tflite model fast from C++: our own interpreter and the delegate.
//
//   build/release/tools/fuselite zoo mobilenet_v2
//   build/release/examples/example_run_model mobilenet_v2.tflite
#include <algorithm>
#include <cstdio>

#include "interpreter/interpreter.h"
#include "partitioner/delegate.h"

namespace {

fuselite::Status Run(const char* path) {
  using namespace fuselite;
  FUSELITE_ASSIGN_OR_RETURN(auto model, interpreter::LoadModelFromFile(path));
  FUSELITE_ASSIGN_OR_RETURN(auto options, partitioner::ParseOptions({}));
  partitioner::Delegate delegate(options);  // outlives the interpreter
  FUSELITE_ASSIGN_OR_RETURN(auto runner, interpreter::Interpreter::Create(model));
  FUSELITE_RETURN_IF_ERROR(runner->ApplyDelegate(delegate.c_struct()));
  FUSELITE_RETURN_IF_ERROR(runner->AllocateTensors());

  const interpreter::TensorView input = runner->input(0);
  if (input.type != DataType::kFloat32) return Unsupported("this example feeds float32 models");
  std::fill_n(static_cast<float*>(input.data), input.shape.elements(), 0.5f);
  FUSELITE_RETURN_IF_ERROR(runner->Invoke());

  const interpreter::TensorView output = runner->output(0);
  if (output.type != DataType::kFloat32) return Unsupported("this example prints float32 outputs");
  const auto* values = static_cast<const float*>(output.data);
  const auto* best = std::max_element(values, values + output.shape.elements());
  std::printf("largest output: %td, %g\n", best - values, *best);
  return Status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: example_run_model MODEL.tflite\n");
    return 2;
  }
  if (const fuselite::Status status = Run(argv[1]); !status.ok()) {
    std::fprintf(stderr, "example_run_model: %s\n", status.message().c_str());
    return 1;
  }
  return 0;
}
