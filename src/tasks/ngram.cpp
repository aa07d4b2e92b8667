#include "tasks/ngram.h"

#include <algorithm>
#include <bit>
#include <span>
#include <thread>

#include "base/error.h"
#include "base/parallel.h"
#include "tasks/running_mean.h"

namespace sb {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr uint64_t kMaxBytes = uint64_t{1} << 31;  // of training elements
constexpr size_t kGrain = 64;                      // samples
constexpr int kMaxKeyBits = 128;
constexpr size_t kRoundElements = size_t{1} << 22;  // elements that are scored at a time

// An element's key: symbols, the nearest in the highest bits, then its answer. If the answer tells the element's own
// symbol, the key holds only the symbols before it. Sorted keys of one symbol have the elements of every context side
// by side. A symbol is its class + 1; 0: before the sample.
struct KeyLayout {
  int answer = 0, symbol = 0;  // bits
  bool own = false;            // the key holds the element's own symbol
  int symbols = 0;             // held by a key
  explicit KeyLayout(const NgramSource& source)
      : answer(std::bit_width(static_cast<unsigned>(source.answers() - 1))),
        symbol(std::bit_width(static_cast<unsigned>(source.classes()))),
        own(source.shown().empty()),
        symbols(own ? std::min(kMaxGram, (kMaxKeyBits - answer) / symbol) : kMaxGram - 1) {}
  int bits() const { return answer + symbols * symbol; }
  int longest() const { return symbols + (own ? 0 : 1); }  // n of the longest context
};

template <class Key>
class Counter {
 public:
  Counter(const NgramSource& source, const NgramRequest& request)
      : source_(source),
        layout_(source),
        length_(static_cast<size_t>(source.elements())),
        classes_(static_cast<size_t>(source.classes())),
        shown_(source.shown()),
        threads_(request.threads),
        poll_(request.poll),
        caller_(std::this_thread::get_id()) {}

  void learn(uint64_t samples) {
    keys_ = keys_of(Split::train, 0, samples).keys;
    ends_ = part_by_symbol(keys_);
    parallel_for(classes_, 1, threads_, [&](size_t c, size_t) {
      asked_to_end();
      std::sort(keys_.begin() + begin_of(c), keys_.begin() + end_of(c));
    });
    std::vector<uint64_t> visits(static_cast<size_t>(source_.answers()), 0);
    for (const Key key : keys_) ++visits[answer_of(key)];
    commonest_ = static_cast<uint32_t>(std::max_element(visits.begin(), visits.end()) - visits.begin());
  }

  // Calls visit(right, asked) for each sample in order. asked: number of elements; right[n]: how many of them the
  // n-gram predicts right; right[0]: the same for the most frequent answer.
  template <class Visit>
  void score(Split split, uint64_t first, uint64_t samples, const Visit& visit) {
    const uint64_t round = std::max<uint64_t>(1, kRoundElements / length_);
    for (uint64_t done = 0; done < samples; done += round) {
      const Keys drawn = keys_of(split, first + done, std::min(round, samples - done));
      const auto marks = marks_of(drawn.keys);
      size_t e = 0;
      for (const size_t asked : drawn.counts) {
        std::array<uint64_t, kMaxGram + 1> right{};
        for (const size_t end = e + asked; e < end; ++e)
          for (size_t n = 0; n < right.size(); ++n) right[n] += marks[e] >> n & 1;
        visit(right, asked);
      }
    }
  }

 private:
  // Keys of samples in order, and the number of each sample's keys.
  struct Keys {
    std::vector<Key> keys;
    std::vector<size_t> counts;
  };
  struct Query {
    Key key;
    uint32_t element;
    bool operator<(const Query& other) const { return key < other.key; }
  };

  void asked_to_end() const {
    if (poll_ && std::this_thread::get_id() == caller_) poll_();
  }
  uint32_t answer_of(Key key) const { return static_cast<uint32_t>(key) & ((1U << layout_.answer) - 1); }
  size_t symbol_of(Key key) const {
    if (!layout_.own) return static_cast<size_t>(shown_[answer_of(key)]);
    return static_cast<size_t>(key >> (layout_.bits() - layout_.symbol)) - 1;
  }
  ptrdiff_t begin_of(size_t symbol) const { return static_cast<ptrdiff_t>(symbol == 0 ? 0 : ends_[symbol - 1]); }
  ptrdiff_t end_of(size_t symbol) const { return static_cast<ptrdiff_t>(ends_[symbol]); }

