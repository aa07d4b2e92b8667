// Names and colours of models, the same in every page and figure.
#pragma once
#include <string>
#include <vector>

namespace sb {

constexpr int model_colours = 12;                                      // the first of the palette
const std::vector<std::string>& palette_light();                       // on white
const std::vector<std::string>& palette_dark();                        // the same hues on a dark ground
std::vector<std::string> colours_of(const std::vector<int>& palette);  // on white
const std::vector<int>& frame_colours();                               // data, gap
const std::vector<int>& answer_colours();                              // right, right symbol, wrong symbol
int model_colour(const std::string& model);
std::string model_title(const std::string& model);  // "Gated DeltaNet"; the name itself where there is no other

}  // namespace sb
