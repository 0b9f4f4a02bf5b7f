#include "kernels/depthwise_conv2d/parted_lines.h"

#include <algorithm>
#include <utility>

#include "kernels/rows/line_units.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

// Narrower parts would have more columns at their ends, which have code of their own, than between.
constexpr int64_t kLeastColumns = 32;
// Tiles have up to eight columns.
constexpr int64_t kWholeTiles = 8;

// Outputs [first, end) of the line.
LinePart PartAt(const Window& line, int64_t first, int64_t end) {
  LinePart part{.first = static_cast<int32_t>(first), .first_input = 0, .window = line};
  WindowAxis& x = part.window.x;
  const int32_t start = line.x.start(part.first);
  part.first_input = std::max(start, 0);
  x.before = std::max(-start, 0);
  x.output = static_cast<int32_t>(end - first);
  const int64_t reach = x.reach() - x.before;
  x.input = static_cast<int32_t>(std::min<int64_t>(line.x.input - part.first_input, reach));
  x.after = static_cast<int32_t>(reach - x.input);
  return part;
}

bool IsOneRow(const WindowAxis& y) { return y.input == 1 && y.output == 1 && y.filter == 1; }

bool Equal(const WindowAxis& a, const WindowAxis& b) {
  return a.input == b.input && a.output == b.output && a.before == b.before && a.after == b.after;
}

class PartedLines final : public LineConvolution {
 public:
  struct Part {
    int64_t first, first_input;  // the latter in bytes
    size_t lines;                // among those of all parts
  };
  // `lines`: what differs among the parts, the first part's first. `columns`: of all parts.
  PartedLines(std::vector<std::shared_ptr<const LineConvolution>> lines, std::vector<Part> parts,
              int64_t columns)
      : lines_(std::move(lines)), parts_(std::move(parts)), columns_(columns) {}

  std::string name() const override { return any().name(); }
  int64_t parts() const override { return std::ssize(parts_); }
  int64_t first_column(int64_t part) const override {
    return part < parts() ? parts_[part].first : columns_;
  }
  int64_t blocks() const override { return any().blocks(); }
  int64_t first_channel(int64_t block) const override { return any().first_channel(block); }
  Work work() const override { return any().work(); }
  const TailRest& rest() const override { return any().rest(); }
  int64_t waiting_pitch() const override { return any().waiting_pitch(); }
  size_t packed_bytes() const override { return any().packed_bytes(); }
  std::string layout() const override { return any().layout(); }
  bool packs_bias() const override { return any().packs_bias(); }
  void Pack(const void* filter, const void* bias, std::byte* to) const override {
    any().Pack(filter, bias, to);
  }

  Result<std::shared_ptr<const LineConvolution>> Emit(const std::string& name) const override {
    std::vector<std::shared_ptr<const LineConvolution>> emitted;
    for (const auto& lines : lines_) {
      FUSELITE_ASSIGN_OR_RETURN(emitted.emplace_back(), lines->Emit(name));
    }
    return std::shared_ptr<const LineConvolution>(
        std::make_shared<PartedLines>(std::move(emitted), parts_, columns_));
  }

  void Run(const LineRun& run) const override {
    const Part& part = parts_[run.part];
    LineRun of_part = run;
    of_part.image += part.first_input;
    lines_[part.lines]->Run(of_part);
  }

 private:
  const LineConvolution& any() const { return *lines_.front(); }

  std::vector<std::shared_ptr<const LineConvolution>> lines_;
  std::vector<Part> parts_;
  int64_t columns_;
};

Result<std::shared_ptr<const LineConvolution>> PlanParts(const std::vector<LinePart>& parts,
                                                         int64_t pixel_bytes,
                                                         const PlanLinesOf& plan) {
  std::vector<std::shared_ptr<const LineConvolution>> lines;
  std::vector<WindowAxis> planned;
  std::vector<PartedLines::Part> of_parts;
  for (const LinePart& part : parts) {
    const auto same =
        std::ranges::find_if(planned, [&](const WindowAxis& x) { return Equal(x, part.window.x); });
    of_parts.push_back({.first = part.first,
                        .first_input = part.first_input * pixel_bytes,
                        .lines = static_cast<size_t>(same - planned.begin())});
    if (same != planned.end()) continue;
    planned.push_back(part.window.x);
    FUSELITE_ASSIGN_OR_RETURN(lines.emplace_back(), plan(part.window));
    if (lines.back()->layout() != lines.front()->layout()) {
      return Unsupported("parts of a line pack their weights in different ways");
    }
  }
  const LinePart& last = parts.back();
  return std::shared_ptr<const LineConvolution>(std::make_shared<PartedLines>(
      std::move(lines), std::move(of_parts), int64_t{last.first} + last.window.x.output));
}

}  // namespace

std::vector<LinePart> PartsOfLine(const Window& window, int64_t images, int threads) {
  const int64_t columns = window.x.output;
  const int64_t wanted = LineUnits::Wanted(threads, images);
  const int64_t count = std::min(wanted, columns / kLeastColumns);
  std::vector<LinePart> whole = {{.first = 0, .first_input = 0, .window = window}};
  if (!IsOneRow(window.y) || count < 2) return whole;
  const int64_t width = CeilDiv(CeilDiv(columns, count), kWholeTiles) * kWholeTiles;
  std::vector<LinePart> parts;
  for (int64_t first = 0; first < columns; first += width) {
    parts.push_back(PartAt(window, first, std::min(first + width, columns)));
    if (parts.back().window.x.input <= 0) return whole;  // in nothing but padding
  }
  return parts;
}

Result<std::shared_ptr<const LineConvolution>> PlanInParts(const Window& window, int64_t images,
                                                           int64_t pixel_bytes, int threads,
                                                           const PlanLinesOf& plan) {
  const std::vector<LinePart> parts = PartsOfLine(window, images, threads);
  if (parts.size() > 1) {
    auto parted = PlanParts(parts, pixel_bytes, plan);
    if (parted.ok()) return parted;
  }
  return plan(window);
}

}  // namespace fuselite::kernels
