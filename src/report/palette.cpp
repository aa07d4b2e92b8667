#include "report/palette.h"

#include <algorithm>

namespace sb {
namespace {

struct Known {
  const char *name, *title;
};
// The position in this list is the colour.
constexpr Known known[] = {{"delta_net", "DeltaNet"},
                           {"gla", "GLA"},
                           {"mamba", "Mamba"},
                           {"mamba2", "Mamba2"},
                           {"gated_delta_net", "Gated DeltaNet"},
                           {"gated_delta_product", "Gated DeltaProduct"},
                           {"transformer", "Transformer"},
                           {"linear_attn", "Linear attention"},
                           {"retnet", "RetNet"},
                           {"s4", "S4"},
                           {"gru", "GRU"},
                           {"linear_attn_elu", "Linear attention, ELU"}};

// Models without a colour of their own.
constexpr Known titled[] = {{"hgrn2", "HGRN2"},    {"kda", "KDA"},          {"gated_delta_net2", "Gated DeltaNet-2"},
                            {"rwkv7", "RWKV-7"},   {"fox", "FoX"},          {"mlstm", "mLSTM"},
                            {"mamba3", "Mamba-3"}, {"mesa_net", "MesaNet"}, {"log_linear_mamba2", "Log-linear Mamba2"}};

static_assert(std::size(known) == model_colours);

const Known* find(const std::string& model) {
  const auto* it =
      std::find_if(std::begin(known), std::end(known), [&](const Known& each) { return model == each.name; });
  return it == std::end(known) ? nullptr : it;
}

}  // namespace

// People with red-green blindness can tell these hues apart by lightness; contrast with the background is at least 3:1.
// Models come first, then frames and answers, whose colours no model uses and which differ by CIEDE2000 >= 33, also for
// people without red, green or blue cones. The last colours are for models that are not ours.
const std::vector<std::string>& palette_light() {
  static const std::vector<std::string> colours = {"#0072b2", "#d55e00", "#00805e", "#94690d", "#7b3294", "#c51b7d",
                                                   "#4d4d4d", "#0e7f86", "#6a3000", "#3f51b5", "#b2182b", "#5d7052",
                                                   "#1b1f3b", "#a07bd8", "#5f9a00", "#c56bd6", "#241a1a", "#9207ff",
                                                   "#0c0999", "#6a023a", "#fd0bfd", "#043e00", "#fd508c"};
  return colours;
}

const std::vector<std::string>& palette_dark() {
  static const std::vector<std::string> colours = {"#56b4e9", "#ff8c42", "#2fd6a5", "#e0b050", "#c49bff", "#ff7ac0",
                                                   "#c8c8c8", "#4fd8d8", "#9b5008", "#93a8ff", "#ff7b7b", "#b4cca4",
                                                   "#f3ecff", "#7d55c7", "#6aa835", "#9b4fc0", "#f5e9ff", "#f7fc0f",
                                                   "#08797c", "#f201ff", "#04fb04", "#d80463", "#9d8685"};
  return colours;
}

const std::vector<int>& frame_colours() {
  static const std::vector<int> colours = {model_colours, model_colours + 1};
  return colours;
}

const std::vector<int>& answer_colours() {
  static const std::vector<int> colours = {model_colours + 2, model_colours + 3, model_colours + 4};
  return colours;
}

std::vector<std::string> colours_of(const std::vector<int>& palette) {
  std::vector<std::string> out;
  for (const int colour : palette) out.push_back(palette_light()[static_cast<size_t>(colour)]);
  return out;
}

int model_colour(const std::string& model) {
  if (const Known* row = find(model)) return static_cast<int>(row - std::begin(known));
  unsigned sum = 0;
  for (const char c : model) sum = sum * 31 + static_cast<unsigned char>(c);
  return static_cast<int>(sum % model_colours);
}

std::map<std::string, int> model_colours_of(const std::set<std::string>& models) {
  std::map<std::string, int> out;
  std::vector<int> free;
  for (int colour = first_free_colour; colour < static_cast<int>(palette_light().size()); ++colour)
    free.push_back(colour);
  for (int colour = model_colours; colour-- > 0;)  // of models that are not there
    if (!models.contains(known[colour].name)) free.push_back(colour);
  size_t next = 0;
  for (const auto& model : models) out[model] = find(model) ? model_colour(model) : free[next++ % free.size()];
  return out;
}

std::string model_title(const std::string& model) {
  if (const Known* row = find(model)) return row->title;
  for (const Known& each : titled)
    if (model == each.name) return each.title;
  return model;
}

}  // namespace sb
