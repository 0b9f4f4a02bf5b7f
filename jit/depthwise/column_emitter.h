// Columns of an image's rows in registers, as quantized depthwise convolutions multiply them: the
// rows of a window interleaved, so that each 32-bit lane holds values of one channel
// (DepthwiseS8Spec).
#pragma once

#include <array>
#include <functional>
#include <optional>

#include "jit/depthwise/depthwise_s8_emitter.h"

namespace fuselite::jit {

// Clobbers k1, k2, k6 and k7 on AVX-512.
class ColumnEmitter {
 public:
  // Vector registers, the highest ones: clobbered, and behind them the constant that flips.
  static constexpr int kTemporaries = 5, kRegisters = kTemporaries + 1;

  // `row(ky)` may emit code and gives the address of the tile's first column in the image row that
  // the filter's row ky meets.
  ColumnEmitter(Assembler& assembler, const DepthwiseS8Spec& spec, std::function<Place(int ky)> row)
      : a_(assembler), spec_(spec), row_(std::move(row)) {}

  // Once in each function, for the channels of one block; clobbers rax.
  // `joined` rows of outputs share the vectors, each with `channels` in a part of them; row(ky) is
  // that of the filter's row ky for the first of them, and those of the next one lie behind.
  void Prepare(int width, int channels, int joined);
  // In which registers values are: spec.group() of them.
  using Values = std::array<int, 4>;
  // The values `offset` bytes further that are multiplied in step `step` of the column's: of
  // spec.lane_rows() filter rows, interleaved, or of the row's groups. Lanes of rows that the
  // filter does not have hold anything: their weights are zero. The steps of a row follow each
  // other. Temporary 3 is not among the registers of pairs.
  Values Load(int64_t offset, int step);
  // A column outside of the image, of `lane` everywhere.
  Values LoadZeroPoints(const Memory& lane);

  // How many bytes further a column lies; none: outside of the image.
  using Column = std::optional<int64_t>;
  // The last filter row's values of two columns, interleaved (DepthwiseS8Spec::pairs_columns). A
  // column stays in its register for the next pair, until StartPairs().
  Values LoadPair(const Column& first, const Column& second, const Memory& zero_points);
  void StartPairs() { held_ = {}; }

 private:
  int part_bytes() const { return width_ / joined_; }
  bool partial() const { return channels_ < spec_.whole_channels(part_bytes()); }
  int t(int i) const { return a_.isa().registers() - 1 - i; }
  int flip() const { return t(kTemporaries); }
  const Xbyak::Xmm& V(int reg) const { return VectorOf(reg, width_); }

  Values InterleaveWords(int first, int second);
  Values InterleaveBytes(int rows);
  int Hold(const Column& column, const Column& other, const Memory& zero_points);
  Values LoadGroups(int64_t offset, int step);
  void LoadRow(int to, int row, int64_t offset);
  void LoadBytes(int to, const Place& address);
  void LoadJoined(int to, int row, int64_t offset);
  void LoadWords(int to, const Place& address);
  void Widen(const Xbyak::Xmm& to, const Xbyak::Operand& from);
  template <class From>
  void Flip(int to, const From& from);

  Assembler& a_;
  const DepthwiseS8Spec& spec_;
  std::function<Place(int)> row_;
  int width_ = 0, channels_ = 0, joined_ = 1;
  std::array<std::optional<Column>, 2> held_{};  // in temporaries 1 and 4
};

}  // namespace fuselite::jit
