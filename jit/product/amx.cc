#include "jit/product/amx.h"

#include <immintrin.h>

namespace fuselite::jit {

__attribute__((target("amx-tile"))) void EnterAmx(const AmxShapes& shapes) {
  _tile_loadconfig(&shapes);
}

__attribute__((target("amx-tile"))) void LeaveAmx() { _tile_release(); }

}  // namespace fuselite::jit
