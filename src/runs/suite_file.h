// A suite's file as it stands: what its sections say, before any combination is made.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runs/config_file.h"
#include "runs/suite.h"
#include "runs/suite_match.h"

namespace sb {

using SuiteAxis = std::vector<Settings>;  // one choice each: the settings it makes

struct SuiteCondition {
  struct Wanted {
    std::string text;  // spelled one way
    Place place;
    bool met = false;  // by some run
  };
  std::string name;
  Place key;
  std::vector<Wanted> any_of;
  std::set<std::string> seen;  // what runs have instead
  bool unclear = false;        // some run's value could not be read
};

struct SuiteOverride {
  std::vector<SuiteCondition> when;
  Settings set;
  bool skip = false;
  bool broken = false;  // a condition could not be read: it never applies
  bool lent = false;    // of a file that this one extends: need not hold for any run
};

struct SuiteFile {
  std::string name;
  std::vector<std::string> select, average;
  Settings base;  // of the named file, then of the sections
  std::vector<SuiteAxis> axes;
  std::vector<SuiteOverride> overrides;
  std::optional<SuiteTargets> match;
  std::vector<std::string> faults;  // a line each
};

SuiteFile parse_suite_file(std::string_view text, const std::string& path, const ModelRules& rules,
                           const SuiteChoice& choice);
// The value of a key as conditions compare it: one spelling each.
std::string condition_text(const std::string& name, const TomlValue& value);

}  // namespace sb
