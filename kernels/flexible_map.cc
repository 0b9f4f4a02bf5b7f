#include "kernels/flexible_map.h"

namespace fuselite::kernels {

Result<flexbuffers::Map> ReadFlexibleMap(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  if (bytes.empty() || !flexbuffers::VerifyBuffer(data, bytes.size()) ||
      !flexbuffers::GetRoot(data, bytes.size()).IsMap()) {
    return InvalidArgument("its options are no map of FlexBuffers");
  }
  return flexbuffers::GetRoot(data, bytes.size()).AsMap();
}

}  // namespace fuselite::kernels
