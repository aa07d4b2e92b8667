// Names and colours of models, the same in every page.
#pragma once
#include <string>
#include <vector>

namespace sb {

const std::vector<std::string>& palette_light();                       // on white
const std::vector<std::string>& palette_dark();                        // the same hues on a dark ground
std::vector<std::string> colours_of(const std::vector<int>& palette);  // on white
int model_colour(const std::string& model);
std::string model_title(const std::string& model);  // "Gated DeltaNet"; the name itself where there is no other

}  // namespace sb
