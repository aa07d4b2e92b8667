#include "cli/shipped.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/suggest.h"
#include "base/text.h"
#include "store/run_tree.h"
#include "tasks/task_registry.h"

namespace sb::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNames = 1000;  // limit, in case the folder contains many other files

// "configs/quick.toml", the path in a checkout, and "quick" name the same config.
std::string plain_name(std::string asked) {
  if (asked.starts_with("configs/")) asked.erase(0, 8);
  if (asked.ends_with(".toml")) asked.resize(asked.size() - 5);
  return asked;
}

// ", did you mean quick?": every config with this last name ("task3": paper/task3, …), else the nearest.
std::string hint(const std::string& name, const std::vector<std::string>& names) {
  const auto last = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  std::vector<std::string> lasts, found;
  for (const auto& each : names) lasts.push_back(last(each));
  const bool known = std::find(lasts.begin(), lasts.end(), last(name)) != lasts.end();
  const std::string near = known ? last(name) : nearest(last(name), lasts);
  for (const auto& each : names)
    if (!near.empty() && last(each) == near) found.push_back(each);
  if (std::find(found.begin(), found.end(), near) != found.end()) found = {near};  // "quick", not scales/quick
  if (!found.empty()) return ", did you mean " + join_or(found) + "?";
  found = nearest_first(name, names);
  found.resize(std::min<size_t>(found.size(), 3));
  return ", the nearest are " + join_or(found);
}

}  // namespace

std::string shipped_folder(const std::string& executable) {
  const fs::path folder = fs::path(executable).parent_path();
  if (folder.empty()) return {};
  const fs::path installed = (folder / "../share/selectivbench/configs").lexically_normal();
  if (is_folder(installed)) return installed.string();
  const fs::path packaged = (folder / "../configs").lexically_normal();  // bin/ of the Python package
  if (is_there(packaged / "quick.toml")) return packaged.string();
  for (const char* up : {"..", "../..", "../../.."}) {  // a build folder of a checkout
    const fs::path tree = (folder / up).lexically_normal();
    if (is_there(tree / "CMakeLists.txt") && is_there(tree / "configs/quick.toml")) return (tree / "configs").string();
  }
  return {};
}

std::vector<std::string> shipped_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::recursive_directory_iterator it(folder, failed), end; !failed && it != end && names.size() < kMaxNames;
       it.increment(failed)) {
    if (it->path().extension() == ".toml") names.push_back(plain_name(it->path().lexically_relative(folder).string()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string shipped_config(const std::string& where, const std::string& asked, const std::string& folder) {
  if (asked.empty()) return asked;
  if (is_there(asked) && !is_folder(asked)) {
    if (is_file(asked) && RunTree::is_archive(asked))
      throw bad_input(where, "expected a config, got an archive of runs, '" + printable(asked, 200) + "'");
    return asked;
  }
  const std::vector<std::string> names = folder.empty() ? std::vector<std::string>{} : shipped_names(folder);
  const std::string name = plain_name(asked);
  // Only a name of the list: no "..", no absolute path.
  if (std::binary_search(names.begin(), names.end(), name)) return (fs::path(folder) / (name + ".toml")).string();
  if (is_folder(asked)) throw bad_input(where, "expected a config, got a folder, '" + printable(asked, 200) + "'");
  if (const auto kinds = task_kinds(); std::find(kinds.begin(), kinds.end(), asked) != kinds.end())
    throw bad_input(where, formatted("'{0}' is a kind of task, not a config; a config of two lines is enough: printf "
                                     "'[task]\\nkind = \"{0}\"\\n' > {0}.toml",
                                     asked));
  if (names.empty()) throw bad_input(where, "no such file, got '" + printable(asked, 200) + "'");
  throw bad_input(where, "no file or shipped config is called '" + printable(asked, 200) + "'" + hint(name, names) +
                             "; shipped configs are in " + printable(folder, 400));
}

std::string program_path() {
  std::error_code failed;
  const fs::path own = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return {};
  // Inverse of the paths in launcher.cpp: from the engine to its launcher.
  const fs::path folder = own.parent_path(), above = folder.parent_path();
  fs::path launcher;
  if (folder.filename() == "engine") launcher = above / "selectivbench";
  if (above.filename() == "libexec") launcher = above.parent_path() / "bin" / "selectivbench";
  return (!launcher.empty() && fs::is_regular_file(launcher, failed) ? launcher : own).string();
}

std::string shipped_folder() {
  const std::string program = program_path();
  return program.empty() ? program : shipped_folder(program);
}

std::string shipped_config(const std::string& where, const std::string& asked) {
  return shipped_config(where, asked, shipped_folder());
}

}  // namespace sb::cli
