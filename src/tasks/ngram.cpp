#include "tasks/ngram.h"

#include <algorithm>
#include <bit>
#include <thread>

#include "base/error.h"
#include "base/parallel.h"
#include "tasks/running_mean.h"

namespace sb {
namespace {

__extension__ using Wide = unsigned __int128;
constexpr uint64_t kMaxBytes = uint64_t{1} << 31;  // of training elements
constexpr size_t kGrain = 64;                      // samples
constexpr size_t kRound = size_t{1} << 22;         // elements that are scored at a time

// An element's key: the symbols before it, the nearest in the highest bits, then its state's id. Sorted keys of one
// symbol have the elements of every context side by side. A symbol is its class + 1; 0: before the sample.
struct KeyLayout {
  int state = 0, symbol = 0;  // bits
  explicit KeyLayout(const Language& language)
      : state(std::bit_width(static_cast<unsigned>(language.states() - 1))),
        symbol(std::bit_width(static_cast<unsigned>(language.classes()))) {}
  int bits() const { return state + (kMaxGram - 1) * symbol; }
};

template <class Key>
class Counter {
 public:
  Counter(const GapTask& task, const NgramRequest& request)
      : task_(task),
        language_(task.language()),
        layout_(language_),
        length_(static_cast<size_t>(language_.length())),
        classes_(static_cast<size_t>(language_.classes())),
        shown_(task.shown()),
        threads_(request.threads),
        poll_(request.poll),
        caller_(std::this_thread::get_id()) {}

  void learn(uint64_t samples) {
    keys_ = keys_of(Split::train, 0, samples);
    ends_ = part_by_symbol(keys_);
    parallel_for(classes_, 1, threads_, [&](size_t c, size_t) {
      asked_to_end();
      std::sort(keys_.begin() + begin_of(c), keys_.begin() + end_of(c));
    });
    std::vector<uint64_t> visits(static_cast<size_t>(language_.states()), 0);
    for (const Key key : keys_) ++visits[state_of(key)];
    commonest_ = static_cast<uint32_t>(std::max_element(visits.begin(), visits.end()) - visits.begin());
  }

  // Calls visit(right) for each sample in order. right[n]: number of elements that the n-gram predicts right; right[0]:
  // the same for the most frequent state.
  template <class Visit>
  void score(Split split, uint64_t first, uint64_t samples, const Visit& visit) {
    const uint64_t round = std::max<uint64_t>(1, kRound / length_);
    for (uint64_t done = 0; done < samples; done += round) {
      const auto marks = marks_of(keys_of(split, first + done, std::min(round, samples - done)));
      for (size_t i = 0; i < marks.size(); i += length_) {
        std::array<uint64_t, kMaxGram + 1> right{};
        for (size_t e = i; e < i + length_; ++e)
          for (size_t n = 0; n < right.size(); ++n) right[n] += marks[e] >> n & 1;
        visit(right);
      }
    }
  }

 private:
  struct Query {
    Key key;
    uint32_t element;
    bool operator<(const Query& other) const { return key < other.key; }
  };

  void asked_to_end() const {
    if (poll_ && std::this_thread::get_id() == caller_) poll_();
  }
  uint32_t state_of(Key key) const { return static_cast<uint32_t>(key) & ((1U << layout_.state) - 1); }
  size_t symbol_of(Key key) const { return static_cast<size_t>(shown_[state_of(key)]); }
  ptrdiff_t begin_of(size_t symbol) const { return static_cast<ptrdiff_t>(symbol == 0 ? 0 : ends_[symbol - 1]); }
  ptrdiff_t end_of(size_t symbol) const { return static_cast<ptrdiff_t>(ends_[symbol]); }

  // Keys of every element of these samples, in order.
  std::vector<Key> keys_of(Split split, uint64_t first, uint64_t samples) const {
    std::vector<Key> keys(samples * length_);
    const GapConfig& gap = task_.gaps().law(split);
    const bool wrong = gap.law != GapLaw::none && gap.content == GapContent::forbidden_symbol;
    parallel_for(samples, kGrain, threads_, [&](size_t begin, size_t end) {
      asked_to_end();
      std::vector<uint16_t> states((end - begin) * length_);
      language_.draw(split, first + begin, end - begin, states.data());
      Gaps gaps;
      for (size_t i = begin; i < end; ++i) {
        const uint16_t* sample = states.data() + (i - begin) * length_;
        if (wrong) task_.gaps().draw(split, first + i, sample, static_cast<int>(length_), gaps);
        add_sample(sample, wrong ? &gaps : nullptr, keys.data() + i * length_);
      }
    });
    return keys;
  }

