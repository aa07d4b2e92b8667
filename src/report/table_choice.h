// What a table is made of.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace sb {

struct ReadRun;

struct TableChoice {
  std::vector<std::string> select = {}, average = {};  // axes besides those recorded in the folders
  std::vector<std::string> where = {};                 // conditions on the runs, as runs_where takes them
  std::string scale = {};                              // only runs of this scale, as scale_name names it

  bool is_of_some_runs() const { return !where.empty() || !scale.empty(); }
};

// Keeps the runs of the choice. Runs without a known config might be among them, and stay. Throws bad_input for a
// scale, key or value that no run has.
void keep_chosen(std::vector<std::shared_ptr<const ReadRun>>& runs, const TableChoice& choice);

}  // namespace sb
