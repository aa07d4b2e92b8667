// Checkpoints of a run: sealed safetensors files. The last two are kept, and the newest intact one is loaded.
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

// Non-owning view of a tensor, row-major and contiguous.
struct NamedBytes {
  std::string name;
  std::string dtype;  // as in safetensors: F32, F64, BF16, I64, U8, …
  std::vector<int64_t> shape;
  const void* data = nullptr;
};

// Writes a sealed safetensors file without copying the tensors; returns its SHA-256. Metadata must not hold "sha256".
std::string write_sealed_safetensors(const std::string& path, const std::vector<NamedBytes>& tensors,
                                     std::map<std::string, std::string> metadata,
                                     FileSystem& files = real_file_system());
// Throws bad_input that names the file if it cannot be read, is longer than `limit`, is not safetensors, or has a wrong
// seal.
Safetensors load_sealed_safetensors(const std::string& path, size_t limit = size_t{1} << 34);

struct Checkpoint {
  int64_t update = 0;
  Safetensors file;
};

// Requirements on a checkpoint besides an intact seal, which is a digest, not a signature.
struct CheckpointRules {
  std::vector<NamedBytes> tensors;                      // expected names, types and shapes; the data is ignored
  std::function<std::string(const Checkpoint&)> fault;  // any other problem; "" if there is none
};

struct StoredCheckpoint {
  int64_t update = 0;
  std::string path;
};

// checkpoint-00000078.safetensors
std::string checkpoint_name(int64_t update);
std::vector<StoredCheckpoint> list_checkpoints(const std::string& folder);  // newest first

// Parses a checkpoint from the bytes of `stored.path`. Throws bad_input that names the file if the checkpoint is
// damaged, of another run, or violates `rules`.
Checkpoint parse_checkpoint(std::string content, const StoredCheckpoint& stored, const std::string& run_id,
                            const CheckpointRules& rules);
// Adds "update" to the metadata, writes the file, then keeps only the last two checkpoints.
void save_checkpoint(const std::string& folder, int64_t update, const std::vector<NamedBytes>& tensors,
                     std::map<std::string, std::string> metadata, FileSystem& files = real_file_system());
// Loads the newest checkpoint that is intact, of this run and within `rules`; nullopt if there is none. Each skipped
// checkpoint adds a line to `warnings`. `spoken_of`: updates whose checkpoints are also opened by name, since a folder
// listing may lag behind files written by another machine.
std::optional<Checkpoint> load_newest_checkpoint(const std::string& folder, const std::string& run_id,
                                                 std::vector<std::string>& warnings, const CheckpointRules& rules = {},
                                                 const std::vector<int64_t>& spoken_of = {});
// Keeps the newest `keep` checkpoints up to update `newest` and removes all others. Later checkpoints are removed
// because they were skipped as damaged.
void prune_checkpoints(const std::string& folder, int64_t newest, size_t keep, FileSystem& files = real_file_system());

}  // namespace sb
