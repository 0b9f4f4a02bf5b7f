// IF and WHILE: operators that run other subgraphs of the model.
#pragma once

namespace fuselite::interpreter {

class OpResolver;

void AddControlFlow(OpResolver& resolver);

}  // namespace fuselite::interpreter
