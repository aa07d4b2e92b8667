// PCFG: sentences of a random context-free grammar in Greibach form. The model names the pre-terminal behind each
// symbol.
//   shown   A  B  A  #  B      pre-terminals 1 to 3 show A, 4 to 6 show B
//   asked   2  5  1  #  4
#include <numeric>

#include "base/error.h"
#include "base/format.h"
#include "grammar/build.h"
#include "grammar/pcfg.h"
#include "tasks/gap_task.h"
#include "tasks/stack_filter.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

class PcfgTask final : public Task {
 public:
  PcfgTask(std::shared_ptr<const Pcfg> grammar, int length, const TaskConfig& gaps)
      : grammar_(std::move(grammar)),
        length_(length),
        config_(gaps),
        gaps_(grammar_->config().seed, grammar_->forbidden_classes(), gaps),
        answers_(grammar_->symbols().size()) {
    std::iota(answers_.begin(), answers_.end(), 0);
  }

  TaskShape shape() const override {
    return {.channels = grammar_->classes(),
            .answers = static_cast<int>(answers_.size()),
            .elements = length_,
            .fixed_frames = shows_wrong() || has_fixed_frames(config_.train)};
  }
  std::string canonical_text() const override {
    return formatted("{}length = {}\n{}", grammar_->canonical_text(), length_, sb::canonical_text(config_));
  }
  std::span<const int32_t> shown() const override { return grammar_->symbols(); }
  int max_frames(Split split) const override {
    return (shows_wrong() ? 1 : 1 + longest_gap(gaps_.law(split))) * length_;
  }
  double mean_frames(Split split) const override {
    return (shows_wrong() ? 1 : mean_element_frames(gaps_.law(split))) * length_;
  }

  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    const auto length = static_cast<size_t>(length_);
    std::vector<uint16_t> preterminals(samples.size() * length), tops(length);
    std::vector<Gaps> gaps(samples.size());
    for (size_t b = 0; b < samples.size(); ++b) {
      grammar_->draw(split, samples[b], length_, preterminals.data() + b * length, tops.data());
      gaps_.draw(split, samples[b], tops.data(), length_, gaps[b]);
    }
    if (shows_wrong()) {
      begin_plain_batch(shape(), split, samples, pad_to, out);
      for (size_t b = 0; b < samples.size(); ++b) lay_frames(preterminals.data() + b * length, gaps[b], out, b);
      return;
    }
    out.split = split;
    out.noise = config_.noise;
    out.seed = grammar_->config().seed;
    out.samples.assign(samples.begin(), samples.end());
    assemble(grammar_->classes(), grammar_->symbols(), answers_, preterminals.data(), length_, gaps.data(),
             static_cast<int>(samples.size()), out, pad_to);
  }
  std::unique_ptr<Oracle> oracle(Split split) const override {
    return std::make_unique<StackFilter>(grammar_, config_, split);
  }
  std::shared_ptr<const Task> at(Split, int length) const override {
    return std::make_shared<const PcfgTask>(grammar_, length, config_);
  }

 private:
  bool shows_wrong() const { return config_.train.content == GapContent::forbidden_symbol; }

  // Lays out a row where every frame is an element: symbols and wrong symbols, which have no answer. The row is cut at
  // its length, so that its number of frames does not tell how many symbols are wrong.
  void lay_frames(const uint16_t* preterminals, const Gaps& gaps, Batch& out, size_t row) const {
    const size_t begin = row * static_cast<size_t>(out.frames), end = begin + static_cast<size_t>(length_);
    int32_t* state = out.state.data() + row * static_cast<size_t>(out.elements);
    auto wrong = gaps.wrong.begin();
    for (size_t t = begin, e = 0; t < end; ++e) {
      out.symbol[t] = static_cast<int16_t>(grammar_->symbol(preterminals[e]));
      out.target[t] = state[t - begin] = preterminals[e];
      ++t;
      for (int i = 0; i < gaps.length[e] && t < end; ++i, ++t) {
        out.symbol[t] = static_cast<int16_t>(*wrong++);
        out.gap[t] = 1;
      }
    }
  }

  std::shared_ptr<const Pcfg> grammar_;
  int length_;
  TaskConfig config_;
  GapProcess gaps_;               // its states are nonterminals on top of the stack
  std::vector<int32_t> answers_;  // [pre-terminals]: their own numbers
};

std::shared_ptr<const Task> make_pcfg(const TaskSetup& setup, const Poll&) {
  const PcfgConfig config{.seed = setup.seed,
                          .nonterminals = setup.integer("nonterminals"),
                          .preterminals = setup.integer("preterminals"),
                          .share = setup.integer("share"),
                          .rules = setup.integer("rules"),
                          .branching = setup.real("branching")};
  setup.expect_at_most("preterminals", "share");
  if (3 * config.rules > config.preterminals)
    throw bad_input("task.rules", formatted("expected at most a third of preterminals ({}), got {}",
                                            config.preterminals, config.rules));
  return std::make_shared<const PcfgTask>(std::make_shared<const Pcfg>(config), setup.length,
                                          paper_task(setup.integer("as_task")));
}

}  // namespace

TaskRow pcfg_row() {
  return {
      .name = "pcfg",
      .about = {"Context-free grammar",
                "A random context-free grammar derives sentences, word by word. Several pre-terminals show the "
                "same symbol. The model names the pre-terminal behind each symbol, for which it has to follow what "
                "the sentence still lacks."},
      .keys = {{"nonterminals", int64_t{8}, 1, 1000, "nonterminals of the grammar"},
               {"preterminals", int64_t{24}, 3, 10000, "pre-terminals, which are the answers"},
               {"share", int64_t{3}, 1, 10000, "pre-terminals per symbol; 1: every symbol shows its pre-terminal"},
               {"rules", int64_t{2}, 1, 1000, "rules of a nonterminal for each number of children: 0, 1 and 2"},
               {"branching", 0.9, 0, 0.99, "mean number of children b; sentences have a mean length of 1 / (1 - b)"},
               as_task_key()},
      .length = 100,
      .length_meaning = "symbols per sample, with wrong ones",
      .axis = TestAxis{"length", "lengths", 1, 100000, "symbols per sample, tested without retraining",
                       "symbols per sample of the test"},
      .make = make_pcfg,
      .symbol_name = [](int symbol) { return symbol == 0 ? "#" : letter_name(symbol - 1); },
      .answer_name = [](int answer) { return answer == 0 ? "#" : std::to_string(answer); },
      .has_grammars = true};
}

}  // namespace sb
