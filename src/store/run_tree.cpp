#include "store/run_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/tar_reader.h"
#include "base/text.h"
#include "store/gzip.h"
#include "store/json_fields.h"
#include "store/seal.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr int64_t packing_schema = 1;
constexpr size_t kMaxListBytes = size_t{1} << 26;

Error refused(const std::string& file, const std::string& what) {
  return bad_input("archive", printable(file, 400) + ": " + what);
}

void check_list(const ArchivedFiles& files, const std::string& list, const std::string& file) {
  if (!is_sealed(list)) throw refused(file, std::string(packing_list_name) + ": SHA-256 mismatch");
  const nlohmann::json parsed = parse_bounded(list, kMaxListBytes, "archive", file);
  FieldReader reader(parsed, "archive", file);
  int64_t schema = 0;
  reader.whole("schema", schema, 0, int64_t{1} << 30);
  if (schema != packing_schema)
    throw refused(file, "schema " + std::to_string(schema) + ", this program reads " + std::to_string(packing_schema));
  std::map<std::string, std::string> digests;
  reader.texts("files", digests, most_archived);
  for (const auto& [name, digest] : digests) {
    const auto found = files.find(name);
    if (found == files.end()) throw refused(file, "lacks '" + printable(name) + "'");
    if (sha256_hex(found->second) != digest) throw refused(file, "'" + printable(name) + "': SHA-256 mismatch");
  }
  for (const auto& [name, content] : files)
    if (!digests.contains(name))
      throw refused(file, "holds '" + printable(name) + "', which " + packing_list_name + " does not name");
}

// Unpacks a compressed archive twice: the first pass rejects damaged or too long archives before anything is kept.
std::vector<TarFile> files_of(std::string_view bytes, const std::string& file) {
  if (!is_gzip(bytes)) return parse_tar(bytes, file, most_archived);
  TarReader reader(file, gunzip(bytes, file, kMaxArchiveBytes, [](std::string_view) {}), most_archived);
  gunzip(bytes, file, kMaxArchiveBytes, [&](std::string_view piece) { reader.take(piece); });
  return reader.finish();
}

}  // namespace

std::string packing_list(const std::vector<TarFile>& files) {
  std::map<std::string, std::string> digests;
  for (const auto& file : files) digests[file.name] = sha256_hex(file.content);
  return sealed_json(json_document({{"schema", packing_schema}, {"files", digests}}, 2));
}

ArchivedFiles parse_archive(std::string_view bytes, const std::string& file) {
  ArchivedFiles files;
  for (auto& each : files_of(bytes, file)) files.emplace(std::move(each.name), std::move(each.content));
  const auto list = files.extract(packing_list_name);
  if (list.empty())
    throw refused(file, std::string("no ") + packing_list_name + ", expected an archive of `selectivbench pack`");
  check_list(files, list.mapped(), file);
  return files;
}

const RunTree& RunTree::disk() {
  static const RunTree tree;
  return tree;
}

bool RunTree::is_archive_name(std::string_view path) {
  return path.ends_with(".tar") || path.ends_with(".tar.gz") || path.ends_with(".tgz");
}

bool RunTree::is_archive(const std::string& file) {
  if (is_archive_name(file)) return true;
  constexpr size_t magic = 257;  // where tar's "ustar" stands
  std::ifstream in(file, std::ios::binary);
  std::string head(magic + 5, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(in.gcount()));
  return is_gzip(head) || (head.size() > magic && head.substr(magic) == "ustar");
}

void RunTree::open(const std::string& archive) {
  if (archives_.contains(archive)) return;
  Archive opened;
  opened.files = parse_archive(read_file(archive, kMaxArchiveBytes), archive);
  for (const auto& [name, content] : opened.files)
    for (fs::path folder = fs::path(name).parent_path();; folder = folder.parent_path()) {
      opened.folders.insert(folder.string());
      if (folder.empty()) break;
    }
  opened.folders.insert("");
  archives_.emplace(archive, std::move(opened));
}

RunTree::Found RunTree::find(const std::string& path) const {
  for (const auto& [place, archive] : archives_) {
    if (path == place) return {&archive, ""};
    if (path.starts_with(place + "/"))
      return {&archive, fs::path(path.substr(place.size() + 1)).lexically_normal().string()};
  }
  return {};
}

bool RunTree::exists(const std::string& path) const {
  if (const auto [archive, name] = find(path); archive)
    return archive->files.contains(name) || archive->folders.contains(name);
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

bool RunTree::is_folder(const std::string& path) const {
  if (const auto [archive, name] = find(path); archive) return archive->folders.contains(name);
  return sb::is_folder(path);
}

bool RunTree::is_link(const std::string& path) const {
  if (find(path).archive) return false;
  std::error_code ignored;
  return fs::is_symlink(path, ignored);
}

std::string RunTree::read(const std::string& path, size_t limit) const {
  const auto [archive, name] = find(path);
  if (!archive) return read_file(path, limit);
  const auto found = archive->files.find(name);
  if (found == archive->files.end()) throw refused(path, "no such file in the archive");
  if (found->second.size() > limit) throw refused(path, "longer than " + std::to_string(limit) + " bytes");
  return found->second;
}

std::vector<std::string> RunTree::names(const std::string& folder, std::error_code& failed) const {
  std::vector<std::string> out;
  if (const auto [archive, name] = find(folder); archive) {
    const std::string inside = name.empty() ? "" : name + "/";
    std::set<std::string> found;
    for (auto at = archive->files.lower_bound(inside); at != archive->files.end() && at->first.starts_with(inside);
         ++at)
      found.insert(at->first.substr(inside.size(), at->first.find('/', inside.size()) - inside.size()));
    return {found.begin(), found.end()};
  }
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    out.push_back(at->path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace sb
