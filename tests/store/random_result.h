// Results with every field at random, some present, some absent.
#pragma once
#include <random>

#include "store/result.h"

namespace sb::test {

class RandomResult {
 public:
  explicit RandomResult(uint64_t seed) : engine_(seed) {}

  Result make() {
    Result r;
    r.run_id = word();
    r.status = coin() ? "done" : "diverged";
    r.model = word();
    r.task = static_cast<int>(whole(4));
    r.objective = coin() ? "state" : "predict";
    r.precision = word();
    r.device = word();
    for (int64_t i = whole(20); i > 0; --i) r.config[word() + "." + word()] = word();
    r.label = word();
    r.run_seed = engine_();
    r.grammar_seed = engine_();
    r.train_seed = engine_();
    r.width = 1 + whole(1000);
    r.layers = 1 + whole(20);
    for (int64_t i = whole(3); i > 0; --i) r.quirks.push_back(word());
    r.params = whole(int64_t{1} << 50);
    if (coin()) r.state_size = whole(100000);
    r.updates = whole(1 << 30);
    r.samples_seen = whole(1 << 30);
    r.states = 1 + whole(60000);
    r.lr = share();
    r.chance = share();
    if (coin()) r.topological_entropy = 10 * share();
    if (coin()) r.test = measurement();
    if (coin()) r.valid = measurement();
    for (int64_t i = whole(4); i > 0; --i) {
      r.grid.push_back(measurement());
      r.grid.back().at = static_cast<int>(20 * i + whole(10));
    }
    if (coin())  // of an earlier version
      r.baselines = BaselineFigures{share(), share(), {share(), share()}, {}, {}, whole(1000), whole(1000)};
    if (coin()) r.baselines = BaselineFigures{share(), {}, {share(), share()}, 2, share(), whole(1000), whole(1000)};
    if (coin()) r.gates = gates();
    for (int64_t i = whole(3); i > 0; --i)
      r.decays.push_back({static_cast<int>(whole(9)), {share(), share(), share()}});
    for (int64_t i = whole(3); i > 0; --i) r.samples.push_back(sample());
    if (coin()) r.divergence = DivergenceFigure{whole(100), whole(9) - 1, word()};
    if (coin()) r.made = made();
    for (int64_t i = whole(3); i > 0; --i) r.files[word()] = word();
    return r;
  }

  Measurement measurement() {
    Measurement m;
    m.split = "test";
    if (coin()) m.at = static_cast<int>(whole(1000));
    m.samples = 1 + whole(1000);
    m.elements = whole(1000000);
    m.frames = whole(1000000);
    m.accuracy = share();
    m.stderr_ = share();
    m.loss = 8 * share();
    if (coin()) m.kl = share() - 0.5;
    if (coin())
      m.ceiling = CeilingFigure{share(), share(),      share(), coin() ? std::optional(share()) : std::nullopt,
                                coin(),  1 + whole(99)};
    for (int64_t i = whole(9); i > 0; --i) m.by_position.push_back(coin() ? std::optional(share()) : std::nullopt);
    for (auto* bins : {&m.by_gap_frame, &m.by_since_certain, &m.by_entropy}) {
      for (int64_t i = whole(3); i > 0; --i) bins->push_back({9 * share(), share(), 1 + whole(9)});
    }
    for (int64_t i = whole(3); i > 0; --i)
      m.confusion.push_back({static_cast<int>(whole(9)), whole(9), whole(9), whole(9)});
    return m;
  }

  GateFigures gates() {
    GateFigures g;
    for (int64_t i = whole(4); i > 0; --i) {
      GateFigure& f =
          g.gates.emplace_back(GateFigure{static_cast<int>(whole(9)), word(), -share(), 1 + share(), coin(), {}, {}});
      for (auto* c : {&f.data, &f.gap}) {
        if (coin()) continue;
        c->counts = {whole(9), whole(9), 1};
        c->total = c->counts[0] + c->counts[1] + 1;
        c->mean = share();
      }
    }
    if (coin()) g.write_selectivity = share() - 0.5;
    if (coin()) g.forget_selectivity = share() - 0.5;
    return g;
  }

  Provenance made() {
    Provenance p;
    for (auto* text : {&p.version, &p.commit, &p.compiler, &p.libtorch, &p.blas, &p.instructions, &p.device, &p.host}) {
      *text = word();
    }
    if (coin()) p.precision = "amp";
    p.threads = static_cast<int>(whole(64));
    if (coin()) p.accumulate = 1 + static_cast<int64_t>(whole(64));
    if (coin()) p.world = 1 + static_cast<int64_t>(whole(64));
    if (coin()) p.train_seconds = 1e4 * share();
    if (coin()) p.total_seconds = 1e4 * share();
    if (coin()) p.tokens_per_second = 1e6 * share();
    if (coin()) p.shared_by = 1 + static_cast<int64_t>(whole(8));
    p.finished = "2026-01-31T12:00:00Z";
    return p;
  }

 private:
  SampleRecord sample() {
    SampleRecord s{whole(99), 20, {}};
    for (int64_t i = whole(4); i > 0; --i) {
      ElementRecord& e = s.elements.emplace_back();
      e.symbol = static_cast<int>(whole(40));
      e.state = static_cast<int32_t>(whole(1600));
      e.gap_frames = whole(99);
      for (int64_t k = whole(3); k > 0; --k) e.gap.push_back(static_cast<int>(whole(40)) - 1);
      for (int64_t k = whole(5); k > 0; --k) e.network.push_back({static_cast<int32_t>(whole(9)), share()});
      for (int64_t k = whole(5); k > 0; --k) e.filter.push_back({static_cast<int32_t>(whole(9)), share()});
    }
    return s;
  }
  bool coin() { return engine_() & 1; }
  int64_t whole(int64_t most) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(most + 1)); }
  double share() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  std::string word() {
    static const std::string letters = "abc xyz_019\"\\\n\t\x7f/é";
    std::string out;
    for (int64_t i = 1 + whole(7); i > 0; --i) out += letters[static_cast<size_t>(whole(14))];
    return coin() ? out + "é" : out;
  }

  std::mt19937_64 engine_;
};

}  // namespace sb::test
