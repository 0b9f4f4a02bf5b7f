// Hash tables: HASHTABLE, which names one, HASHTABLE_IMPORT, which fills it once, HASHTABLE_FIND
// and HASHTABLE_SIZE. As resource variables they belong to the interpreter and keep their contents
// between invokes.
#pragma once

namespace fuselite::interpreter {

class OpResolver;

void AddHashTables(OpResolver& resolver);

}  // namespace fuselite::interpreter
