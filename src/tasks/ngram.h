// The n-gram: a predictor that names the most frequent training state after the last n symbols.
//
// The context of an element is the last n symbols up to and including its data frame. Blank frames are skipped. Wrong
// symbols are not skipped, since nothing marks them. Contexts that reach before the sample are filled with a start
// mark. The n-gram looks up the longest suffix of the context that occurs in training samples, and predicts the most
// frequent state of the elements with that suffix (the lowest id on ties). If even the element's own symbol is new, it
// predicts the most frequent state overall. It predicts at the data frame and keeps the prediction through the gap.
//
// In tasks of other kinds, answers take the place of states, and only frames with an answer are counted and scored.
// Frames without one, such as distractors, are part of the context like wrong symbols.
#pragma once
#include <array>
#include <cstdint>
#include <functional>

#include "tasks/ngram_source.h"

namespace sb {

constexpr int kMaxGram = 8;

struct NgramRequest {
  uint64_t train_samples = 0;  // learns from samples 0 .. train_samples-1 of Split::train
  Split valid = Split::valid;  // n is chosen on samples 0 .. valid_samples-1 of this split
  uint64_t valid_samples = 0;
  Split test = Split::test;
  uint64_t first_test = 0, test_samples = 0;
  int threads = 0;             // 0: all cores; results do not depend on it
  std::function<void()> poll;  // called now and then from the calling thread; may throw to end the work
};

struct NgramFigures {
  double majority = 0;                           // accuracy on test of always predicting the most frequent state
  std::array<double, kMaxGram> valid{}, test{};  // accuracies; entry n-1
  int n = 1;                                     // the best on valid; the smallest on ties
  double stderr_ = 0;                            // of test[n-1], from the spread between samples; 0 for one sample
  double accuracy() const { return test[static_cast<size_t>(n - 1)]; }
};

// The parts of a task that n-grams see: gaps of wrong symbols, but neither blanks nor noise. Tasks with equal results
// here have the same n-grams.
TaskConfig symbols_only(TaskConfig task);
// Maximum number of training samples (memory limit); with more, count_ngrams throws bad_input.
uint64_t most_counted_samples(const NgramSource& source);
void expect_samples(uint64_t samples, const char* what);  // throws bad_input if there are none

// Memory: 8 bytes per training element, or 16 if its context and answer need more than 64 bits. Time: one sort of the
// training elements.
NgramFigures count_ngrams(const NgramSource& source, const NgramRequest& request);
NgramFigures count_ngrams(std::shared_ptr<const Language> language, const TaskConfig& task,
                          const NgramRequest& request);

}  // namespace sb
