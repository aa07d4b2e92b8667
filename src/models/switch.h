// Switches: the settings of a mixer. Each is declared once as a constant with its name, valid values and meaning. A
// model's registry row lists its switches, its mixer reads them with options[the_switch], and configs set them by name.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace sb {

struct TruthSwitch {
  using Value = bool;
  const char* name;
  bool initial;
  const char* meaning;

  constexpr TruthSwitch initially(bool value) const { return {name, value, meaning}; }
};

struct IntegerSwitch {
  using Value = int64_t;
  const char* name;
  int64_t initial;  // a value outside low..high means "unset": the network chooses
  int64_t low, high;
  const char* meaning;
  // If only some values in low..high are valid: these values in words, and as a predicate.
  const char* range = nullptr;
  bool (*valid)(int64_t) = nullptr;

  constexpr IntegerSwitch initially(int64_t value) const { return {name, value, low, high, meaning, range, valid}; }
};

struct NumberSwitch {
  using Value = double;
  const char* name;
  double initial;
  const char* range;  // in words
  bool (*valid)(double);
  const char* meaning;

  constexpr NumberSwitch initially(double value) const { return {name, value, range, valid, meaning}; }
};

using SwitchValue = std::variant<bool, int64_t, double>;
std::string switch_text(const SwitchValue& value);  // canonical text: equal values give equal text

// A switch of any of the three types.
class Switch {
 public:
  Switch(const TruthSwitch& of) : of_(of) {}
  Switch(const IntegerSwitch& of) : of_(of) {}
  Switch(const NumberSwitch& of) : of_(of) {}

  std::string name() const;
  std::string meaning() const;
  std::string range() const;  // "on or off", "an integer in 1..16", …
  SwitchValue initial() const;
  std::string initial_text() const;  // "unset" if the network chooses
  bool takes(const SwitchValue& value) const;
  bool accepts(const std::string& text) const;  // whether parse() succeeds
  // Throws "[model.NAME] expected RANGE, got 'TEXT'".
  SwitchValue parse(const std::string& text) const;

 private:
  std::optional<SwitchValue> read(const std::string& text) const;
  std::variant<TruthSwitch, IntegerSwitch, NumberSwitch> of_;
};

// Switches that several models share.
namespace switches {

inline constexpr bool is_expansion(double v) {
  return v > 0 && v <= 16;
}

inline constexpr IntegerSwitch heads{
    "heads", 0, 1, 4096,
    "number of heads; unset: 4 up to width 512, above that a power of two with at most 128 channels per head"};
inline constexpr IntegerSwitch d_state{"d_state", 128, 1, 4096, "state size per channel"};
inline constexpr NumberSwitch expand_k{"expand_k", 1, "a number in (0, 16]", is_expansion,
                                       "total key width, as a multiple of the model width"};
inline constexpr NumberSwitch expand_v{"expand_v", 2, "a number in (0, 16]", is_expansion,
                                       "total value width, as a multiple of the model width"};
inline constexpr TruthSwitch complementary{"complementary", true, "one gate controls both decay and write"};
inline constexpr TruthSwitch short_conv{"short_conv", true, "a causal convolution over 4 frames before the recurrence"};
inline constexpr TruthSwitch output_gate{"output_gate", true,
                                         "the output is multiplied by silu of a projection of the input"};
inline constexpr NumberSwitch a_min{
    "a_min", 0, "a number in [0, 1)", [](double v) { return v >= 0 && v < 1; },
    "lower bound of the decay factor a: a_min + (1 - a_min) a; in mamba and gru max(a_min, a)"};
inline constexpr IntegerSwitch mlp{
    "mlp", 0, 0, 4, "expansion of the MLP after the mixer; 0: none", "0, 1, 2 or 4", [](int64_t v) { return v != 3; }};
inline constexpr NumberSwitch rope_base{
    "rope_base", 10000, "a number > 1", [](double v) { return v > 1; },
    "base of the rotary positions (RoPE theta): the longest wavelength is near 2 pi times it, in frames"};

}  // namespace switches

}  // namespace sb
