// Names and colours of models, the same in every page and figure.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sb {

constexpr int model_colours = 12;                                      // models have the palette's first colours
constexpr int first_free_colour = 17;                                  // after the colours of frames and answers
const std::vector<std::string>& palette_light();                       // on white
const std::vector<std::string>& palette_dark();                        // the same hues, for a dark background
std::vector<std::string> colours_of(const std::vector<int>& palette);  // on white
const std::vector<int>& frame_colours();                               // data, gap
const std::vector<int>& answer_colours();                              // right, right symbol, wrong symbol
int model_colour(const std::string& model);
// A colour for each model, all different if the palette has enough. Our models have fixed colours. Others get those
// from first_free_colour on, then those of our models that are not in the set.
std::map<std::string, int> model_colours_of(const std::set<std::string>& models);
std::string model_title(const std::string& model);  // "Gated DeltaNet"; the name itself if it has no title

}  // namespace sb
