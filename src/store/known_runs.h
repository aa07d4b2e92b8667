// Intact finished runs of folders and archives, by id.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "store/run_tree.h"

namespace sb {

struct KnownRuns {
  RunTree tree;
  std::map<std::string, std::string> folders;  // by run id, runs with a valid result; readable through `tree`
  std::vector<std::string> notes;              // files that could not be read, one line each

  const std::string* find(const std::string& run_id) const;  // null if absent
};

// Throws bad_input "[where] …" if a root is neither a folder nor an archive.
KnownRuns known_runs(const std::vector<std::string>& roots, const std::string& where);

}  // namespace sb
