// Baselines beside runs: ROOT/baselines-<16 digits>.json, sealed. They depend on the data alone, so that all runs of a
// folder on the same samples share one count. The file only saves time: it appears whole or not at all, and one that is
// lost, damaged or of other data is made again.
#pragma once
#include <optional>
#include <string>

#include "runs/result.h"

namespace sb {

// `of`: a text of all that the figures depend on.
std::string baseline_file(const std::string& root, const std::string& of);
std::optional<BaselineFigures> load_baselines(const std::string& root, const std::string& of);
void save_baselines(const std::string& root, const std::string& of, const BaselineFigures& figures);

}  // namespace sb
