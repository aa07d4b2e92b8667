// Text: tokens of a file, interrupted by distractor spans. The model predicts the next true token at every true token.
//   shown   t h e   c [x q] a t  s a t       [..] a span
//   asked   h e   c a   -  -  t  s a t _
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "random/word_stream.h"
#include "tasks/corpus.h"

namespace sb {
namespace {

enum class Distractor { random, other_text, repeated_text, mixed };
const std::vector<std::string> kDistractors = {"random", "other_text", "repeated_text", "mixed"};

struct TextConfig {
  uint64_t seed = 1;
  int length = 0;
  double probability = 0;  // of a span after a true token
  int span_min = 0, span_max = 0;
  Distractor distractor = Distractor::random;
  // The next token is asked for only at the true token with this number since the last span, counted from 1; 0: at
  // every true token.
  int train_distance = 0, test_distance = 0;

  size_t window() const { return static_cast<size_t>(length) + 1; }  // true tokens that a sample may need
};

// Writes the frames of a sample.
class Drawer {
 public:
  Drawer(const TextConfig& config, const Corpus& corpus, Split split)
      : c_(config),
        corpus_(corpus),
        part_(corpus.part(split)),
        threshold_(static_cast<uint64_t>(std::floor(config.probability * 0x1p32 + 0.5))),
        distance_(split == Split::train ? config.train_distance : config.test_distance) {}

  struct Row {
    int16_t* symbol;
    uint8_t* gap;
    int32_t *target, *state;
  };

  void draw(WordStream& words, const Row& row) const {
    const size_t start = words.below_large(part_.size - c_.window() + 1);
    size_t next = start;  // true token, within the part
    int since = -1;       // true tokens since the last span; -1: no span so far
    for (int t = 0; t < c_.length; ++t) {
      row.symbol[t] = token(next++);
      if (since >= 0) ++since;
      if (distance_ == 0 || since == distance_) row.target[t] = row.state[t] = token(next);
      if (threshold_ == 0 || words.next() >= threshold_) continue;
      const int wanted = c_.span_min + words.below(c_.span_max - c_.span_min + 1);
      const int span = std::min(wanted, c_.length - t - 1);
      t += fill_span(words, start, next, span, row.symbol + t + 1, row.gap + t + 1);
      since = 0;
    }
  }

 private:
  int16_t token(size_t at) const { return static_cast<int16_t>(corpus_.token(part_.begin + at)); }

  // Returns the length of the span. `start` and `next` delimit the true tokens so far.
  int fill_span(WordStream& words, size_t start, size_t next, int span, int16_t* symbol, uint8_t* gap) const {
    const Distractor kind =
        c_.distractor == Distractor::mixed ? static_cast<Distractor>(words.below(3)) : c_.distractor;
    const auto n = static_cast<size_t>(kind == Distractor::repeated_text ? std::min<size_t>(span, next - start) : span);
    // A random place outside of the sample's tokens; positions wrap around at the end of the part.
    const size_t other =
        kind == Distractor::other_text ? start + c_.window() + words.below_large(part_.size - c_.window() - n + 1) : 0;
    for (size_t i = 0; i < n; ++i) {
      const size_t at = kind == Distractor::random       ? words.below_large(part_.size)
                        : kind == Distractor::other_text ? (other + i) % part_.size
                                                         : next - n + i;
      symbol[i] = token(at);
    }
    std::fill_n(gap, n, uint8_t{1});
    return static_cast<int>(n);
  }

  const TextConfig& c_;
  const Corpus& corpus_;
  Corpus::Part part_;
  uint64_t threshold_;
  int distance_;
};

class Text final : public Task {
 public:
  Text(const TextConfig& config, std::shared_ptr<const Corpus> corpus, std::string format)
      : c_(config), corpus_(std::move(corpus)), format_(std::move(format)) {
    if (c_.span_min > c_.span_max)
      throw bad_input("task.span_min", formatted("expected at most span_max ({}), got {}", c_.span_max, c_.span_min));
    const size_t least = Corpus::kParts * (c_.window() + static_cast<size_t>(c_.span_max));
    if (corpus_->size() < least)
      throw bad_input("task.file",
                      formatted("{}: tokens, expected at least {}, {} (length + 1 + span_max), got {}",
                                printable(corpus_->file().path, 400), least, Corpus::kParts, corpus_->size()));
  }

