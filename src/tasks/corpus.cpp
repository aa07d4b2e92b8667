#include "tasks/corpus.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/format.h"
#include "base/npy.h"
#include "base/text.h"

namespace sb {
namespace {

struct RawTokens {
  int width = 0;          // bytes of a token
  bool negative = false;  // the type has negative numbers
  std::string_view bytes;
};

Error refused(const TaskFile& file, const std::string& what) {
  return bad_input("task.file", printable(file.path, 400) + ": " + what);
}

RawTokens raw_tokens(const TaskFile& file, const std::string& format) {
  if (format != "npy") return {format == "uint16" ? 2 : 4, false, file.bytes};
  NpyArray array;
  try {
    array = parse_npy(file.bytes, file.path);
  } catch (const Error& error) {
    const std::string line = error.what();
    throw bad_input("task.file", line.substr(line.find("] ") + 2));
  }
  if (array.shape.size() != 1 || (array.kind != 'u' && array.kind != 'i'))
    throw refused(file, formatted("expected one dimension of integers, got {} of kind {}", array.shape.size(),
                                  printable(std::string(1, array.kind))));
  return {array.width, array.kind == 'i', array.values};
}

std::vector<uint16_t> decoded(const TaskFile& file, const RawTokens& raw) {
  const auto width = static_cast<size_t>(raw.width);
  if (raw.bytes.size() % width != 0)
    throw refused(file, formatted("bytes, expected a multiple of {}, got {}", width, raw.bytes.size()));
  std::vector<uint16_t> ids(raw.bytes.size() / width);
  for (size_t i = 0; i < ids.size(); ++i) {
    uint64_t id = 0;
    for (size_t k = width; k-- > 0;) id = id << 8 | static_cast<uint8_t>(raw.bytes[i * width + k]);
    const bool below = raw.negative && id >> (8 * width - 1) != 0;
    if (below || id >= Corpus::kMaxClasses)
      throw refused(file, formatted("token {}, expected 0..{}, got {}", i, Corpus::kMaxClasses - 1,
                                    below ? "a negative number" : std::to_string(id)));
    ids[i] = static_cast<uint16_t>(id);
  }
  return ids;
}

// Decodes a file once per format, and caches the tokens, since estimates make many tasks of one file.
std::shared_ptr<const FileTokens> tokens_of(const TaskFile& file, const std::string& format) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const FileTokens>& known = file.tokens[format];
  if (known) return known;
  std::vector<uint16_t> ids = decoded(file, raw_tokens(file, format));
  if (ids.empty()) throw refused(file, "it has no tokens");
  const int classes = 1 + *std::max_element(ids.begin(), ids.end());
  return known = std::make_shared<const FileTokens>(FileTokens{std::move(ids), classes});
}

}  // namespace

Corpus::Corpus(std::shared_ptr<const TaskFile> file, const std::string& format) : file_(std::move(file)) {
  if (format != "bytes") {
    tokens_ = tokens_of(*file_, format);
  } else if (file_->bytes.starts_with(kNpyMagic)) {
    throw refused(*file_, "a NumPy array; set tokens = npy");
  }
}

Corpus::Part Corpus::part(Split split) const {
  const size_t valid = size() * (kParts - 2) / kParts, test = size() * (kParts - 1) / kParts;
  if (split == Split::train) return {0, valid};
  return split == Split::valid ? Part{valid, test - valid} : Part{test, size() - test};
}

}  // namespace sb
