// What the device of runs means for those who start them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runs/config_file.h"

namespace sb::cli {

// Processes at a time where nobody said how many: one a core, and one alone where a run is of the GPU, which more would
// share.
int usual_jobs(const std::vector<const ResolvedConfig*>& runs, int cores);

// One line where a run is of the CPU only since the GPU that this build is for (`built`) cannot be used, `missing` says
// why; empty: there is nothing to say.
std::string cpu_note(const std::vector<ResolvedConfig>& runs, bool built, const std::string& missing);

// Cards that a folder of device files (/dev) has, before CUDA is asked for anything.
int cards_in(const std::string& devices);

// Whether "auto" came to the CPU for a rank alone: the machine has `cards`, and its number `local` is none of them, or
// it was made to see none (`visible`, as below).
bool lacks_card(const ResolvedConfig& run, int local, int cards, const char* visible);

// The first `count` cards by the names a process sees them under: those that CUDA_VISIBLE_DEVICES names (`visible`, up
// to the first that is none, as CUDA reads it; fewer where it names fewer), or their numbers where it is not set
// (null).
std::vector<std::string> visible_cards(const char* visible, int count);

// What a rank is to see of them (`visible`, as above): its own card alone. One that sees a single card, as srun's
// --gpus-per-task has it, or whose number on its machine nobody told, sees what it saw (nothing); one without a card
// sees none.
std::optional<std::string> card_of_rank(const char* visible, int local);

}  // namespace sb::cli
