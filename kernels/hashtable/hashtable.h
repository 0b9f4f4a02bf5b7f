// Hash tables and words: operators of strings and of state, which run in an interpreter alone. Here
// are their parameters.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// HASHTABLE gives the handle of the table of this number.
struct HashtableParams {
  int32_t table_id;
  DataType key_type, value_type;
};

// SKIP_GRAM: n words of a sentence in their order, with at most max_skip_size left out between one
// and the next; with include_all_ngrams fewer words, too.
struct SkipGramParams {
  int32_t ngram_size, max_skip_size;
  bool include_all_ngrams;
};

}  // namespace fuselite::kernels
