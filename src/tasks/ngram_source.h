// Interface of what n-grams count: symbols in order, some of which have an answer.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tasks/gap_task.h"

namespace sb {

// A frame with a symbol. Blank frames are left out.
struct SeenFrame {
  int32_t symbol = 0;
  int32_t answer = -1;  // -1: none
};

// Frames of several samples, one sample after the other.
struct SeenFrames {
  std::vector<SeenFrame> frames;
  std::vector<size_t> ends;  // [samples]: end of each sample's frames
};

class NgramSource {
 public:
  virtual ~NgramSource() = default;
  virtual std::string canonical_text() const = 0;  // canonical: equal texts mean equal n-grams
  virtual int classes() const = 0;
  virtual int answers() const = 0;
  virtual int elements() const = 0;  // maximum number of frames of a sample that have an answer
  // [answers]: symbol of every frame with this answer; empty if the answer does not tell the symbol.
  virtual std::span<const int32_t> shown() const { return {}; }
  virtual void draw(Split split, uint64_t first, size_t samples, SeenFrames& out) const = 0;
};

// A language with gaps. N-grams see gaps of wrong symbols, but neither blanks nor noise.
std::unique_ptr<NgramSource> gap_ngrams(std::shared_ptr<const Language> language, const TaskConfig& task);
// The frames of a task that shows a symbol wherever it asks. The task must outlive the source.
std::unique_ptr<NgramSource> frame_ngrams(const Task& task);

}  // namespace sb
