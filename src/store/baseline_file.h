// Cache of baselines next to runs: ROOT/.baselines-<16 digits>.json, sealed. Baselines depend only on the data, so all
// runs of a folder on the same samples share one file. The file only saves time. It is written atomically; if it is
// lost, damaged or of other data, the baselines are computed again.
#pragma once
#include <optional>
#include <string>

#include "store/result.h"

namespace sb {

// `of`: a text of everything that the figures depend on.
std::string baseline_file(const std::string& root, const std::string& of);
std::optional<BaselineFigures> load_baselines(const std::string& root, const std::string& of);
void save_baselines(const std::string& root, const std::string& of, const BaselineFigures& figures);

}  // namespace sb
