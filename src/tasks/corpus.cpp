#include "tasks/corpus.h"

#include <algorithm>
#include <map>
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

}  // namespace

Corpus::Corpus(std::shared_ptr<const TaskFile> file, const std::string& format) : file_(std::move(file)) {
  size_ = file_->bytes.size();
  if (format == "bytes") {
    if (file_->bytes.starts_with(kNpyMagic)) throw refused(*file_, "a NumPy array; set tokens = npy");
    return;
  }
  ids_ = decoded(*file_, raw_tokens(*file_, format));
  size_ = ids_.size();
  if (size_ == 0) throw refused(*file_, "it has no tokens");
  classes_ = 1 + *std::max_element(ids_.begin(), ids_.end());
}

Corpus::Part Corpus::part(Split split) const {
  const size_t valid = size_ * (kParts - 2) / kParts, test = size_ * (kParts - 1) / kParts;
  if (split == Split::train) return {0, valid};
  return split == Split::valid ? Part{valid, test - valid} : Part{test, size_ - test};
}

std::shared_ptr<const Corpus> Corpus::of(const std::shared_ptr<const TaskFile>& file, const std::string& format) {
  static std::mutex mutex;
  static std::map<std::pair<const TaskFile*, std::string>, std::weak_ptr<const Corpus>>
      known;  // a corpus holds its file
  const std::lock_guard lock(mutex);
  std::erase_if(known, [](const auto& one) { return one.second.expired(); });
  auto& place = known[{file.get(), format}];
  std::shared_ptr<const Corpus> out = place.lock();
  if (!out) place = out = std::make_shared<const Corpus>(file, format);
  return out;
}

}  // namespace sb
