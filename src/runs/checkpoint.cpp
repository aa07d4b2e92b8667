#include "runs/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/number.h"
#include "runs/seal.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view prefix = "checkpoint-";
constexpr std::string_view suffix = ".safetensors";
constexpr size_t kept = 2;

Dtype dtype_of(const NamedBytes& tensor) {
  for (int i = 0; i <= static_cast<int>(Dtype::f64); ++i)
    if (dtype_name(static_cast<Dtype>(i)) == tensor.dtype) return static_cast<Dtype>(i);
  throw bad_input("safetensors", fmt::format("'{}' has unknown dtype '{}'", tensor.name, tensor.dtype));
}

Checkpoint load_checkpoint(const StoredCheckpoint& stored, const std::string& run_id) {
  Checkpoint checkpoint{stored.update, load_sealed_safetensors(stored.path)};
  const auto& metadata = checkpoint.file.metadata();
  const auto field = [&](const char* key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  };
  if (field("run_id") != run_id)
    throw bad_input("checkpoint", fmt::format("{}: expected run {}, got '{}'", stored.path, run_id, field("run_id")));
  if (field("update") != std::to_string(stored.update))
    throw bad_input("checkpoint",
                    fmt::format("{}: expected update {}, got '{}'", stored.path, stored.update, field("update")));
  return checkpoint;
}

}  // namespace

std::string sealed_safetensors(const std::vector<NamedBytes>& tensors, std::map<std::string, std::string> metadata) {
  if (!metadata.emplace("sha256", blank_seal()).second)
    throw bad_input("safetensors", "the metadata key sha256 belongs to the seal");
  std::vector<StoredTensor> stored;
  for (const auto& tensor : tensors) {
    StoredTensor& out = stored.emplace_back(StoredTensor{tensor.name, dtype_of(tensor), tensor.shape, {}});
    size_t size = dtype_bytes(out.dtype);
    for (const int64_t extent : tensor.shape) size *= static_cast<size_t>(extent);
    out.bytes = {static_cast<const std::byte*>(tensor.data), size};
  }
  std::string content = write_safetensors(stored, metadata);
  seal(content);
  return content;
}

Safetensors load_sealed_safetensors(const std::string& path) {
  std::string content = read_file(path, std::numeric_limits<size_t>::max());
  const bool whole = is_sealed(content);
  Safetensors file = Safetensors::parse(std::move(content), path);
  if (!whole) throw bad_input("safetensors", path + ": its bytes do not fit its sha256");
  return file;
}

std::string checkpoint_name(int64_t update) {
  return fmt::format("{}{:08}{}", prefix, update, suffix);
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
  write_file_atomically((fs::path(folder) / checkpoint_name(update)).string(),
                        sealed_safetensors(tensors, std::move(metadata)), files);
  prune_checkpoints(folder, update, kept, files);
}

std::optional<Checkpoint> load_newest_checkpoint(const std::string& folder, const std::string& run_id,
                                                 std::vector<std::string>& warnings) {
  for (const auto& stored : list_checkpoints(folder)) {
    try {
      return load_checkpoint(stored, run_id);
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
