// Finds the run folders below a folder, also in archives.
#pragma once
#include <string>
#include <vector>

#include "store/run_tree.h"

namespace sb {

// The content of `root`, each list sorted by path. Run folders are not entered, except the root. Links to folders are
// followed only if they lead to a run.
struct DamagedArchive {
  std::string path, problem;  // problem: one line, with the file's name
};
struct FoundFolders {
  std::vector<std::string> runs;     // folders with a config.json or result.json, possibly `root` itself
  std::vector<std::string> folders;  // folders that were searched, `root` first
  std::vector<std::string> notes;    // what was not searched, one line each
  std::vector<DamagedArchive> damaged;
};
FoundFolders find_runs(const std::string& root);
// Throws bad_input "[where] expected a folder of runs or an archive, …" if `root` is neither a folder nor an archive by
// its name or first bytes.
void expect_folder_or_archive(const std::string& root, const std::string& where);
// Like above with archives: `root` may be an archive, and archives in folders are searched. Throws bad_input if `root`
// is an archive that cannot be read.
FoundFolders find_runs(const std::string& root, RunTree& tree);

}  // namespace sb
