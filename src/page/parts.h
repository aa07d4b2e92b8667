// Parts of the page other than tables and figures.
#pragma once
#include "page/outline.h"

namespace sb {

// Predictions on the recorded test samples, with models on the same grammar side by side.
void add_samples(const Outline& outline, PageData& data);
// All runs that were found, usable or not. `page_folder`: links are relative to it; empty: no links.
void add_runs(const Outline& outline, const std::string& page_folder, PageData& data);
// Adds unfinished runs with progress, speed and time left. Returns the position of each in the source.
std::vector<size_t> add_board(const Outline& outline, PageData& data);
// Adds the description of the method, from the configs used. `citation`: CITATION.cff.
void add_method(const Outline& outline, const std::string& citation, PageData& data);

}  // namespace sb
