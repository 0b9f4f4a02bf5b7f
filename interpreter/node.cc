#include "interpreter/node.h"

#include <cstdlib>

#include "interpreter/operator_calls.h"

namespace fuselite::interpreter {

Node::~Node() {
  if (node.user_data != nullptr) CallFree(registration, context, node.user_data);
  std::free(node.inputs);
  std::free(node.outputs);
  std::free(node.intermediates);
  std::free(node.temporaries);
  std::free(node.builtin_data);
}

}  // namespace fuselite::interpreter
