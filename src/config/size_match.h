// Matching networks of a suite to a size: the request and the result.
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
const char* in_words(MatchedSize size);  // "parameters", "state elements per layer", "FLOPs per token"

constexpr double kLeastMatch = 1, kMaxMatch = 1e15;
constexpr int kMaxMatchStep = 1024;
// Maximum relative difference between a matched network and its target.
constexpr double kMatchTolerance = 0.1;

struct SizeMatch {
  MatchedSize by = MatchedSize::params;
  double target = 0;
  int step = 1;  // widths are multiples of this
};

struct SizeFound {
  int64_t width = 0;
  std::optional<int64_t> d_state;  // if it was solved for too
  double size = 0;
};

// Why the nearest network is no match, in words; empty if it is a match. `nearest` is nullopt if no width has such a
// size.
std::string size_fault(const SizeMatch& asked, const std::optional<SizeFound>& nearest);

// The match of one network of a suite.
struct MatchedNetwork {
  std::string model;
  int64_t width = 0;
  MatchedSize by = MatchedSize::params;
  double target = 0, size = 0;
  auto operator<=>(const MatchedNetwork&) const = default;
};

// One sentence per size and target: "parameters matched to 4,700,000: 0.980 (gated_delta_product) to 1.010 (delta_net)
// of it".
std::vector<std::string> match_lines(const std::vector<MatchedNetwork>& networks);

}  // namespace sb
