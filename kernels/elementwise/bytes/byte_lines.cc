#include "kernels/elementwise/bytes/byte_lines.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace fuselite::kernels {
namespace {

int32_t Saturate16(int32_t x) { return std::clamp(x, -32768, 32767); }

int32_t OnLine(const ByteLines& f, int i, int v) {
  return Saturate16((256 * v * f.slopes[i] >> 16) + f.starts[i]);
}

int32_t OnLines(const ByteLines& f, int v) {
  const int32_t q[] = {OnLine(f, 0, v), OnLine(f, 1, v)};
  const int32_t value = f.larger ? std::max(q[0], q[1]) : std::min(q[0], q[1]);
  return std::clamp(value >> f.shift, -128, 127);
}

// The function's results with sign, for v = -128 .. 127.
struct SignedTable {
  int8_t results[256];
  int operator()(int v) const { return results[v + 128]; }
};

struct Line {
  int16_t slope = 0, start = 0;
};

// Values between which the function is not at the ends of 8 bits, if there are two.
struct Inner {
  int first, last;

  Inner(const SignedTable& f, int from, int to) : first(from), last(to) {
    const auto ends = [&](int v) { return f(v) == -128 || f(v) == 127; };
    while (first < last && ends(first)) ++first;
    while (first < last && ends(last)) --last;
  }
  int distance() const { return std::max(1, last - first); }
  double Slope(const SignedTable& f) const {
    return static_cast<double>(f(last) - f(first)) / distance();
  }
};

// How near lines come to a function: each has its result, or one less at most.
enum class Nearness { kExact, kOneBelow };

// What a search for a line came to.
struct Fit {
  std::optional<Line> line{};
  // Without a line: no coarser units give one either, as two values of the function keep any from
  // being near. Else the line was not within 16 bits.
  bool bends = false;
};

// Values from `first` to `last` of a function, and a line through them in units of 2^-bits.
class LineFit {
 public:
  LineFit(const SignedTable& f, int first, int last, int bits)
      : f_(f), first_(first), last_(last), one_(1 << bits), inner_(f, first, last) {}

  // The slope between two values is off by up to two in their distance; which way, the two values
  // tell that keep a line from being exact.
  Fit Find(Nearness nearness) const {
    const int32_t slope = Scaled(inner_.Slope(f_));
    if (nearness == Nearness::kOneBelow) return WithSlope(slope, nearness).fit;
    const int32_t reach = Scaled(2.0) / inner_.distance();
    int32_t least = slope - reach, most = slope + reach;
    bool bends = true;
    while (least <= most) {
      const int32_t middle = (least + most) / 2;
      const Try tried = WithSlope(middle, nearness);
      if (tried.fit.line) return tried.fit;
      bends &= tried.fit.bends;
      tried.is_flat ? least = middle + 1 : most = middle - 1;
    }
    return {.bends = bends};
  }

 private:
  struct Try {
    Fit fit{};
    bool is_flat = false;  // it takes a larger slope, if any
  };

  int32_t Scaled(double slope) const {
    return static_cast<int32_t>(std::lround(slope * 256 * one_));
  }

  // Beyond the clamped ends the line may be anywhere.
  Try WithSlope(int32_t slope, Nearness nearness) const {
    if (slope < -32768 || slope > 32767) return {.is_flat = slope < 0};
    const int32_t below = nearness == Nearness::kExact ? 0 : one_;
    int32_t low = -32768, high = 32768;  // of the start
    int at_low = first_, at_high = first_;
    for (int v = first_; v <= last_; ++v) {
      const int32_t start = f_(v) * one_ - (256 * v * slope >> 16);
      if (f_(v) > -128 && start - below > low) low = start - below, at_low = v;
      if (f_(v) < 127 && start + one_ < high) high = start + one_, at_high = v;
      if (low >= high) {
        const bool bends = low > -32768 && high < 32768;
        return {.fit = {.bends = bends}, .is_flat = at_low > at_high};
      }
    }
    const auto start = static_cast<int16_t>(low + (high - low) / 2);
    return {.fit = {.line = Line{static_cast<int16_t>(slope), start}}};
  }

