// Copying: a string of random symbols is shown once, then blank frames ask for it again, symbol by symbol.
//   shown  w_1 w_2 ... w_n  .   .  ...  .
//   asked   -   -  ...  -  w_1 w_2 ... w_n
#include "random/philox.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

class Copying final : public Task {
 public:
  Copying(uint64_t seed, int symbols, int length) : seed_(seed), symbols_(symbols), length_(length) {}

  TaskShape shape() const override {
    return {.channels = symbols_, .answers = symbols_, .elements = 2 * length_, .fixed_frames = true};
  }
  std::string canonical_text() const override {
    return "copying\nseed = " + std::to_string(seed_) + "\nsymbols = " + std::to_string(symbols_) +
           "\nlength = " + std::to_string(length_) + "\n";
  }
  int max_frames(Split) const override { return 2 * length_; }
  double mean_frames(Split) const override { return 2 * length_; }

  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    begin_plain_batch(shape(), split, samples, pad_to, out);
    for (size_t b = 0; b < samples.size(); ++b) {
      const PhiloxStream stream(seed_, static_cast<uint32_t>(split), samples[b], Purpose::symbol);
      int16_t* symbol = out.symbol.data() + b * static_cast<size_t>(out.frames);
      int32_t* target = out.target.data() + b * static_cast<size_t>(out.frames);
      int32_t* state = out.state.data() + b * static_cast<size_t>(out.elements);
      for (int i = 0; i < length_; ++i) {
        const auto drawn = static_cast<int16_t>(uint64_t{stream.word(static_cast<uint32_t>(i))} * symbols_ >> 32);
        symbol[i] = drawn;           // the second half stays blank,
        state[length_ + i] = drawn;  // and the first is not asked for
        target[length_ + i] = drawn;
      }
    }
  }
  std::unique_ptr<Oracle> oracle(Split) const override { return std::make_unique<Recall>(symbols_); }
  std::shared_ptr<const Task> at(Split, int length) const override {
    return std::make_shared<const Copying>(seed_, symbols_, length);
  }

 private:
  // Remembers the string: certain of every answer.
  class Recall final : public Oracle {
   public:
    explicit Recall(int symbols) : symbols_(symbols) {}
    int states() const override { return symbols_; }
    void reset() override {
      shown_.clear();
      asked_ = 0;
    }
    void frame(int16_t symbol) override {
      if (symbol != kBlankFrame) shown_.push_back(symbol);
      now_ = symbol == kBlankFrame ? shown_.at(asked_++) : symbol;
    }
    using Oracle::posterior;
    void posterior(std::vector<StateProbability>& out, int) const override { out = {{now_, 1.0}}; }

   private:
    int symbols_;
    std::vector<int16_t> shown_;
    size_t asked_ = 0;
    int32_t now_ = 0;
  };

  uint64_t seed_;
  int symbols_, length_;
};

}  // namespace

TaskRow copying_row() {
  constexpr int most = 100000;
  return {.name = "copying",
          .about = {"Copying",
                    "A string of random symbols is shown once. Then blank frames ask for it again, from its first "
                    "symbol to its last. The model has to store the whole string."},
          .keys = {{"symbols", int64_t{8}, 2, 4096, "number of different symbols"}},
          .length = 10,
          .length_meaning = "symbols of the string",
          .axis = TestAxis{"length", "lengths", 1, most, "lengths of the string, tested without retraining",
                           "symbols of the string"},
          .make = [](const TaskSetup& setup, const Poll&) -> std::shared_ptr<const Task> {
            return std::make_shared<const Copying>(setup.seed, setup.integer("symbols"), setup.length);
          }};
}

}  // namespace sb
