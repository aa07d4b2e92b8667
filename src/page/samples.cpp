#include <algorithm>
#include <cmath>
#include <memory>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "grammar/build.h"
#include "page/dense_sample.h"
#include "page/parts.h"
#include "report/cells.h"
#include "tasks/task_registry.h"

namespace sb {
namespace {

// Maximum number of recorded predictions in all samples; each takes about twenty bytes of the page.
constexpr size_t most_beliefs = 60000;

// Names of states by id.
class StateNames {
 public:
  // Empty if the grammar cannot be rebuilt from the config.
  const std::vector<std::string>& of(const Result& result) {
    std::string key;
    for (const auto& [name, value] : result.config)
      if (name.starts_with("grammar.")) key += name + "=" + value + "\n";
    const auto [at, fresh] = known_.try_emplace(key);
    if (fresh && !result.config.contains("grammar.automaton")) at->second = drawn(result);
    return at->second;
  }

 private:
  static std::vector<std::string> drawn(const Result& result) {
    const auto number = [&](const char* name) -> std::optional<double> {
      const auto found = result.config.find(name);
      return found == result.config.end() ? std::nullopt : parse_finite(found->second);
    };
    const auto whole = [&](const char* name) {
      return static_cast<int>(std::clamp(number(name).value_or(0), 0.0, 1e9));  // too large: rejected below
    };
    GrammarConfig config;
    config.vocab = whole("grammar.vocab");
    config.ambiguities = whole("grammar.ambiguities");
    config.depth = whole("grammar.depth");
    config.density = number("grammar.density").value_or(-1);
    config.start_states = whole("grammar.start_states");
    config.seed = result.grammar_seed;
    std::vector<std::string> out;
    try {
      const auto automaton = build_automaton(config);
      if (automaton->states() != result.states && result.objective == "state") return {};
      out.resize(automaton->names.size());
      for (size_t s = 0; s < out.size(); ++s) out[static_cast<size_t>(automaton->id[s])] = automaton->names[s];
    } catch (const Error&) {  // the config is not valid in this version: shows numbers instead
    }
    return out;
  }
  std::map<std::string, std::vector<std::string>> known_;
};

std::string state_text(const std::vector<std::string>& names, int32_t id) {
  const auto at = static_cast<size_t>(id);
  return id >= 0 && at < names.size() ? names[at] : formatted("state {}", id);
}

// Whether `batch`, which holds one sample, has the length and the states of the recorded sample.
bool is_sample(const SampleRecord& record, const Batch& batch) {
  if (record.length != batch.elements || record.elements.size() > batch.state.size()) return false;
  return std::equal(record.elements.begin(), record.elements.end(), batch.state.begin(),
                    [](const ElementRecord& element, int32_t state) { return element.state == state; });
}

// Norm of the first frame of an element, in at most four characters.
std::string norm_text(const Batch& batch, size_t element) {
  const float* frame = batch.dense.data() + static_cast<size_t>(batch.start[element] * batch.channels);
  double sum = 0;
  for (int c = 0; c < batch.channels; ++c) sum += static_cast<double>(frame[c]) * frame[c];
  return fixed(std::sqrt(sum), sum < 9.995 * 9.995 ? 2 : sum < 99.95 * 99.95 ? 1 : 0);
}

bool same_sample(const SampleRecord& a, const SampleRecord& b) {
  return a.index == b.index && a.length == b.length &&
         std::equal(a.elements.begin(), a.elements.end(), b.elements.begin(), b.elements.end(),
                    [](const ElementRecord& x, const ElementRecord& y) {
                      return x.symbol == y.symbol && x.state == y.state && x.gap_frames == y.gap_frames;
                    });
}

const Result& whole_result(const Outline& outline, size_t run) {
  return outline.source_run(run).read->run->result;
}

// The grammar for which most rows of the column have samples; the first on ties.
std::vector<std::string> common_grammar(const Outline& outline, size_t column) {
  std::map<std::vector<std::string>, size_t> rows;
  for (const size_t index : outline.column_cells[column]) {
    std::map<std::vector<std::string>, bool> has;
    for (const size_t run : outline.rows.cells[index].runs)
      has[grammar_of(outline.rows, run)] |= !whole_result(outline, run).samples.empty();
    for (const auto& [grammar, any] : has) rows[grammar] += any;
  }
  std::vector<std::string> best;
  size_t most = 0;
  for (const auto& [grammar, n] : rows)
    if (n > most) {
      most = n;
      best = grammar;
    }
  return best;
}

}  // namespace

void add_samples(const Outline& outline, PageData& data) {
  StateNames all_names;
  size_t beliefs = 0, left_out = 0;
  for (size_t c = 0; c < outline.columns.size(); ++c) {
    if (!outline.columns[c].own) continue;
    const auto grammar = common_grammar(outline, c);
    std::vector<std::pair<size_t, size_t>> shown;  // series, run
    for (const size_t index : outline.column_cells[c])
      for (const size_t run : outline.rows.cells[index].runs)
        if (grammar_of(outline.rows, run) == grammar && !whole_result(outline, run).samples.empty()) {
          shown.emplace_back(outline.cells[index].series, run);
          break;
        }
    if (shown.empty()) continue;
    const Result& first = whole_result(outline, shown.front().second);
    const bool predict = first.objective == "predict";
    const auto& names = all_names.of(first);
    const auto kind = first.config.find("task.kind");
    const bool other = kind != first.config.end();  // a kind other than gaps: its row has the names
    const TaskRow* row = other ? find_kind(plain_value(kind->second)) : nullptr;
    const auto named = [](std::string (*name)(int), int id) { return name ? name(id) : std::to_string(id); };
    const auto symbol = [&](int id) {
      return id < 0 ? std::string("·") : other ? named(row ? row->symbol_name : nullptr, id) : symbol_name(id);
    };
    const auto answer = [&](int32_t id) {
      if (id < 0) return std::string("–");
      if (other) return named(row ? row->answer_name : nullptr, id);
      return predict ? symbol(id) : state_text(names, id);
    };
    const auto belief = [&](const std::vector<StateShare>& shares) {
      Belief5 out;
      for (const auto& share : shares) out.emplace_back(answer(share.state), share.probability);
      beliefs += out.size();
      return out;
    };
    for (size_t k = 0; k < first.samples.size(); ++k) {
      const SampleRecord& sample = first.samples[k];
      if (beliefs + sample.elements.size() * (shown.size() + 1) * recorded_states > most_beliefs) {
        ++left_out;
        continue;
      }
      PageSample out;
      out.id = formatted("{}-{}", outline.columns[c].id, k);
      out.column = outline.columns[c].id;
      out.title = formatted("{}, {}, test sample {}", outline.columns[c].name,
                            seeds_text(outline.rows, shown.front().second), sample.index);
      out.length = sample.length;
      std::optional<Batch> dense = row ? dense_sample(first, *row, sample.index) : std::nullopt;
      if (dense && !is_sample(sample, *dense)) dense.reset();
      out.dense = dense.has_value();
      for (size_t e = 0; e < sample.elements.size(); ++e) {
        const ElementRecord& element = sample.elements[e];
        SampleElement one;
        one.symbol = dense ? norm_text(*dense, e) : symbol(element.symbol);
        one.paused = dense && dense->gap[static_cast<size_t>(dense->start[e])] != 0;
        one.state = !predict                         ? answer(element.state)
                    : e + 1 < sample.elements.size() ? symbol_name(sample.elements[e + 1].symbol)
                                                     : "–";
        one.gap = element.gap_frames;
        for (const int id : element.gap) one.gap_symbols.push_back(symbol(id));
        out.elements.push_back(std::move(one));
        out.filter.push_back(belief(element.filter));
      }
      for (const auto& [series, run] : shown) {
        const Result& r = whole_result(outline, run);
        if (k >= r.samples.size() || !same_sample(sample, r.samples[k])) continue;
        SampleModel model{outline.series[series].id, outline.keys[run], {}};
        for (const auto& element : r.samples[k].elements) model.beliefs.push_back(belief(element.network));
        out.models.push_back(std::move(model));
      }
      data.samples.push_back(std::move(out));
    }
  }
  if (left_out > 0)
    data.notes.push_back(
        formatted("Try it: {} more samples are in the runs' result.json; the page holds the first ones.", left_out));
}

}  // namespace sb
