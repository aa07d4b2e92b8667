// A size that every network of a suite is brought to: what is asked for, and what came of it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sb {

enum class MatchedSize { params, state, flops };
const std::vector<std::string>& matched_size_names();  // as files spell them
std::optional<MatchedSize> parse_matched_size(std::string_view name);
const char* to_string(MatchedSize size);
const char* in_words(MatchedSize size);  // "parameters", "state elements a layer", "FLOPs a token"

constexpr double kLeastMatch = 1, kMostMatch = 1e15;
constexpr int kMostMatchStep = 1024;
// A network further from its target than this share of it is no match.
constexpr double kMatchTolerance = 0.1;

struct SizeMatch {
  MatchedSize by = MatchedSize::params;
  double target = 0;
  int step = 1;  // widths are multiples of it
};

struct SizeFound {
  int64_t width = 0;
  std::optional<int64_t> d_state;  // where it was solved too
  double size = 0;
};

// Why the nearest network is no match, in words; empty: it is one. Nothing was found where no width has such a size.
std::string size_fault(const SizeMatch& asked, const std::optional<SizeFound>& nearest);

// Of one network of a suite.
struct MatchedNetwork {
  std::string model;
  int64_t width = 0;
  MatchedSize by = MatchedSize::params;
  double target = 0, size = 0;
  auto operator<=>(const MatchedNetwork&) const = default;
};

// A sentence a size and target: "parameters matched to 4,700,000: 0.980 (gated_delta_product) to 1.010 (delta_net) of
// it".
std::vector<std::string> match_lines(const std::vector<MatchedNetwork>& networks);

}  // namespace sb
