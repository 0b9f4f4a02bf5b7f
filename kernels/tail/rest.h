// What of a tail is left to do when a micro-kernel has stored its tiles.
#pragma once

#include <string>

#include "kernels/tail/apply.h"
#include "runtime/execution/kernel.h"

namespace fuselite::kernels {

// What the name of a kernel ends with that leaves stages to passes over what it has stored, for a
// reason that is not empty: ", tail apart (reason)".
inline std::string TailApart(const std::string& why_rest) {
  return why_rest.empty() ? "" : ", tail apart (" + why_rest + ")";
}

struct TailRest {
  ApplyTailFunction* apply = nullptr;  // null: nothing is left
  // Micro-kernels store values of this type to scratch memory where the output's is another one:
  // int32 sums where not even the first stage is emitted. kNone: values of the output's type,
  // where they belong.
  DataType in_scratch = DataType::kNone;
  DataType output = DataType::kNone;
  Tail tail{};
  std::string why{};  // the reason why it is not emitted, for TailApart

  bool waits() const { return in_scratch != DataType::kNone; }
  DataType stored() const { return waits() ? in_scratch : output; }

  // Rows [row, row + rows) and channels of the output. `stored` is the first value that was stored,
  // `pitch` lies between its rows; `out` and `out_pitch` say the same of the output. Pitches count
  // elements. Precondition: something is left.
  struct Part {
    const std::byte* stored;
    int64_t pitch;
    std::byte* out;
    int64_t out_pitch;
    int64_t row, rows, channel, channels;
  };
  void Apply(const KernelArgs& args, const Part& part) const {
    apply(tail, args.inputs,
          {.source = part.stored,
           .source_pitch = part.pitch,
           .source_type = stored(),
           .destination = part.out,
           .destination_pitch = part.out_pitch,
           .destination_type = output,
           .row = part.row,
           .rows = part.rows,
           .channel = part.channel,
           .channels = part.channels});
  }
};

// What is left behind a micro-kernel that stores values of the type `stored`: it stores them where
// they belong if that is the output's type, else they wait in scratch memory.
inline TailRest RestBehind(DataType stored, DataType output, const Tail& rest, Isa isa) {
  const bool in_place = stored == output;
  return {.apply = in_place && rest.empty() ? nullptr : ApplyTail(isa),
          .in_scratch = in_place ? DataType::kNone : stored,
          .output = output,
          .tail = rest};
}

}  // namespace fuselite::kernels
