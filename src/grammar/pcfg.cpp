#include "grammar/pcfg.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/format.h"
#include "base/number.h"
#include "random/philox.h"

namespace sb {

Pcfg::Pcfg(const PcfgConfig& config) : config_(config) {
  for (int t = 0; t <= config_.preterminals; ++t) symbols_.push_back(t == 0 ? 0 : 1 + (t - 1) / config_.share);
  rules_.push_back({{.preterminal = 0, .first = kStart, .probability = 1}});
  for (int32_t a = 1; a <= config_.nonterminals; ++a) rules_.push_back(drawn_rules(a));
  for (std::vector<Rule>& rules : rules_) {
    std::vector<uint64_t> below;
    double sum = 0;
    for (const Rule& rule : rules) {
      sum += rule.probability;
      below.push_back(static_cast<uint64_t>(std::floor(sum * 0x1p32 + 0.5)));  // 2^32 at the last rule
    }
    for (size_t k = 0; k < rules.size(); ++k)
      rules[k].probability = static_cast<double>(below[k] - (k == 0 ? 0 : below[k - 1])) * 0x1p-32;
    below_.push_back(std::move(below));
  }
}

std::vector<Pcfg::Rule> Pcfg::drawn_rules(int32_t nonterminal) const {
  const auto each = static_cast<size_t>(config_.rules);
  const PhiloxStream stream(config_.seed, 0, static_cast<uint64_t>(nonterminal), Purpose::signal);
  std::vector<int32_t> deck(static_cast<size_t>(config_.preterminals));
  std::iota(deck.begin(), deck.end(), 1);
  std::vector<Rule> rules(3 * each);
  double total[3] = {};  // of the weights, by number of children
  for (size_t k = 0; k < rules.size(); ++k) {
    const PhiloxBlock words = stream.block(static_cast<uint32_t>(k));
    const auto pick = [&](int word, size_t size) { return static_cast<size_t>(words[word] * uint64_t{size} >> 32); };
    const auto child = [&](int word) {
      return 1 + static_cast<int32_t>(pick(word, static_cast<size_t>(config_.nonterminals)));
    };
    std::swap(deck[k], deck[k + pick(0, deck.size() - k)]);
    rules[k] = {.preterminal = deck[k],
                .first = k >= each ? child(1) : kNoChild,
                .second = k >= 2 * each ? child(2) : kNoChild,
                .probability = 0.25 + unit_double(words[3])};
    total[k / each] += rules[k].probability;
  }
  const double third = config_.branching / 3;
  const double share[3] = {1 - 2 * third, third, third};
  for (size_t k = 0; k < rules.size(); ++k) rules[k].probability *= share[k / each] / total[k / each];
  return rules;
}

std::vector<std::vector<int32_t>> Pcfg::forbidden_classes() const {
  std::vector<std::vector<int32_t>> out;
  for (const std::vector<Rule>& rules : rules_) {
    std::vector<char> allowed(static_cast<size_t>(classes()));
    for (const Rule& rule : rules)
      if (rule.probability > 0) allowed[static_cast<size_t>(symbol(rule.preterminal))] = 1;
    std::vector<int32_t>& forbidden = out.emplace_back();
    for (int32_t c = 1; c < classes(); ++c)
      if (allowed[static_cast<size_t>(c)] == 0) forbidden.push_back(c);
  }
  return out;
}

std::string Pcfg::canonical_text() const {
  return formatted("pcfg\nseed = {}\nnonterminals = {}\npreterminals = {}\nshare = {}\nrules = {}\nbranching = {}\n",
                   config_.seed, config_.nonterminals, config_.preterminals, config_.share, config_.rules,
                   shortest(config_.branching));
}

void Pcfg::draw(Split split, uint64_t index, int length, uint16_t* preterminals, uint16_t* tops) const {
  const PhiloxStream stream(config_.seed, static_cast<uint32_t>(split), index, Purpose::symbol);
  thread_local std::vector<int32_t> stack;  // without its top
  stack.clear();
  PhiloxBlock words{};
  int32_t top = kStart;
  for (int e = 0; e < length; ++e) {
    if (e % 4 == 0) words = stream.block(static_cast<uint32_t>(e) / 4);
    const std::vector<uint64_t>& below = below_[static_cast<size_t>(top)];
    const auto chosen = std::upper_bound(below.begin(), below.end(), uint64_t{words[static_cast<size_t>(e % 4)]});
    const Rule& rule = rules_[static_cast<size_t>(top)][static_cast<size_t>(chosen - below.begin())];
    if (rule.second != kNoChild) stack.push_back(rule.second);
    if (rule.first != kNoChild) {
      top = rule.first;
    } else if (stack.empty()) {
      top = kEnd;
    } else {
      top = stack.back();
      stack.pop_back();
    }
    preterminals[e] = static_cast<uint16_t>(rule.preterminal);
    tops[e] = static_cast<uint16_t>(top);
  }
}

}  // namespace sb