  Keys keys_of(Split split, uint64_t first, uint64_t samples) const {
    Keys out{std::vector<Key>(samples * length_), std::vector<size_t>(samples)};
    parallel_for(samples, kGrain, threads_, [&](size_t begin, size_t end) {
      asked_to_end();
      SeenFrames seen;
      source_.draw(split, first + begin, end - begin, seen);
      size_t from = 0;
      for (size_t i = begin; i < end; ++i) {
        const std::span frames(seen.frames.data() + from, seen.ends[i - begin] - from);
        out.counts[i] = add_sample(frames, out.keys.data() + i * length_);
        from = seen.ends[i - begin];
      }
    });
    size_t kept = 0;  // closes up the room of elements without an answer
    for (size_t i = 0; i < samples; ++i) {
      const auto keys = out.keys.begin() + static_cast<ptrdiff_t>(i * length_);
      if (kept < i * length_)
        std::copy(keys, keys + static_cast<ptrdiff_t>(out.counts[i]), out.keys.begin() + static_cast<ptrdiff_t>(kept));
      kept += out.counts[i];
    }
    out.keys.resize(kept);
    return out;
  }

  size_t add_sample(std::span<const SeenFrame> frames, Key* out) const {
    Key context = 0;
    size_t count = 0;
    for (const SeenFrame& frame : frames) {
      const Key before = context;
      context = context >> layout_.symbol | static_cast<Key>(frame.symbol + 1)
                                                << (layout_.symbols - 1) * layout_.symbol;
      if (frame.answer < 0) continue;
      out[count++] = (layout_.own ? context : before) << layout_.answer | static_cast<Key>(frame.answer);
    }
    return count;
  }

  // Groups the keys by symbol; returns the end of each symbol's group.
  std::vector<size_t> part_by_symbol(std::vector<Key>& keys) const {
    std::vector<size_t> ends(classes_, 0), next(classes_, 0);
    for (const Key key : keys) ++ends[symbol_of(key)];
    for (size_t c = 1; c < classes_; ++c) {
      next[c] = ends[c - 1];
      ends[c] += ends[c - 1];
    }
    for (size_t c = 0; c < classes_; ++c) {
      asked_to_end();
      while (next[c] < ends[c]) {
        Key& here = keys[next[c]];
        const size_t symbol = symbol_of(here);
        if (symbol != c) std::swap(here, keys[next[symbol]]);
        ++next[symbol];
      }
    }
    return ends;
  }

  // Bit n of an element: the n-gram names its answer.
  std::vector<uint16_t> marks_of(const std::vector<Key>& keys) const {
    std::vector<std::vector<Query>> queries(classes_);
    for (size_t i = 0; i < keys.size(); ++i) queries[symbol_of(keys[i])].push_back({keys[i], static_cast<uint32_t>(i)});
    std::vector<uint16_t> marks(keys.size());
    parallel_for(classes_, 1, threads_, [&](size_t c, size_t) {
      asked_to_end();
      std::sort(queries[c].begin(), queries[c].end());
      answer(c, queries[c], marks);
    });
    return marks;
  }

  // Neighbours among sorted queries share contexts: each context is looked up once.
  void answer(size_t symbol, const std::vector<Query>& queries, std::vector<uint16_t>& marks) const {
    struct Found {
      typename std::vector<Key>::const_iterator begin, end;  // training elements of the context
      uint32_t answer;
    };
    std::array<Found, kMaxGram + 1> found;
    std::vector<uint32_t> counts(static_cast<size_t>(source_.answers()), 0);
    found[0] = {keys_.begin() + begin_of(symbol), keys_.begin() + end_of(symbol), commonest_};
    const Key* last = nullptr;
    for (const Query& query : queries) {
      bool same = last != nullptr;
      for (int n = 1; n <= kMaxGram; ++n) {
        if (n > layout_.longest()) {
          found[static_cast<size_t>(n)] = found[static_cast<size_t>(n - 1)];
          continue;
        }
        // Without the symbols before the last n; all of one symbol share the context of length 1.
        const auto context = [shift = layout_.answer + (layout_.longest() - n) * layout_.symbol, n](Key key) {
          return n == 1 ? Key{0} : key >> shift;
        };
        const Key wanted = context(query.key);
        same = same && context(*last) == wanted;
        if (same) continue;
        const Found& shorter = found[static_cast<size_t>(n - 1)];
        Found& here = found[static_cast<size_t>(n)];
        here.begin = std::partition_point(shorter.begin, shorter.end, [&](Key key) { return context(key) < wanted; });
        here.end = std::partition_point(here.begin, shorter.end, [&](Key key) { return context(key) == wanted; });
        here.answer = here.begin == here.end ? shorter.answer : commonest(here.begin, here.end, counts);
      }
      last = &query.key;
      for (size_t n = 0; n < found.size(); ++n)
        marks[query.element] |= static_cast<uint16_t>((found[n].answer == answer_of(query.key) ? 1U : 0U) << n);
    }
  }