  const SignedTable& f_;
  int first_, last_;
  int32_t one_;
  Inner inner_;
};

// Fills in the bits; false where the lines are less near.
bool Correct(const SignedTable& f, Nearness nearness, ByteLines* lines) {
  std::fill(std::begin(lines->bits), std::end(lines->bits), uint8_t{0});
  lines->corrects = false;
  const int most = nearness == Nearness::kExact ? 0 : 1;
  for (int v = -128; v < 128; ++v) {
    const int missing = f(v) - OnLines(*lines, v);
    if (missing < 0 || missing > most) return false;
    const auto place = static_cast<uint8_t>(v);
    lines->bits[place / 8] |= static_cast<uint8_t>(missing << place % 8);
    lines->corrects |= missing != 0;
  }
  return true;
}

constexpr int kMostShift = 8, kLeastShift = 4;

// Brings one line so near to the function; false where there is none. The lines of a shift are
// among those of the next larger one, as far as 16 bits hold them.
bool FindLine(const SignedTable& f, Nearness nearness, ByteLines* lines) {
  for (lines->shift = kMostShift; lines->shift >= kLeastShift; --lines->shift) {
    const Fit fit = LineFit(f, -128, 127, lines->shift).Find(nearness);
    if (fit.bends) return false;
    if (!fit.line) continue;
    for (int i : {0, 1}) lines->slopes[i] = fit.line->slope, lines->starts[i] = fit.line->start;
    if (Correct(f, nearness, lines)) return true;
  }
  return false;
}

// Brings two lines so near, one on each side of `bend`.
bool FindTwoLines(const SignedTable& f, int bend, Nearness nearness, ByteLines* lines) {
  lines->larger = Inner(f, -128, bend).Slope(f) <= Inner(f, bend, 127).Slope(f);
  for (lines->shift = kMostShift; lines->shift >= kLeastShift; --lines->shift) {
    const Fit sides[] = {LineFit(f, -128, bend, lines->shift).Find(nearness),
                         LineFit(f, bend, 127, lines->shift).Find(nearness)};
    if (sides[0].bends || sides[1].bends) return false;
    if (!sides[0].line || !sides[1].line) continue;
    for (int i : {0, 1}) {
      lines->slopes[i] = sides[i].line->slope, lines->starts[i] = sides[i].line->start;
    }
    if (Correct(f, nearness, lines)) return true;
  }
  return false;
}

}  // namespace

uint8_t ByteLines::operator()(uint8_t x) const {
  const auto v = static_cast<uint8_t>(x ^ in_flip);
  const int more = bits[v / 8] >> v % 8 & 1;
  return static_cast<uint8_t>(OnLines(*this, static_cast<int8_t>(v)) + more) ^ out_flip;
}

std::optional<ByteLines> FindByteLines(std::span<const uint8_t> table, bool signed_in,
                                       bool signed_out, int knee) {
  ByteLines lines{};
  lines.in_flip = signed_in ? 0 : 0x80;
  lines.out_flip = signed_out ? 0 : 0x80;
  SignedTable f{};
  for (int v = -128; v < 128; ++v) {
    const uint8_t entry = table[static_cast<uint8_t>(v) ^ lines.in_flip];
    f.results[v + 128] = static_cast<int8_t>(entry ^ lines.out_flip);
  }
  const int bend = std::clamp(signed_in ? knee : knee - 128, -128, 127);
  // Exact lines are among the near ones, which a single slope tells: most functions have neither.
  std::optional<ByteLines> near;
  if (FindLine(f, Nearness::kOneBelow, &lines)) {
    near = lines;
    if (FindLine(f, Nearness::kExact, &lines)) return lines;
  }
  if (FindTwoLines(f, bend, Nearness::kOneBelow, &lines)) {
    if (!near) near = lines;
    if (FindTwoLines(f, bend, Nearness::kExact, &lines)) return lines;
  }
  return near;
}

std::optional<ByteLimits> FindByteLimits(std::span<const uint8_t> table, bool signed_in,
                                         bool signed_out) {
  if (signed_in != signed_out) return std::nullopt;
  const uint8_t flip = signed_in ? 0x80 : 0;
  const auto function = [&](int v) {
    return static_cast<uint8_t>(table[static_cast<uint8_t>(v ^ flip)] ^ flip);
  };
  const ByteLimits limits{function(0), function(255), flip};
  for (int v = 0; v < 256; ++v) {
    if (function(v) != std::min<int>(std::max<int>(v, limits.lowest), limits.highest)) {
      return std::nullopt;
    }
  }
  return limits;
}

}  // namespace fuselite::kernels
