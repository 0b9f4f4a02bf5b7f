// One node of a running graph: the C structs and what they point to.
#pragma once

#include <string>

#include "kernels/operator.h"
#include "runtime/tflite/abi.h"

namespace fuselite::interpreter {

// Owns the arrays and the builtin data. Not moved: delegates hold pointers to the structs.
struct Node {
  Node() = default;
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  tflite::TfLiteNode node{};
  tflite::TfLiteRegistration registration{};
  tflite::TfLiteContext* context = nullptr;  // for `registration.free`
  int index = 0;
  std::string name;  // "CONV_2D", "delegate Fuselite"
  // It may keep something of its runs behind `user_data` until it is prepared again: an
  // application's operator, or one that draws numbers. Others keep states in variables alone.
  bool remembers = false;
};

}  // namespace fuselite::interpreter
