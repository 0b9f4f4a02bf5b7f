// IF, WHILE, STABLEHLO_CASE and STABLEHLO_COMPOSITE: operators that run other subgraphs of the
// model.
#pragma once

namespace fuselite::interpreter {

class OpResolver;

void AddControlFlow(OpResolver& resolver);

}  // namespace fuselite::interpreter
