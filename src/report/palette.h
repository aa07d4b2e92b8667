// Names and colours of models, the same in every page and figure.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sb {

constexpr int model_colours = 12;                                      // the first of the palette
constexpr int first_free_colour = 17;                                  // behind those of frames and answers
const std::vector<std::string>& palette_light();                       // on white
const std::vector<std::string>& palette_dark();                        // the same hues on a dark ground
std::vector<std::string> colours_of(const std::vector<int>& palette);  // on white
const std::vector<int>& frame_colours();                               // data, gap
const std::vector<int>& answer_colours();                              // right, right symbol, wrong symbol
int model_colour(const std::string& model);
// The colours of these models, no two the same as long as the palette has enough. Ours have their own; others get those
// behind first_free_colour, then those of our models that are not among these.
std::map<std::string, int> model_colours_of(const std::set<std::string>& models);
std::string model_title(const std::string& model);  // "Gated DeltaNet"; the name itself where there is no other

}  // namespace sb