  // The most frequent answer. `counts` is zero on entry and on return.
  template <class Iterator>
  uint32_t commonest(Iterator begin, Iterator end, std::vector<uint32_t>& counts) const {
    uint32_t best = answer_of(*begin);
    for (Iterator key = begin; key != end; ++key) {
      const uint32_t answer = answer_of(*key), n = ++counts[answer];
      if (n > counts[best] || (n == counts[best] && answer < best)) best = answer;
    }
    for (Iterator key = begin; key != end; ++key) counts[answer_of(*key)] = 0;
    return best;
  }

  const NgramSource& source_;
  const KeyLayout layout_;
  const size_t length_, classes_;
  const std::span<const int32_t> shown_;  // class by answer
  const int threads_;
  const std::function<void()>& poll_;
  const std::thread::id caller_;
  std::vector<Key> keys_;     // of training, by symbol, sorted
  std::vector<size_t> ends_;  // of each symbol's
  uint32_t commonest_ = 0;
};

template <class Key>
NgramFigures figures(const NgramSource& source, const NgramRequest& request) {
  Counter<Key> counter(source, request);
  counter.learn(request.train_samples);
  NgramFigures out;
  const auto length = static_cast<double>(source.elements());
  struct Sums {
    std::array<uint64_t, kMaxGram + 1> right{};
    uint64_t asked = 0;
    double share(size_t n) const { return static_cast<double>(right[n]) / static_cast<double>(asked); }
  } valid, test;
  const auto add = [](Sums& sums, const auto& right, size_t asked) {
    for (size_t n = 0; n < right.size(); ++n) sums.right[n] += right[n];
    sums.asked += asked;
  };
  counter.score(request.valid, 0, request.valid_samples,
                [&](const auto& right, size_t asked) { add(valid, right, asked); });
  out.n = static_cast<int>(std::max_element(valid.right.begin() + 1, valid.right.end()) - valid.right.begin());
  RunningMean spread;
  counter.score(request.test, request.first_test, request.test_samples, [&](const auto& right, size_t asked) {
    add(test, right, asked);
    if (asked == 0) return;
    spread.add(static_cast<double>(right[static_cast<size_t>(out.n)]) / static_cast<double>(asked),
               static_cast<double>(asked) / length);
  });
  if (valid.asked == 0 || test.asked == 0) throw bad_input("baselines", "no frame of the samples has a target");
  out.majority = test.share(0);
  for (size_t n = 1; n <= kMaxGram; ++n) {
    out.valid[n - 1] = valid.share(n);
    out.test[n - 1] = test.share(n);
  }
  out.stderr_ = spread.error();
  return out;
}

}  // namespace

void expect_samples(uint64_t samples, const char* what) {
  if (samples == 0) throw bad_input("baselines", std::string(what) + ", expected at least 1, got 0");
}

TaskConfig symbols_only(TaskConfig task) {
  task.number = 0;
  task.noise = 0;
  task.objective = Objective::state;
  for (GapConfig* gap : {&task.train, &task.test})
    if (gap->law == GapLaw::none || gap->content == GapContent::blank) *gap = {};
  return task;
}

uint64_t most_counted_samples(const NgramSource& source) {
  const uint64_t bytes = KeyLayout(source).bits() <= 64 ? sizeof(uint64_t) : sizeof(Wide);
  return std::max<uint64_t>(1, kMaxBytes / (bytes * static_cast<uint64_t>(source.elements())));
}

NgramFigures count_ngrams(const NgramSource& source, const NgramRequest& request) {
  expect_samples(request.train_samples, "training samples");
  expect_samples(request.valid_samples, "valid samples");
  expect_samples(request.test_samples, "test samples");
  if (const uint64_t most = most_counted_samples(source); request.train_samples > most)
    throw bad_input("baselines", "training samples, expected at most " + std::to_string(most) + ", got " +
                                     std::to_string(request.train_samples));
  const KeyLayout layout(source);
  if (layout.bits() > kMaxKeyBits)
    throw bad_input("baselines", "symbols of n-grams, expected at most 65535, got " + std::to_string(source.classes()));
  return layout.bits() <= 64 ? figures<uint64_t>(source, request) : figures<Wide>(source, request);
}

NgramFigures count_ngrams(std::shared_ptr<const Language> language, const TaskConfig& config,
                          const NgramRequest& request) {
  return count_ngrams(*gap_ngrams(std::move(language), config), request);
}

}  // namespace sb
