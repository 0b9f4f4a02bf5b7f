// The state of AMX, which a thread enters before it runs code with tiles and leaves behind it.
#pragma once

#include <cstdint>

namespace fuselite::jit {

// The shapes of the eight tiles, as LDTILECFG reads them.
struct AmxShapes {
  static constexpr int kRows = 16, kRowBytes = 64;  // the largest tile

  void Set(int tile, int rows, int row_bytes) {
    rows_[tile] = static_cast<uint8_t>(rows);
    row_bytes_[tile] = static_cast<uint16_t>(row_bytes);
  }

 private:
  uint8_t palette_ = 1, start_row_ = 0, reserved_[14] = {};
  uint16_t row_bytes_[16] = {};
  uint8_t rows_[16] = {};
};
static_assert(sizeof(AmxShapes) == 64);

// Entering takes about 45 ns, leaving 3; a thread that does not leave has 8 KiB more to save
// whenever it is interrupted.
void EnterAmx(const AmxShapes& shapes);
void LeaveAmx();

}  // namespace fuselite::jit
