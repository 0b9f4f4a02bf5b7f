// RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL.
#pragma once

namespace fuselite::interpreter {

class OpResolver;

void AddRandom(OpResolver& resolver);

}  // namespace fuselite::interpreter
