// Word problem: symbols drive a deterministic machine (grammar/machine.h). After every symbol the model names its
// state.
//   shown   g_1   g_2        g_3        [state]   g_4              symbols of the group
//   asked   g_1  g_1 g_2  g_1 g_2 g_3      -     g_1 g_2 g_3 g_4   their product so far
// Some frames can reveal the state instead of showing a symbol. Symbols and the start can be hidden.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "grammar/machine.h"
#include "random/philox.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

int32_t pick(uint32_t word, int count) {
  return static_cast<int32_t>(uint64_t{word} * static_cast<uint64_t>(count) >> 32);
}

struct Word {
  std::string name;  // of the machine
  uint64_t seed = 1;
  int length = 0;       // frames
  int asked_from = 1;   // first position with an answer, counted from 1
  double reveal = 0;    // probability that a frame reveals the state
  double unseen = 0;    // probability that the symbol of another frame is not shown
  bool hidden = false;  // the start is drawn uniformly; false: state 0
};

// Probabilities of the machine's states, moved along its edges; along all of them if the symbol is not shown. Symbols
// and the kind of a frame do not depend on the state, so only revealed states are evidence.
class StateFilter final : public Oracle {
 public:
  StateFilter(std::shared_ptr<const Machine> machine, int classes, bool hidden)
      : machine_(std::move(machine)), classes_(classes), hidden_(hidden) {
    reset();
  }
  int states() const override { return machine_->answers; }
  int classes() const override { return classes_; }
  void reset() override {
    const auto states = static_cast<size_t>(machine_->states);
    now_.assign(states, hidden_ ? 1.0 / machine_->states : 0.0);
    if (!hidden_) now_[0] = 1;
  }
  void frame(int16_t symbol) override {
    if (symbol < kBlankFrame || symbol >= classes_)
      throw check_failed("oracle", formatted("symbol, expected {} to {}, got {}", kBlankFrame, classes_ - 1, symbol));
    if (symbol >= machine_->symbols) return reveal(static_cast<size_t>(symbol - machine_->symbols));
    next_.assign(now_.size(), 0.0);
    if (symbol != kBlankFrame) {
      move(symbol, 1);
    } else {
      for (int32_t hidden = 0; hidden < machine_->symbols; ++hidden) move(hidden, 1.0 / machine_->symbols);
    }
    now_.swap(next_);
  }
  using Oracle::posterior;
  void posterior(std::vector<StateProbability>& out, int) const override {
    std::vector<double> sums(static_cast<size_t>(machine_->answers));
    for (size_t s = 0; s < now_.size(); ++s) sums[static_cast<size_t>(machine_->answer[s])] += now_[s];
    out.clear();
    for (size_t answer = 0; answer < sums.size(); ++answer)
      if (sums[answer] > 0) out.push_back({static_cast<int32_t>(answer), sums[answer]});
  }

 private:
  void move(int32_t symbol, double probability) {
    for (size_t s = 0; s < now_.size(); ++s)
      next_[static_cast<size_t>(machine_->step(static_cast<int32_t>(s), symbol))] += probability * now_[s];
  }
  void reveal(size_t state) {
    if (now_[state] == 0) throw check_failed("oracle", formatted("state {} is impossible here", state));
    std::fill(now_.begin(), now_.end(), 0.0);
    now_[state] = 1;
  }

  std::shared_ptr<const Machine> machine_;
  int classes_;
  bool hidden_;
  std::vector<double> now_, next_;  // [states]
};

class WordProblem final : public Task {
 public:
  WordProblem(const Word& word, int test_from, std::shared_ptr<const Machine> machine)
      : word_(word), test_from_(test_from), machine_(std::move(machine)) {}

  TaskShape shape() const override {
    return {.channels = machine_->symbols + (word_.reveal > 0 ? machine_->states : 0),
            .answers = machine_->answers,
            .elements = word_.length,
            .fixed_frames = true};
  }
  int states() const override { return machine_->states; }
  std::string canonical_text() const override {
    return formatted(
        "word_problem\nmachine = {}\nseed = {}\nlength = {}\nasked_from = {}\nreveal = {}\nunseen = {}\nstart = {}\n"
        "other lengths: asked_from = {}\n",
        word_.name, word_.seed, word_.length, word_.asked_from, shortest(word_.reveal), shortest(word_.unseen),
        word_.hidden ? "hidden" : "known", test_from_);
  }
  int max_frames(Split) const override { return word_.length; }
  double mean_frames(Split) const override { return word_.length; }

