// Tokens of a file, divided into parts for train, valid and test.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "grammar/language.h"
#include "tasks/task_registry.h"

namespace sb {

struct FileTokens {
  std::vector<uint16_t> ids;
  int classes = 0;  // the largest token + 1
};

class Corpus {
 public:
  static constexpr size_t kParts = 20;       // of equal size: 18 for train, one for valid, one for test
  static constexpr int kMaxClasses = 32767;  // symbols have 16 bits

  // `format`: bytes, npy (one dimension of integers), uint16 or uint32 (little-endian, without a header). Throws
  // bad_input "[task.file] …" if the file does not have this format. The file keeps the decoded tokens for the next
  // corpus.
  Corpus(std::shared_ptr<const TaskFile> file, const std::string& format);

  const TaskFile& file() const { return *file_; }
  size_t size() const { return tokens_ ? tokens_->ids.size() : file_->bytes.size(); }
  int classes() const { return tokens_ ? tokens_->classes : 256; }
  int token(size_t at) const { return tokens_ ? tokens_->ids[at] : static_cast<uint8_t>(file_->bytes[at]); }

  struct Part {
    size_t begin = 0, size = 0;
  };
  Part part(Split split) const;

 private:
  std::shared_ptr<const TaskFile> file_;
  std::shared_ptr<const FileTokens> tokens_;  // null: tokens are the bytes of the file
};

}  // namespace sb