  TaskShape shape() const override {
    return {.channels = corpus_->classes(), .answers = corpus_->classes(), .elements = c_.length, .fixed_frames = true};
  }
  std::string objective() const override { return "next"; }
  std::string canonical_text() const override {
    return formatted(
        "text\nseed = {}\nlength = {}\nfile = {} {}\nspans = {} {} {} {}\ntrain distance = {}\ntest distance = {}\n",
        c_.seed, c_.length, corpus_->file().sha256, format_, shortest(c_.probability), c_.span_min, c_.span_max,
        kDistractors[static_cast<size_t>(c_.distractor)], c_.train_distance, c_.test_distance);
  }
  int max_frames(Split) const override { return c_.length; }
  double mean_frames(Split) const override { return c_.length; }

  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    begin_plain_batch(shape(), split, samples, pad_to, out);
    const Drawer drawer(c_, *corpus_, split);
    for (size_t b = 0; b < samples.size(); ++b) {
      WordStream words(PhiloxStream(c_.seed, static_cast<uint32_t>(split), samples[b], Purpose::symbol));
      const size_t row = b * static_cast<size_t>(out.frames);
      drawer.draw(words, {out.symbol.data() + row, out.gap.data() + row, out.target.data() + row,
                          out.state.data() + b * static_cast<size_t>(out.elements)});
    }
  }
  bool counts_frames() const override { return true; }

  std::shared_ptr<const Task> at(Split split, int distance) const override {
    // A true token, a span, then `distance` true tokens without another one.
    const int places = std::max(0, c_.length - c_.span_min - distance);
    const double asked = places * c_.probability * std::pow(1 - c_.probability, distance - 1);
    if (asked < kLeastAsked)
      throw bad_input("task.length", formatted("at distance {} a sample asks for at most {:.2g} tokens, expected {}; "
                                               "change length or span_probability",
                                               distance, asked, shortest(kLeastAsked)));
    TextConfig other = c_;
    (split == Split::train ? other.train_distance : other.test_distance) = distance;
    return std::make_shared<const Text>(other, corpus_, format_);
  }

 private:
  static constexpr double kLeastAsked = 0.01;  // minimum expected number of answers per sample
  TextConfig c_;
  std::shared_ptr<const Corpus> corpus_;
  std::string format_;
};

std::shared_ptr<const Task> make_text(const TaskSetup& setup, const Poll&) {
  const auto named = std::find(kDistractors.begin(), kDistractors.end(), setup.text("distractor"));
  const TextConfig config{.seed = setup.seed,
                          .length = setup.length,
                          .probability = setup.real("span_probability"),
                          .span_min = setup.integer("span_min"),
                          .span_max = setup.integer("span_max"),
                          .distractor = static_cast<Distractor>(named - kDistractors.begin())};
  const std::string& format = setup.text("tokens");
  return std::make_shared<const Text>(config, std::make_shared<const Corpus>(setup.file("file"), format), format);
}

}  // namespace

TaskRow text_row() {
  constexpr int most_frames = 100000;
  return {
      .name = "text",
      .about = {"Text",
                "Frames show the tokens of a text. At random places, an unmarked span of other tokens is inserted. At "
                "every token of the text the model predicts the next token of the text, across such spans. How fast "
                "it recovers after a span shows how well it keeps the context and drops the rest. The best possible "
                "accuracy is not known."},
      .keys = {{"file", std::string(), 0, 0, "file with the text or its tokens", {}, true},
               {"tokens",
                std::string("bytes"),
                0,
                0,
                "content of the file: text, whose bytes are the tokens, or token ids",
                {"bytes", "npy", "uint16", "uint32"}},
               {"distractor", std::string("other_text"), 0, 0,
                "spans of random tokens, another place of the file, the last tokens again, or any of these",
                kDistractors},
               {"span_probability", 0.02, 0, 1, "probability of a span after a token of the text"},
               {"span_min", int64_t{2}, 1, most_frames, "least tokens of a span"},
               {"span_max", int64_t{32}, 1, most_frames, "most tokens of a span"}},
      .length = 256,
      .length_meaning = "frames per sample, spans included",
      .axis = TestAxis{"distance", "distances", 1, most_frames,
                       "tokens since the end of the last span, tested without retraining",
                       "tokens of the text since the last span"},
      .make = make_text};
}

}  // namespace sb
