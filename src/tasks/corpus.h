// Tokens of a file, in three parts that no two splits share.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "grammar/language.h"
#include "tasks/task_registry.h"

namespace sb {

class Corpus {
 public:
  static constexpr size_t kParts = 20;       // of equal size: 18 for train, one for valid, one for test
  static constexpr int kMaxClasses = 32767;  // symbols have 16 bits

  // `format`: bytes, npy (one dimension of integers), uint16 or uint32 (little-endian, without a header). Throws
  // bad_input "[task.file] …" if the file does not have this format.
  Corpus(std::shared_ptr<const TaskFile> file, const std::string& format);
  // The same, shared by all tasks that use this file at the same time.
  static std::shared_ptr<const Corpus> of(const std::shared_ptr<const TaskFile>& file, const std::string& format);

  const TaskFile& file() const { return *file_; }
  size_t size() const { return size_; }
  int classes() const { return classes_; }  // 256 for bytes, else the largest token + 1
  int token(size_t at) const { return ids_.empty() ? static_cast<uint8_t>(file_->bytes[at]) : ids_[at]; }

  struct Part {
    size_t begin = 0, size = 0;
  };
  Part part(Split split) const;

 private:
  std::shared_ptr<const TaskFile> file_;
  std::vector<uint16_t> ids_;  // empty: tokens are the bytes of the file
  size_t size_ = 0;
  int classes_ = 256;
};

}  // namespace sb
