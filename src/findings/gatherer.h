// Implementation of figures_of: assigns groups to strata (population.cpp), computes effects (effects.cpp) and describes
// missing runs (missing_runs.cpp).
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "findings/population.h"

namespace sb {

class Gatherer {
 public:
  Gatherer(const Rows& rows, const Claims& claims, const Scale& scale, std::string protocol,
           const Comparison& comparison);
  Figures make();

 private:
  struct Place {
    size_t group = 0;
    Level level;
  };
  using Members = std::vector<std::vector<Place>>;  // by arm: the groups of one stratum
  using GroupsByLevel = std::map<Level, size_t>;

  // population.cpp
  void require_kind();
  void place_groups();
  void place_absent();
  bool of_task(const Group& group) const;
  bool is_reported(const Group& group) const;
  ConfigMap stratum_of(const Group& group) const;
  Level level_of(size_t group) const;
  std::map<Level, std::vector<size_t>> by_level(const std::vector<Place>& places) const;
  Figures of_stratum(const Members& members);

  // effects.cpp
  bool shares_settings() const;
  void two_arms(Figures& out, const Members& members);
  void one_arm(Figures& out, const Members& members);
  void mean_of_models(Figures& out, const std::vector<LevelValues>& values,
                      const std::vector<GroupsByLevel>& groups) const;
  std::vector<double> published_order() const;
  std::vector<double> order_elsewhere(Figures& out) const;
  void compare_order(Figures& out, const std::vector<LevelValues>& values, const std::vector<double>& theirs) const;
  std::optional<double> over_levels(const std::vector<double>& x, const std::vector<double>& y, size_t levels) const;
  std::vector<GroupsByLevel> networks_of(const Members& members) const;
  std::optional<std::vector<size_t>> matching(const std::vector<std::vector<size_t>>& models) const;
  double level_value(size_t group, const Unit& unit, const Level& level) const;

  // missing_runs.cpp
  void name_lacking(Figures& out, const std::vector<GroupsByLevel>& groups,
                    const std::vector<LevelValues>& values) const;
  void name_missing_arms(Figures& out) const;
  std::vector<std::string> lacked(size_t group, const std::map<Unit, double>& has, const std::set<Unit>& all) const;
  std::string second_level() const;
  std::string places_text(const std::vector<size_t>& groups) const;
  std::string place_text(size_t group) const;
  std::string level_text(size_t group) const;
  std::string arm_name(size_t group) const;
  std::string group_text(size_t group) const;

  const Rows& rows_;
  const Claims& claims_;
  Scale scale_;  // without keys that the comparison or its claim names
  std::string protocol_;
  const Comparison& c_;
  std::map<int, ConfigMap> keys_;  // by task
  ConfigMap named_;                // keys of the comparison and of its claim
  ConfigMap kind_defaults_;        // of the keys of the kind
  ConfigMap kind_keys_;            // that runs of the kind must have
  std::set<std::string> own_keys_;
  Arm arms_;
  double match_ = 0;
  bool levels_ = false, by_size_ = false, unmatched_ = false;
  std::map<size_t, size_t> candidates_;  // with which groups are compared, if not with the chosen one
  std::map<ConfigMap, Members> strata_;
  std::vector<LostRun> lost_;
  std::vector<size_t> unfinished_;  // runs by arm
};

}  // namespace sb
