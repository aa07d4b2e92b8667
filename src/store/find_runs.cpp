#include "store/find_runs.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "store/run_files.h"

namespace sb {
namespace {

constexpr int deepest_folder = 4;  // folders below the root in which runs are looked for

bool is_run(const std::string& folder, const RunTree& tree) {
  return tree.is_folder(folder) &&
         (tree.exists(file_in(folder, "config.json")) || tree.exists(file_in(folder, "result.json")));
}

// Searches folders and archives below a root. `archives` null: archives are not opened.
class Search {
 public:
  Search(const RunTree& tree, RunTree* archives) : tree_(tree), archives_(archives) {}

  FoundFolders look(const std::string& root) {
    if (is_run(root, tree_)) found_.runs.push_back(root);
    look_into(root, 0);
    std::sort(found_.runs.begin(), found_.runs.end());
    return std::move(found_);
  }

 private:
  void note(const std::string& path, const std::string& why) {
    found_.notes.push_back("not searched, " + why + ": " + printable(path, 400));
  }

  void look_into(const std::string& folder, int depth) {
    found_.folders.push_back(folder);
    std::error_code failed;
    const auto names = tree_.names(folder, failed);
    if (failed && tree_.is_folder(folder)) note(folder, failed.message());
    for (const auto& name : names) {
      const std::string inner = file_in(folder, name);
      if (tree_.is_folder(inner)) {
        look_at(inner, depth);
      } else if (archives_ && RunTree::is_archive_name(name)) {
        open(inner, depth);
      }
    }
  }

  void look_at(const std::string& folder, int depth) {
    if (is_run(folder, tree_)) {
      found_.runs.push_back(folder);
    } else if (tree_.is_link(folder)) {
      note(folder, "a link to a folder");
    } else if (depth == deepest_folder) {
      note(folder, "more than " + std::to_string(deepest_folder) + " folders down");
    } else {
      look_into(folder, depth + 1);
    }
  }

  void open(const std::string& archive, int depth) {
    try {
      archives_->open(archive);
      look_at(archive, depth);
    } catch (const Error& error) {
      found_.damaged.push_back({archive, error.what()});
    }
  }

  const RunTree& tree_;
  RunTree* archives_;
  FoundFolders found_;
};

}  // namespace

void expect_folder_or_archive(const std::string& root, const std::string& where) {
  if (is_folder(root)) return;
  if (!is_file(root))
    throw bad_input(where, "expected a folder of runs or an archive, got '" + printable(root, 400) + "'");
  if (!RunTree::is_archive(root))
    throw bad_input(where,
                    "expected a folder of runs or an archive of `selectivbench pack`, got a file that is neither tar "
                    "nor gzip, '" +
                        printable(root, 400) + "'");
}

FoundFolders find_runs(const std::string& root) {
  return Search(RunTree::disk(), nullptr).look(root);
}

FoundFolders find_runs(const std::string& root, RunTree& tree) {
  if (is_file(root)) tree.open(root);
  return Search(tree, &tree).look(root);
}

}  // namespace sb
