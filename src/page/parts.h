// The parts of the page beside tables and figures.
#pragma once
#include "page/outline.h"

namespace sb {

// Beliefs on the recorded test samples, models side by side on the same grammar.
void add_samples(const Outline& outline, PageData& data);
// Every run that was found, usable or not. `page_folder`: links are relative to it; empty: there are none.
void add_runs(const Outline& outline, const std::string& page_folder, PageData& data);
// Runs that are not finished: how far, how fast, how long. The place of each in the source.
std::vector<size_t> add_board(const Outline& outline, PageData& data);
// What was measured and how, from the configs used. `citation`: CITATION.cff.
void add_method(const Outline& outline, const std::string& citation, PageData& data);

}  // namespace sb
