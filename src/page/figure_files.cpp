#include "page/figure_files.h"

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/json_fields.h"
#include "store/seal.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr int64_t list_schema = 1;
constexpr size_t kMaxListBytes = size_t{1} << 24, kMaxFiles = 100000, kMaxFigureBytes = size_t{1} << 28;

bool is_figure_name(const std::string& name) {
  for (const std::string_view ending : {".vl.json", ".csv"}) {
    if (!name.ends_with(ending) || name.size() == ending.size()) continue;
    return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
           name.size() - ending.size();
  }
  return false;
}

// Whether the file is a regular file with exactly the bytes that were written.
bool is_as_written(const std::string& path, const std::string& digest) {
  std::error_code failed;
  if (fs::symlink_status(path, failed).type() != fs::file_type::regular) return false;
  try {
    return sha256_hex(read_file(path, kMaxFigureBytes)) == digest;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string figure_list(const std::map<std::string, std::string>& digests) {
  return sealed_json(json_document({{"schema", list_schema}, {"files", digests}}, 2));
}

std::map<std::string, std::string> parse_figure_list(std::string_view text, const std::string& file) {
  const auto refused = [&](const std::string& what) {
    return bad_input("figures", printable(file, 400) + ": " + what);
  };
  if (!is_sealed(std::string(text))) throw refused("SHA-256 mismatch");
  const nlohmann::json parsed = parse_bounded(text, kMaxListBytes, "figures", file);
  FieldReader reader(parsed, "figures", file);
  int64_t schema = 0;
  reader.whole("schema", schema, 0, int64_t{1} << 30);
  if (schema != list_schema) throw refused(formatted("schema {}, this program reads {}", schema, list_schema));
  std::map<std::string, std::string> digests;
  reader.texts("files", digests, kMaxFiles);
  for (const auto& [name, digest] : digests)
    if (!is_figure_name(name)) throw refused("names '" + printable(name) + "', which is no figure");
  return digests;
}

std::vector<std::string> write_figures(const std::string& folder, const std::vector<Figure>& figures,
                                       FileSystem& files) {
  const auto path = [&](const std::string& name) { return (fs::path(folder) / name).string(); };
  const std::string list = path(figure_list_name);
  std::vector<std::string> lines;
  std::map<std::string, std::string> before, now;
  bool ours = true;  // whether the existing list, if any, is ours
  std::error_code failed;
  if (fs::symlink_status(list, failed).type() != fs::file_type::not_found) {
    try {
      before = parse_figure_list(read_file(list, kMaxListBytes), list);
    } catch (const Error& error) {
      ours = false;
      lines.push_back("no figure of an earlier report is removed: " + one_line(error.what()));
    }
  }
  const auto write = [&](const std::string& name, const std::string& content) {
    write_file_atomically(path(name), content, files);
    now[name] = sha256_hex(content);
  };
  for (const auto& figure : figures) {
    write(figure.id + ".vl.json", json_document(standalone_spec(figure), 3));
    write(figure.id + ".csv", figure_csv(figure));
  }
  size_t removed = 0;
  for (const auto& [name, digest] : before) {
    if (now.contains(name) || fs::symlink_status(path(name), failed).type() == fs::file_type::not_found) continue;
    if (!is_as_written(path(name), digest)) {
      lines.push_back("changed since an earlier report wrote it, so left: " + one_line(path(name)));
    } else if (files.remove(path(name)) != 0) {
      throw cannot_write("report --figures",
                         "cannot remove " + printable(path(name), 400) + ": " + std::strerror(errno));
    } else {
      ++removed;
    }
  }
  if (removed > 0)
    lines.push_back(formatted("removed {} file{} of an earlier report", removed, removed == 1 ? "" : "s"));
  if (ours) write_file_atomically(list, figure_list(now), files);
  return lines;
}

}  // namespace sb
