// A parsed suite file: the content of its sections, before combinations are made.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/config_file.h"
#include "suites/suite.h"
#include "suites/suite_match.h"

namespace sb {

using SuiteAxis = std::vector<Settings>;  // one entry per choice: its settings

struct SuiteCondition {
  struct Wanted {
    std::string text;  // in canonical spelling
    Place place;
    bool met = false;  // some run has this value
  };
  std::string name;
  Place key;
  std::vector<Wanted> any_of;
  std::set<std::string> seen;  // values that runs have instead
  bool unclear = false;        // the value of some run could not be read
};

struct SuiteOverride {
  std::vector<SuiteCondition> when;
  Settings set;
  bool skip = false;
  bool broken = false;     // a condition could not be read: the override never applies
  bool inherited = false;  // from an extended file: need not apply to any run
};

struct SuiteFile {
  std::string name;
  std::vector<std::string> select, average;
  Settings base;  // of the file `base`, then of the sections
  std::vector<SuiteAxis> axes;
  std::vector<SuiteOverride> overrides;
  std::optional<SuiteTargets> match;
  std::vector<std::string> faults;  // one line each
};

SuiteFile parse_suite_file(std::string_view text, const std::string& path, const ModelRules& rules,
                           const SuiteChoice& choice);
// The canonical text of a value, as conditions compare it.
std::string condition_text(const std::string& name, const TomlValue& value);

}  // namespace sb
