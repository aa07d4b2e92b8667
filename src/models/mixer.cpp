#include "models/mixer.h"

#include "base/torch_pch.h"

namespace sb {

std::optional<DropoutKey> LayerDropout::at(uint32_t place) const {
  if (!key) return std::nullopt;
  DropoutKey out = *key;
  out.place += place;
  if (used) used->push_back(out.place);
  return out;
}

at::Tensor LayerState::get(const std::string& slot) const {
  const auto found = slots.find(slot);
  return found == slots.end() ? at::Tensor() : found->second;
}

void LayerState::detach() {
  for (auto& [name, value] : slots) value = value.detach();
}

int64_t LayerState::elements(std::string_view slot_prefix) const {
  int64_t sum = 0;
  for (const auto& [name, value] : slots)
    if (name.starts_with(slot_prefix) && value.size(0) > 0) sum += value.numel() / value.size(0);
  return sum;
}

std::string_view action_name(Taxonomy::Action action) {
  switch (action) {
    case Taxonomy::Action::identity:
      return "identity";
    case Taxonomy::Action::scalar:
      return "scalar";
    case Taxonomy::Action::elementwise:
      return "elementwise";
    case Taxonomy::Action::matrix:
      return "matrix";
    case Taxonomy::Action::nonlinear:
      return "nonlinear";
    case Taxonomy::Action::cache:
      return "cache";
    case Taxonomy::Action::unknown:
      break;
  }
  return "unknown";
}

}  // namespace sb
