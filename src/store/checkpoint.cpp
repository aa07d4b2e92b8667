#include "store/checkpoint.h"

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/number.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/seal.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view prefix = "checkpoint-";
constexpr std::string_view suffix = ".safetensors";
constexpr size_t kept_checkpoints = 2;

Dtype dtype_of(const NamedBytes& tensor) {
  for (int i = 0; i <= static_cast<int>(Dtype::f64); ++i)
    if (dtype_name(static_cast<Dtype>(i)) == tensor.dtype) return static_cast<Dtype>(i);
  throw bad_input("safetensors", formatted("'{}' has unknown dtype '{}'", tensor.name, tensor.dtype));
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return formatted("[{}]", joined(shape, ","));
}

void check_tensors(const Safetensors& file, const std::vector<NamedBytes>& expected) {
  for (const auto& tensor : expected) {
    const auto* found = file.find(tensor.name);
    const std::string want = tensor.dtype + " " + shape_text(tensor.shape);
    const std::string got =
        found ? formatted("{} {}", dtype_name(found->dtype), shape_text(found->shape)) : "no such tensor";
    if (got != want)
      throw bad_input("checkpoint", formatted("{}: '{}': expected {}, got {}", file.name(), tensor.name, want, got));
  }
}

size_t bytes_of(const NamedBytes& tensor) {
  size_t size = dtype_bytes(dtype_of(tensor));
  for (const int64_t extent : tensor.shape) size *= static_cast<size_t>(extent);
  return size;
}

// Size limit: the expected tensors, plus room for header, metrics and tensors of other versions.
size_t kMaxCheckpointBytes(const std::vector<NamedBytes>& expected) {
  size_t size = size_t{1} << 30;
  for (const auto& tensor : expected) size += bytes_of(tensor);
  return size;
}

Safetensors parse_sealed(std::string content, const std::string& path) {
  const bool whole = is_sealed(content);
  Safetensors file = Safetensors::parse(std::move(content), path);
  if (!whole) throw bad_input("safetensors", path + ": SHA-256 mismatch");
  return file;
}

// The sealed header, and views of the tensors.
struct Pieces {
  std::string header;
  std::vector<std::string_view> data;
};

Pieces sealed_pieces(const std::vector<NamedBytes>& tensors, std::map<std::string, std::string> metadata) {
  if (!metadata.emplace("sha256", blank_seal()).second)
    throw bad_input("safetensors", "the metadata key sha256 belongs to the seal");
  std::vector<StoredTensor> stored;
  Pieces pieces;
  for (const auto& tensor : tensors) {
    const std::span bytes{static_cast<const std::byte*>(tensor.data), bytes_of(tensor)};
    stored.push_back({tensor.name, dtype_of(tensor), tensor.shape, bytes});
    pieces.data.emplace_back(static_cast<const char*>(tensor.data), bytes.size());
  }
  pieces.header = safetensors_header(stored, metadata);
  std::vector<std::string_view> all = {pieces.header};
  all.insert(all.end(), pieces.data.begin(), pieces.data.end());
  const size_t at = find_seal(pieces.header);
  pieces.header.replace(at, blank_seal().size(), seal_digits(all, at));
  return pieces;
}

void write_pieces(const std::string& path, const Pieces& pieces, FileSystem& files) {
  AtomicFile file(path, files);
  file.write(pieces.header);
  for (const auto piece : pieces.data) file.write(piece);
  file.commit();
}

}  // namespace

std::string write_sealed_safetensors(const std::string& path, const std::vector<NamedBytes>& tensors,
                                     std::map<std::string, std::string> metadata, FileSystem& files) {
  const Pieces pieces = sealed_pieces(tensors, std::move(metadata));
  Sha256 hash;
  hash.update(pieces.header);
  for (const auto piece : pieces.data) hash.update(piece);
  write_pieces(path, pieces, files);
  return hash.hex();
}

Safetensors load_sealed_safetensors(const std::string& path, size_t limit) {
  return parse_sealed(read_file(path, limit), path);
}

Checkpoint parse_checkpoint(std::string content, const StoredCheckpoint& stored, const std::string& run_id,
                            const CheckpointRules& rules) {
  Checkpoint checkpoint{stored.update, parse_sealed(std::move(content), stored.path)};
  const auto& metadata = checkpoint.file.metadata();
  const auto expect = [&](const char* key, const std::string& value) {
    const auto found = metadata.find(key);
    const std::string got = found == metadata.end() ? "nothing" : "'" + printable(found->second) + "'";
    if (found == metadata.end() || found->second != value)
      throw bad_input("checkpoint", formatted("{}: expected {} {}, got {}", stored.path, key, value, got));
  };
  expect("run_id", run_id);
  expect("update", std::to_string(stored.update));
  check_tensors(checkpoint.file, rules.tensors);
  if (const std::string fault = rules.fault ? rules.fault(checkpoint) : ""; !fault.empty())
    throw bad_input("checkpoint", stored.path + ": " + fault);
  return checkpoint;
}

std::string checkpoint_name(int64_t update) {
  return formatted("{}{:08}{}", prefix, update, suffix);
}

std::vector<StoredCheckpoint> list_checkpoints(const std::string& folder) {
  std::vector<StoredCheckpoint> found;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() < prefix.size() + suffix.size()) continue;
    const auto update = parse_integer(name.substr(prefix.size(), name.size() - prefix.size() - suffix.size()));
    if (update && checkpoint_name(*update) == name) found.push_back({*update, entry.path().string()});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.update > b.update; });
  return found;
}

void save_checkpoint(const std::string& folder, int64_t update, const std::vector<NamedBytes>& tensors,
                     std::map<std::string, std::string> metadata, FileSystem& files) {
  metadata["update"] = std::to_string(update);
  const std::string path = (fs::path(folder) / checkpoint_name(update)).string();
  write_pieces(path, sealed_pieces(tensors, std::move(metadata)), files);  // the file's digest is not needed
  prune_checkpoints(folder, update, kept_checkpoints, files);
}

std::optional<Checkpoint> load_newest_checkpoint(const std::string& folder, const std::string& run_id,
                                                 std::vector<std::string>& warnings, const CheckpointRules& rules,
                                                 const std::vector<int64_t>& spoken_of) {
  std::vector<StoredCheckpoint> found = list_checkpoints(folder);
  for (const int64_t update : spoken_of) {
    const std::string path = (fs::path(folder) / checkpoint_name(update)).string();
    const bool listed =
        std::any_of(found.begin(), found.end(), [&](const auto& each) { return each.update == update; });
    if (!listed && is_file(path)) found.push_back({update, path});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.update > b.update; });
  for (const auto& stored : found) {
    try {
      return parse_checkpoint(read_file(stored.path, kMaxCheckpointBytes(rules.tensors)), stored, run_id, rules);
    } catch (const Error& error) {
      warnings.push_back(std::string(error.what()) + "; passed over");
    }
  }
  return std::nullopt;
}

void prune_checkpoints(const std::string& folder, int64_t newest, size_t keep, FileSystem& files) {
  size_t seen = 0;
  for (const auto& stored : list_checkpoints(folder))
    if (stored.update > newest || seen++ >= keep) files.remove(stored.path);
}

}  // namespace sb
