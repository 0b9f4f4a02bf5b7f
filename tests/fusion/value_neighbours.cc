#include <algorithm>
#include <cstring>
#include <set>
#include <span>

#include "runtime/support/status.h"
#include "tests/fusion/draft.h"

namespace fuselite::fusion::testing {
namespace {

using internal::Join;

class ValueNeighbours {
 public:
  ValueNeighbours(const Draft& draft, const Attempt& attempt) : draft_(draft), attempt_(attempt) {}

  void All() {
    for (size_t v = 0; v < draft_.values.size(); ++v) OfValue(static_cast<ValueId>(v));
  }

 private:
  void OfValue(ValueId v) {
    const Value& value = draft_.values[v];
    if (value.info.constant()) return OfConstant(v);
    if (!value.observed && !value.input) {
      attempt_(Join(value.name, " is read outside, too"), [&](Draft& draft) {
        draft.values[v].observed = true;
        draft.outputs.push_back(v);
      });
      OfReader(v);
    }
    if (!value.observed && !value.variable) OfState(v);
    if (value.observed) OfOutput(v);
    if (value.input) OfShape(v);
    OfQuantization(v);
  }

  void OfShape(ValueId v) {
    const Shape& shape = draft_.values[v].info.shape;
    for (int d = 0; d < shape.rank(); ++d) {
      for (const int32_t size : {shape[d] + 1, 1, 0}) {
        if (size == shape[d]) continue;
        attempt_(Join(draft_.values[v].name, " has ", size, " in dimension ", d),
                 [&](Draft& draft) { draft.values[v].info.shape.set(d, size); });
      }
    }
    attempt_(Join(draft_.values[v].name, " has one more dimension in front"), [&](Draft& draft) {
      Shape more = {1};
      for (const int32_t size : shape.dims()) more.push_back(size);
      draft.values[v].info.shape = more;
    });
  }

  // What the value is may change while the graph runs: from then on nobody may read it where it was
  // read before. Written once more behind its first reader, before the last node and at the end.
  void OfState(ValueId v) {
    const TensorInfo& info = draft_.values[v].info;
    const bool written = info.type == DataType::kFloat32 || !info.quantization.empty();
    const auto reads = [&](const Node& node) { return std::ranges::count(node.inputs, v) > 0; };
    const auto reader = std::ranges::find_if(draft_.nodes, reads);
    if (!written || reader == draft_.nodes.end()) return;
    const size_t end = draft_.nodes.size();
    const auto behind = static_cast<size_t>(reader - draft_.nodes.begin()) + 1;
    for (const size_t at : std::set<size_t>{behind, std::max(behind, end - 1), end}) {
      attempt_(Join(draft_.values[v].name, " is state that is written before node ", at),
               [&](Draft& draft) {
                 if (!draft.values[v].input) draft.inputs.push_back(v);
                 draft.values[v].input = false;
                 draft.values[v].variable = true;
                 draft.Write(at, v);
               });
    }
  }

  // What is read once more is stored; nobody outside looks at it.
  void OfReader(ValueId v) {
    const TensorInfo& info = draft_.values[v].info;
    const bool floats = info.type == DataType::kFloat32;
    if (!floats && info.quantization.empty()) return;
    attempt_(Join(draft_.values[v].name, " is read by another node, too"), [&](Draft& draft) {
      const size_t end = draft.nodes.size();
      const ValueId read = draft.Insert(end, floats ? "NEG" : "DEQUANTIZE", {v});
      draft.values[read].observed = true;
      draft.outputs.push_back(read);
    });
  }

  // What is given outside goes through another operator first, which can be its maker's tail.
  void OfOutput(ValueId v) {
    if (draft_.values[v].info.type != DataType::kFloat32 || draft_.values[v].variable) return;
    for (const std::string_view op : {"ABS", "RELU6"}) {
      attempt_(Join(draft_.values[v].name, " goes through ", op), [&](Draft& draft) {
        const ValueId made = draft.Insert(draft.nodes.size(), op, {v});
        draft.values[v].observed = false;
        draft.values[made].observed = true;
        std::ranges::replace(draft.outputs, v, made);
      });
    }
  }