  // Block t of the stream `symbol` decides frame t. It reveals the state iff word 1 < round(reveal * 2^32). Else word 0
  // selects the symbol, which is shown iff word 2 >= round(unseen * 2^32). Word 0 of the stream `signal` selects a
  // hidden start.
  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    begin_plain_batch(shape(), split, samples, pad_to, out);
    const auto threshold = [](double p) { return static_cast<uint64_t>(std::floor(p * 0x1p32 + 0.5)); };
    const uint64_t reveals = threshold(word_.reveal), unseen = threshold(word_.unseen);
    for (size_t b = 0; b < samples.size(); ++b) {
      const auto part = static_cast<uint32_t>(split);
      const PhiloxStream stream(word_.seed, part, samples[b], Purpose::symbol);
      const uint32_t start = PhiloxStream(word_.seed, part, samples[b], Purpose::signal).word(0);
      int16_t* shown = out.symbol.data() + b * static_cast<size_t>(out.frames);
      uint8_t* gap = out.gap.data() + b * static_cast<size_t>(out.frames);
      int32_t* target = out.target.data() + b * static_cast<size_t>(out.frames);
      int32_t* named = out.state.data() + b * static_cast<size_t>(out.elements);
      int32_t state = word_.hidden ? pick(start, machine_->states) : 0;
      for (int t = 0; t < word_.length; ++t) {
        const PhiloxBlock words = stream.block(static_cast<uint32_t>(t));
        if (words[1] < reveals) {
          shown[t] = static_cast<int16_t>(machine_->symbols + state);
          continue;
        }
        const int32_t symbol = pick(words[0], machine_->symbols);
        gap[t] = words[2] < unseen ? 1 : 0;
        shown[t] = gap[t] != 0 ? kBlankFrame : static_cast<int16_t>(symbol);
        state = machine_->step(state, symbol);
        if (t + 1 >= word_.asked_from) target[t] = named[t] = machine_->answer[static_cast<size_t>(state)];
      }
    }
  }
  std::unique_ptr<Oracle> oracle(Split) const override {
    return std::make_unique<StateFilter>(machine_, shape().channels, word_.hidden);
  }
  std::shared_ptr<const Task> at(Split, int length) const override {
    Word word = word_;
    word.length = length;
    word.asked_from = std::min(test_from_, length);
    return std::make_shared<const WordProblem>(word, test_from_, machine_);
  }

 private:
  Word word_;
  int test_from_;
  std::shared_ptr<const Machine> machine_;
};

}  // namespace

TaskRow word_problem_row() {
  constexpr int most = 100000;
  return {.name = "word_problem",
          .about = {"Word problem",
                    "Every symbol changes the state of a machine, for example by a factor of a product in a group. The "
                    "model names the state after each symbol."},
          .keys = {{"machine", std::string("parity"), 0, 0, "machine whose state is named", machine_names()},
                   {"reveal", 0.0, 0, 0.9, "probability that a frame shows the state instead of a symbol"},
                   {"unseen", 0.0, 0, 1,
                    "probability that a symbol is not shown: it moves the state, but its frame is blank"},
                   {"start",
                    std::string("known"),
                    0,
                    0,
                    "hidden: the first state is drawn at random and not shown",
                    {"known", "hidden"}},
                   {"asked_from", int64_t{1}, 1, most,
                    "first position that asks at the points of eval.lengths; in shorter samples the last one asks"}},
          .length = 40,
          .length_meaning = "frames per sample",
          .axis = TestAxis{"length", "lengths", 1, most, "frames per sample, tested without retraining",
                           "frames per sample of the test"},
          .make = [](const TaskSetup& setup, const Poll&) -> std::shared_ptr<const Task> {
            const Word word{.name = setup.text("machine"),
                            .seed = setup.seed,
                            .length = setup.length,
                            .reveal = setup.real("reveal"),
                            .unseen = setup.real("unseen"),
                            .hidden = setup.text("start") == "hidden"};
            return std::make_shared<const WordProblem>(word, setup.integer("asked_from"),
                                                       std::make_shared<const Machine>(make_machine(word.name)));
          }};
}

}  // namespace sb
