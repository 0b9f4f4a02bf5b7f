// Elements that are written into lists. TensorFlow's converter has no operator for that: it joins
// what lies before the element, the element and what lies behind it, and the shapes of these parts
// depend on the index. Recurrent layers of Keras gather the results of their turns in such lists.
#pragma once

#include "partitioner/import/build_graph.h"
#include "runtime/tflite/abi.h"

namespace fuselite::partitioner {

// Puts a DYNAMIC_UPDATE_SLICE of the list in the place of each CONCATENATION of these, where the
// partition makes all of them, and takes SLICEs out of it that nothing reads then:
//   SLICE(list, {0, 0}, {index, -1})
//   an element
//   SLICE(list, {index + 1, 0}, {-1, -1})
// No shape depends on a value any more. The index is one of the list, as that of a loop's turn is:
// another one is moved into it, where LiteRT refuses a SLICE or makes a longer list.
void TakeListWrites(const tflite::TfLiteContext& context, Partition& partition);

}  // namespace fuselite::partitioner
