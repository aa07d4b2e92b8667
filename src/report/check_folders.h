// Checks all runs, suite records and archives below folders.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "config/config_file.h"
#include "store/run_check.h"

namespace sb {

struct FolderCheck {
  std::vector<DamagedArchive> archives;
  std::vector<RunReport> reports;          // each run once, even if several of the folders lead to it
  std::vector<std::string> not_evaluated;  // by report: why `eval` cannot test it, "" if it can
  std::vector<std::string> notes;          // what was not searched
  std::vector<std::string> suites;         // damaged suite.json files next to runs
};

// `folders`: folders of runs, or archives. `rules`: if present, also checks that config.json and config.toml of a run
// describe the same network. Throws bad_input "[where] …" if one of the folders has no run.
FolderCheck check_folders(const std::vector<std::string>& folders, const std::optional<ModelRules>& rules,
                          const std::string& where);

}  // namespace sb
