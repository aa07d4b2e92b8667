// Checkpoints of a run: sealed safetensors files, the last two kept, the newest whole one loaded.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/safetensors.h"

namespace sb {

// A tensor of somebody else's memory, row-major and contiguous.
struct NamedBytes {
  std::string name;
  std::string dtype;  // as in safetensors: F32, F64, BF16, I64, U8, …
  std::vector<int64_t> shape;
  const void* data = nullptr;
};

// The bytes of a sealed safetensors file. Metadata must not hold "sha256".
std::string sealed_safetensors(const std::vector<NamedBytes>& tensors, std::map<std::string, std::string> metadata);
// The same bytes written from where the tensors lie; the file's SHA-256.
std::string write_sealed_safetensors(const std::string& path, const std::vector<NamedBytes>& tensors,
                                     std::map<std::string, std::string> metadata,
                                     FileSystem& files = real_file_system());
// Throws bad_input that names the file if it cannot be read, is longer than `limit`, is not safetensors, or its seal
// does not fit.
Safetensors load_sealed_safetensors(const std::string& path, size_t limit = size_t{1} << 34);

struct Checkpoint {
  int64_t update = 0;
  Safetensors file;
};

// What a checkpoint must be beside whole: a seal is a digest, not a signature.
struct CheckpointRules {
  std::vector<NamedBytes> tensors;                      // these, of this type and shape; their data is not looked at
  std::function<std::string(const Checkpoint&)> fault;  // what else is wrong with it, "" for nothing
};

struct StoredCheckpoint {
  int64_t update = 0;
  std::string path;
};

// checkpoint-00000078.safetensors
std::string checkpoint_name(int64_t update);
std::vector<StoredCheckpoint> list_checkpoints(const std::string& folder);  // newest first

// A checkpoint from the bytes of `stored.path`. Throws bad_input that names the file for one that is not whole, not of
// this run, or not as `rules` ask.
Checkpoint parse_checkpoint(std::string content, const StoredCheckpoint& stored, const std::string& run_id,
                            const CheckpointRules& rules);
// Adds "update" to the metadata, writes, then prunes to the last two.
void save_checkpoint(const std::string& folder, int64_t update, const std::vector<NamedBytes>& tensors,
                     std::map<std::string, std::string> metadata, FileSystem& files = real_file_system());
// The newest that is whole, of this run and as `rules` ask; each one passed over has its line in `warnings`. Nothing
// where none is left. `spoken_of`: updates whose checkpoint is opened by name too, since a folder's list may lag behind
// what another machine wrote.
std::optional<Checkpoint> load_newest_checkpoint(const std::string& folder, const std::string& run_id,
                                                 std::vector<std::string>& warnings, const CheckpointRules& rules = {},
                                                 const std::vector<int64_t>& spoken_of = {});
// Removes all but the newest `keep` of those up to update `newest`, and any later one: it was passed over as damaged.
void prune_checkpoints(const std::string& folder, int64_t newest, size_t keep, FileSystem& files = real_file_system());

}  // namespace sb
