#include "report/palette.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/model_facts.h"

namespace sb {
namespace {

// Each of the models' colours belongs to one model.
constexpr std::array<std::string_view, model_colours> owners = [] {
  std::array<std::string_view, model_colours> out;
  for (const ModelFacts& model : kModelFacts)
    if (model.colour >= 0) out.at(static_cast<size_t>(model.colour)) = model.name;
  return out;
}();
static_assert(std::count_if(std::begin(kModelFacts), std::end(kModelFacts),
                            [](const ModelFacts& model) { return model.colour >= 0; }) == model_colours &&
              std::find(owners.begin(), owners.end(), "") == owners.end());

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
  if (const int own = model_facts(model).colour; own >= 0) return own;
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
    if (!models.contains(std::string(owners[static_cast<size_t>(colour)]))) free.push_back(colour);
  size_t next = 0;
  for (const auto& model : models) {
    const int own = model_facts(model).colour;
    out[model] = own >= 0 ? own : free[next++ % free.size()];
  }
  return out;
}

std::string model_title(const std::string& model) {
  const std::string_view title = model_facts(model).title;
  return title.empty() ? model : std::string(title);
}

}  // namespace sb
