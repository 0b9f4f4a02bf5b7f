// SKIP_GRAM.
#pragma once

namespace fuselite::interpreter {

class OpResolver;

void AddSkipGram(OpResolver& resolver);

}  // namespace fuselite::interpreter
