// The n-gram: a predictor that names the commonest training state after the last n symbols.
//
// The context of an element is the last n symbols shown up to its data frame, its own included. Blank frames are
// skipped. Wrong symbols are not: nothing marks them. Before a sample's first symbol stands a mark that is none of
// them, as often as n asks for. The n-gram looks up the longest suffix of the context that training samples contain and
// answers the commonest state of the elements that have it, the lowest id of equals; the commonest state of all if even
// the element's own symbol is new. It answers at the data frame and keeps its answer through the gap.
#pragma once
#include <array>
#include <cstdint>
#include <functional>

#include "tasks/gap_task.h"

namespace sb {

constexpr int kMaxGram = 8;

struct NgramRequest {
  uint64_t train_samples = 0;  // counted: samples 0 .. train_samples-1 of Split::train
  Split valid = Split::valid;  // n is chosen on samples 0 .. valid_samples-1 of this split
  uint64_t valid_samples = 0;
  Split test = Split::test;
  uint64_t first_test = 0, test_samples = 0;
  int threads = 0;             // 0: all cores; no influence on results
  std::function<void()> poll;  // called now and then from the calling thread; ends the work by throwing
};

struct NgramFigures {
  double majority = 0;                           // accuracy on test of the commonest state
  std::array<double, kMaxGram> valid{}, test{};  // accuracies; entry n-1
  int n = 1;                                     // the best on valid, the least of equals
  double stderr_ = 0;                            // of test[n-1], from the spread between samples; 0 for one sample
  double accuracy() const { return test[static_cast<size_t>(n - 1)]; }
};

// All that n-grams see of a task: gaps of wrong symbols, neither blanks nor noise. Tasks that differ in the rest alone
// have the same n-grams.
TaskConfig symbols_only(TaskConfig task);
// Training samples that memory is spent on; above, count_ngrams throws bad_input.
uint64_t most_counted_samples(const Language& language);

// Time and memory: 8 bytes per training element, 16 with more than 127 symbols, sorted once.
NgramFigures count_ngrams(std::shared_ptr<const Language> language, const TaskConfig& task,
                          const NgramRequest& request);

}  // namespace sb