  void add_sample(const uint16_t* sample, const Gaps* gaps, Key* out) const {
    Key before = 0;
    const auto see = [&](int32_t symbol) {
      before = before >> layout_.symbol | static_cast<Key>(symbol + 1) << (kMaxGram - 2) * layout_.symbol;
    };
    size_t gap_frames = 0;
    for (size_t e = 0; e < length_; ++e) {
      out[e] = before << layout_.state | static_cast<Key>(language_.ids()[sample[e]]);
      see(language_.symbols()[sample[e]]);
      if (!gaps) continue;
      for (int32_t g = 0; g < gaps->length[e]; ++g) see(gaps->wrong[gap_frames++]);
    }
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

  // Bit n of an element: the n-gram names its state.
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
      uint32_t state;
    };
    std::array<Found, kMaxGram + 1> found;
    std::vector<uint32_t> counts(static_cast<size_t>(language_.states()), 0);
    found[0] = {keys_.begin() + begin_of(symbol), keys_.begin() + end_of(symbol), commonest_};
    const Key* last = nullptr;
    for (const Query& query : queries) {
      bool same = last != nullptr;
      for (int n = 1; n <= kMaxGram; ++n) {
        // Without the symbols before the last n; all of one symbol share the context of length 1.
        const auto context = [shift = layout_.state + (kMaxGram - n) * layout_.symbol, n](Key key) {
          return n == 1 ? Key{0} : key >> shift;
        };
        const Key wanted = context(query.key);
        same = same && context(*last) == wanted;
        if (same) continue;
        const Found& shorter = found[static_cast<size_t>(n - 1)];
        Found& here = found[static_cast<size_t>(n)];
        here.begin = std::partition_point(shorter.begin, shorter.end, [&](Key key) { return context(key) < wanted; });
        here.end = std::partition_point(here.begin, shorter.end, [&](Key key) { return context(key) == wanted; });
        here.state = here.begin == here.end ? shorter.state : commonest(here.begin, here.end, counts);
      }
      last = &query.key;
      for (size_t n = 0; n < found.size(); ++n)
        marks[query.element] |= static_cast<uint16_t>((found[n].state == state_of(query.key) ? 1U : 0U) << n);
    }
  }

  // The most frequent state. `counts` is zero on entry and on return.
  template <class Iterator>
  uint32_t commonest(Iterator begin, Iterator end, std::vector<uint32_t>& counts) const {
    uint32_t best = state_of(*begin);
    for (Iterator key = begin; key != end; ++key) {
      const uint32_t state = state_of(*key), n = ++counts[state];
      if (n > counts[best] || (n == counts[best] && state < best)) best = state;
    }
    for (Iterator key = begin; key != end; ++key) counts[state_of(*key)] = 0;
    return best;
  }

  const GapTask& task_;
  const Language& language_;
  const KeyLayout layout_;
  const size_t length_, classes_;
  const std::span<const int32_t> shown_;  // class by state id
  const int threads_;
  const std::function<void()>& poll_;
  const std::thread::id caller_;
  std::vector<Key> keys_;     // of training, by symbol, sorted
  std::vector<size_t> ends_;  // of each symbol's
  uint32_t commonest_ = 0;
};

template <class Key>
NgramFigures figures(const GapTask& task, const NgramRequest& request) {
  Counter<Key> counter(task, request);
  counter.learn(request.train_samples);
  NgramFigures out;
  const auto length = static_cast<double>(task.language().length());
  std::array<uint64_t, kMaxGram + 1> valid{}, test{};
  const auto add = [](auto& sums, const auto& right) {
    for (size_t n = 0; n < sums.size(); ++n) sums[n] += right[n];
  };
  counter.score(request.valid, 0, request.valid_samples, [&](const auto& right) { add(valid, right); });
  out.n = static_cast<int>(std::max_element(valid.begin() + 1, valid.end()) - valid.begin());
  RunningMean spread;
  counter.score(request.test, request.first_test, request.test_samples, [&](const auto& right) {
    add(test, right);
    spread.add(static_cast<double>(right[static_cast<size_t>(out.n)]) / length);
  });
  const double valid_elements = static_cast<double>(request.valid_samples) * length,
               test_elements = static_cast<double>(request.test_samples) * length;
  out.majority = static_cast<double>(test[0]) / test_elements;
  for (size_t n = 1; n <= kMaxGram; ++n) {
    out.valid[n - 1] = static_cast<double>(valid[n]) / valid_elements;
    out.test[n - 1] = static_cast<double>(test[n]) / test_elements;
  }
  out.stderr_ = spread.error();
  return out;
}

void expect_samples(uint64_t samples, const char* what) {
  if (samples == 0) throw bad_input("baselines", std::string(what) + ", expected at least 1, got 0");
}

}  // namespace

TaskConfig symbols_only(TaskConfig task) {
  task.number = 0;
  task.noise = 0;
  task.objective = Objective::state;
  for (GapConfig* gap : {&task.train, &task.test})
    if (gap->law == GapLaw::none || gap->content == GapContent::blank) *gap = {};
  return task;
}

uint64_t most_counted_samples(const Language& language) {
  const uint64_t bytes = KeyLayout(language).bits() <= 64 ? sizeof(uint64_t) : sizeof(Wide);
  return std::max<uint64_t>(1, kMaxBytes / (bytes * static_cast<uint64_t>(language.length())));
}

NgramFigures count_ngrams(std::shared_ptr<const Language> language, const TaskConfig& config,
                          const NgramRequest& request) {
  expect_samples(request.train_samples, "training samples");
  expect_samples(request.valid_samples, "valid samples");
  expect_samples(request.test_samples, "test samples");
  if (const uint64_t most = most_counted_samples(*language); request.train_samples > most)
    throw bad_input("baselines", "training samples, expected at most " + std::to_string(most) + ", got " +
                                     std::to_string(request.train_samples));
  const KeyLayout layout(*language);
  if (layout.bits() > 128)
    throw bad_input("baselines",
                    "symbols of n-grams, expected at most 65535, got " + std::to_string(language->classes()));
  const GapTask task(std::move(language), symbols_only(config));
  return layout.bits() <= 64 ? figures<uint64_t>(task, request) : figures<Wide>(task, request);
}

}  // namespace sb
