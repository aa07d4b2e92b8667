// Flip-flop: instructions to write, read or ignore, each followed by a bit. A read asks for the bit last written.
//   shown   w 1 i 0 i 0 r 1 w 0 r 0
//   asked   - - - - - - 1 - - - 0 -
#include "base/error.h"
#include "base/format.h"
#include "random/philox.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

enum Symbol : int16_t { write, read, ignore, bit };  // bit b is shown as symbol bit + b
constexpr int kSymbols = bit + 2;

// Remembers the written bit: certain of every answer.
class Memory final : public Oracle {
 public:
  int states() const override { return 2; }
  int classes() const override { return kSymbols; }
  void reset() override {
    instruction_ = ignore;
    written_ = unknown;
  }
  void frame(int16_t symbol) override {
    if (symbol >= bit && instruction_ == write) written_ = symbol - bit;
    instruction_ = symbol;
  }
  using Oracle::posterior;
  void posterior(std::vector<StateProbability>& out, int) const override {
    if (written_ == unknown)
      out = {{0, 0.5}, {1, 0.5}};
    else
      out = {{written_, 1.0}};
  }

 private:
  static constexpr int32_t unknown = -1;
  int16_t instruction_ = ignore;
  int32_t written_ = unknown;
};

class FlipFlop final : public Task {
 public:
  // Percentages of ignore instructions; `test_ignored`: of all splits but train.
  FlipFlop(uint64_t seed, int length, int ignored, int test_ignored)
      : seed_(seed), length_(length), train_(ignored), test_(test_ignored) {}

  TaskShape shape() const override {
    return {.channels = kSymbols, .answers = 2, .elements = 2 * length_, .fixed_frames = true};
  }
  std::string canonical_text() const override {
    return formatted("flip_flop\nseed = {}\nlength = {}\ntrain = {}\ntest = {}\n", seed_, length_, train_, test_);
  }
  int max_frames(Split) const override { return 2 * length_; }
  double mean_frames(Split) const override { return 2 * length_; }

  // Block e of the stream decides pair e. Its first word selects ignore, else the highest bit of the second selects
  // read, else the instruction is write. But the first instruction is always write, and the last always read. The
  // highest bit of the third word is the bit to show, except after read.
  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    begin_plain_batch(shape(), split, samples, pad_to, out);
    const auto ignored = static_cast<uint64_t>(split == Split::train ? train_ : test_);
    for (size_t b = 0; b < samples.size(); ++b) {
      const PhiloxStream stream(seed_, static_cast<uint32_t>(split), samples[b], Purpose::symbol);
      int16_t* shown = out.symbol.data() + b * static_cast<size_t>(out.frames);
      int32_t* target = out.target.data() + b * static_cast<size_t>(out.frames);
      int32_t* state = out.state.data() + b * static_cast<size_t>(out.elements);
      int32_t written = 0;
      for (int e = 0; e < length_; ++e) {
        const PhiloxBlock words = stream.block(static_cast<uint32_t>(e));
        Symbol instruction = uint64_t{words[0]} * 100 >> 32 < ignored ? ignore : words[1] >> 31 != 0 ? read : write;
        if (e == 0) instruction = write;
        if (e == length_ - 1) instruction = read;
        const auto drawn = static_cast<int32_t>(words[2] >> 31);
        if (instruction == write) written = drawn;
        if (instruction == read) target[2 * e] = state[2 * e] = written;
        shown[2 * e] = instruction;
        shown[2 * e + 1] = static_cast<int16_t>(bit + (instruction == read ? written : drawn));
      }
    }
  }
  std::unique_ptr<Oracle> oracle(Split) const override { return std::make_unique<Memory>(); }
  std::shared_ptr<const Task> at(Split split, int ignored) const override {
    const bool train = split == Split::train;
    return std::make_shared<const FlipFlop>(seed_, length_, train ? ignored : train_, train ? test_ : ignored);
  }

 private:
  uint64_t seed_;
  int length_, train_, test_;
};

}  // namespace

TaskRow flip_flop_row() {
  return {
      .name = "flip_flop",
      .about = {"Flip-flop",
                "Instructions to write, read or ignore are each followed by a bit. After a read, the model names the "
                "bit that was written last. The model has to skip all bits that are to be ignored."},
      .keys = {{"ignored", int64_t{80}, 0, 100,
                "ignore instructions, percent; the others write or read, equally often"}},
      .length = 256,
      .length_meaning = "instructions per sample, two frames each",
      .axis = TestAxis{"ignored", "ignored", 0, 100, "percent of ignore instructions, tested without retraining",
                       "ignore instructions of the test, percent"},
      .make = [](const TaskSetup& setup, const Poll&) -> std::shared_ptr<const Task> {
        if (setup.length < 2)
          throw bad_input("task.length", formatted("expected at least 2, to write and to read, got {}", setup.length));
        const int ignored = setup.integer("ignored");
        return std::make_shared<const FlipFlop>(setup.seed, setup.length, ignored, ignored);
      },
      .symbol_name =
          [](int symbol) { return symbol < kSymbols ? std::string(1, "wri01"[symbol]) : std::to_string(symbol); }};
}

}  // namespace sb
