// Where files of runs are read from: folders of the disk and, once opened, archives that `pack` made, which read like
// folders of their name ("results/small.tar.gz/0123456789abcdef/result.json").
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/tar.h"

namespace sb {

constexpr size_t largest_archive = size_t{1} << 30;  // bytes, before and after compression
constexpr size_t most_archived = 200000;             // files

// packed.json of an archive: sealed, the digest of every other file.
constexpr const char* packing_list_name = "packed.json";
std::string packing_list(const std::vector<TarFile>& files);

// An archive's files by name. Bounded; every file fits its digest in packed.json, and none is missing or unnamed there.
// Throws bad_input with one line that names the archive.
using ArchivedFiles = std::map<std::string, std::string>;
ArchivedFiles parse_archive(std::string_view bytes, const std::string& file);

class RunTree {
 public:
  static const RunTree& disk();  // without archives

  static bool is_archive_name(std::string_view path);  // ends as archives do: .tar, .tar.gz, .tgz
  static bool is_archive(const std::string& file);     // by its name or its first bytes, damaged or not
  void open(const std::string& archive);               // from now on it reads like a folder; throws as parse_archive

  bool is_there(const std::string& path) const;  // a link too, whatever it leads to
  bool is_folder(const std::string& path) const;
  bool is_link(const std::string& path) const;
  std::string read(const std::string& path, size_t limit) const;  // as read_file
  // Names in a folder, sorted; what went wrong in `failed`.
  std::vector<std::string> names(const std::string& folder, std::error_code& failed) const;

 private:
  struct Archive {
    ArchivedFiles files;
    std::set<std::string> folders;  // "" is the archive itself
  };
  struct Found {
    const Archive* archive = nullptr;
    std::string name;
  };
  Found find(const std::string& path) const;

  std::map<std::string, Archive> archives_;  // by path
};

}  // namespace sb
