// The shortest way to run a .tflite model fast from C++.
//
//   cmake -S examples/cpp -B build/example && cmake --build build/example   # where fuselite is
//   installed fuselite zoo mobilenet_v2 && build/example/run_model mobilenet_v2.tflite
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fuselite/fuselite.hpp>

namespace {

void Run(const char* path) {
  fuselite::Interpreter interpreter(path);

  const fuselite::Tensor input = interpreter.input(0);
  std::fill_n(input.data<float>(), input.bytes() / sizeof(float), 0.5f);
  interpreter.Invoke();

  const fuselite::Tensor output = interpreter.output(0);
  const float* values = output.data<float>();
  const float* best = std::max_element(values, values + output.bytes() / sizeof(float));
  std::printf("largest output: %td, %g\n", best - values, *best);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: run_model MODEL.tflite\n");
    return 2;
  }
  try {
    Run(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "run_model: %s\n", error.what());
    return 1;
  }
  return 0;
}
