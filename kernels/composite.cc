#include "kernels/composite.h"

#include <cmath>
#include <string>

#include "kernels/attention/attention.h"
#include "kernels/flexible_map.h"
#include "kernels/layer_norm/layer_norm.h"

namespace fuselite::kernels {

const OperatorDef& AttentionOperator();
const OperatorDef& LayerNormOperator();

namespace {

// Calls `take(name, number)` for each attribute, which says whether it knows the name.
template <class Take>
Status ReadNumbers(std::span<const std::byte> attributes, Take take) {
  if (attributes.empty()) return Status();
  FUSELITE_ASSIGN_OR_RETURN(const flexbuffers::Map map, ReadFlexibleMap(attributes));
  for (size_t i = 0; i < map.size(); ++i) {
    const std::string name = map.Keys()[i].AsKey();
    const flexbuffers::Reference value = map.Values()[i];
    if (!value.IsNumeric() || !std::isfinite(value.AsFloat()) || !take(name, value.AsFloat())) {
      return Unsupported("attribute ", name, " is not known");
    }
  }
  return Status();
}

Status ReadRmsNorm(std::span<const std::byte> attributes, void* params) {
  auto& to = *static_cast<LayerNormParams*>(params);
  to.keeps_mean = true;
  to.epsilon = -1;
  FUSELITE_RETURN_IF_ERROR(ReadNumbers(attributes, [&](const std::string& name, float value) {
    if (name == "epsilon") to.epsilon = value;
    return name == "epsilon";
  }));
  return to.epsilon >= 0 ? Status() : Unsupported("has no epsilon");
}

Status ReadAttention(std::span<const std::byte> attributes, void* params) {
  auto& to = *static_cast<AttentionParams*>(params);
  to.keys_by_rows = true;
  to.heads_inside = true;
  FUSELITE_RETURN_IF_ERROR(ReadNumbers(attributes, [&](const std::string& name, float value) {
    if (name == "scale") to.scale = value;
    if (name == "logit_cap") to.logit_cap = value;
    return name == "scale" || name == "logit_cap";
  }));
  // As PyTorch decomposes it, lest products grow large.
  to.by_roots = to.logit_cap == 0;
  return to.scale > 0 && to.logit_cap >= 0 ? Status() : Unsupported("has no positive scale");
}

}  // namespace

std::span<const NamedComposite> AllComposites() {
  static const NamedComposite kAll[] = {
      {"odml.rms_norm", &LayerNormOperator(), 3, ReadRmsNorm},
      {"odml.scaled_dot_product_attention", &AttentionOperator(), 4, ReadAttention},
  };
  return kAll;
}

const NamedComposite* FindComposite(std::string_view name) {
  for (const NamedComposite& composite : AllComposites()) {
    if (composite.name == name) return &composite;
  }
  return nullptr;
}

}  // namespace fuselite::kernels
