#include "interpreter/node.h"

#include <cstdlib>

namespace fuselite::interpreter {

Node::~Node() {
  if (registration.free != nullptr && node.user_data != nullptr) {
    registration.free(context, node.user_data);
  }
  std::free(node.inputs);
  std::free(node.outputs);
  std::free(node.intermediates);
  std::free(node.temporaries);
  std::free(node.builtin_data);
}

}  // namespace fuselite::interpreter