  void OfQuantization(ValueId v) {
    const Value& value = draft_.values[v];
    if (value.info.quantization.empty()) return;
    const auto changed = [](auto values, auto change) {
      std::vector result(values.begin(), values.end());
      if (!result.empty()) change(result[0]);
      return decltype(values)(std::move(result));
    };
    attempt_(Join(value.name, " has another scale"), [&](Draft& draft) {
      auto& scales = draft.values[v].info.quantization.scales;
      scales = changed(scales, [](float& scale) { scale *= 1.25f; });
    });
    attempt_(Join(value.name, " has another zero point"), [&](Draft& draft) {
      auto& zero_points = draft.values[v].info.quantization.zero_points;
      zero_points = changed(zero_points, [](int32_t& zero_point) { ++zero_point; });
    });
    attempt_(Join(value.name, " has no zero points"), [&](Draft& draft) {
      draft.values[v].info.quantization.zero_points = std::vector<int32_t>();
    });
    const Shape& shape = value.info.shape;
    for (int d = 0; d < shape.rank(); ++d) {
      if (shape[d] == 1 || value.info.quantization.per_channel()) continue;
      attempt_(Join(value.name, " has a scale for each part of dimension ", d), [&](Draft& draft) {
        Quantization& own = draft.values[v].info.quantization;
        std::vector<float> scales(shape[d], own.scale());
        for (int32_t i = 0; i < shape[d]; i += 2) scales[i] *= 0.75f;
        own.zero_points = std::vector<int32_t>(shape[d], own.zero_point());
        own.scales = std::move(scales);
        own.axis = d;
      });
    }
    if (value.info.constant()) return;
    for (const DataType type : {DataType::kInt8, DataType::kUInt8, DataType::kInt16}) {
      if (type == value.info.type) continue;
      attempt_(Join(value.name, " is of ", DataTypeName(type)),
               [&](Draft& draft) { draft.values[v].info.type = type; });
    }
  }

  void OfConstant(ValueId v) {
    const Value& value = draft_.values[v];
    switch (value.info.type) {
      case DataType::kFloat32: OfNumbers<float>(v); break;
      case DataType::kInt32:
        OfNumbers<int32_t>(v);
        OfTheRun(v);
        break;
      case DataType::kInt8: OfNumbers<int8_t>(v); break;
      default: break;
    }
    OfQuantization(v);
    if (value.info.type != DataType::kFloat32) return;
    attempt_(Join(value.name, " is an input"), [&](Draft& draft) {
      draft.values[v].info.data = nullptr;
      draft.values[v].input = true;
      draft.inputs.push_back(v);
    });
    const Shape& shape = value.info.shape;
    attempt_(Join(value.name, " is a column"),
             [&](Draft& draft) { draft.values[v].info.shape.push_back(1); });
    attempt_(Join(value.name, " is one number"), [&](Draft& draft) {
      for (int d = 0; d < shape.rank(); ++d) draft.values[v].info.shape.set(d, 1);
    });
    std::vector<int32_t> turned(shape.dims().rbegin(), shape.dims().rend());
    attempt_(Join(value.name, " has its dimensions in reverse"),
             [&](Draft& draft) { draft.values[v].info.shape = Shape(std::span(turned)); });
  }

  // The same numbers, known only when the graph runs.
  void OfTheRun(ValueId v) {
    const auto reads = [&](const Node& node) { return std::ranges::count(node.inputs, v) > 0; };
    const auto reader = std::ranges::find_if(draft_.nodes, reads);
    if (reader == draft_.nodes.end()) return;
    const auto at = static_cast<size_t>(reader - draft_.nodes.begin());
    attempt_(Join(draft_.values[v].name, " ", v, " is known only at run time"), [&](Draft& draft) {
      const ValueId any = draft.Input(draft.values[v].info);
      const ValueId zeros = draft.Insert(at, "SUB", {any, any});
      const ValueId same = draft.Insert(at + 1, "ADD", {zeros, v});
      for (const ValueId made : {zeros, same}) draft.values[made].info.type = DataType::kInt32;
      std::ranges::replace(draft.nodes[at + 2].inputs, v, same);
    });
  }

  // Few numbers each, else the first, one in the middle and the last.
  template <class T>
  void OfNumbers(ValueId v) {
    const Value& value = draft_.values[v];
    std::vector<T> numbers(value.info.elements());
    if (numbers.empty()) return;
    std::memcpy(numbers.data(), value.info.data, numbers.size() * sizeof(T));
    const auto with = [&](const char* what, size_t i, const std::vector<T>& other) {
      if (other == numbers) return;
      attempt_(Join(value.name, " ", v, " ", what, " at ", i), [&](Draft& draft) {
        Graph maker;
        const ValueId made =
            maker.AddConstant(value.info, std::as_bytes(std::span(other)), value.name);
        draft.values[v] = maker.value(made);
      });
    };
    const size_t step = std::max<size_t>(1, numbers.size() <= 8 ? 1 : (numbers.size() - 1) / 2);
    for (size_t i = 0; i < numbers.size(); i += step) {
      std::vector<T> other = numbers;
      other[i] = static_cast<T>(numbers[i] + 1);
      with("is one more", i, other);
      other[i] = static_cast<T>(numbers[i] - 1);
      with("is one less", i, other);
      other[i] = static_cast<T>(-numbers[i]);
      with("is negative", i, other);
      other = numbers;
      std::swap(other[i], other[(i + 1) % other.size()]);
      with("changes places", i, other);
    }
  }

  const Draft& draft_;
  const Attempt& attempt_;
};

}  // namespace

void TryChangesOfValues(const Draft& draft, const Attempt& attempt) {
  ValueNeighbours(draft, attempt).All();
}

}  // namespace fuselite::fusion::testing
