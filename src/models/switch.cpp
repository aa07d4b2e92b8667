#include "models/switch.h"

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/text.h"

namespace sb {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

}  // namespace

std::string switch_text(const SwitchValue& value) {
  return std::visit(Overloaded{[](bool v) { return std::string(v ? "on" : "off"); },
                               [](int64_t v) { return std::to_string(v); }, [](double v) { return shortest(v); }},
                    value);
}

std::string Switch::name() const {
  return std::visit([](const auto& of) { return std::string(of.name); }, of_);
}

std::string Switch::meaning() const {
  return std::visit([](const auto& of) { return std::string(of.meaning); }, of_);
}

std::string Switch::range() const {
  return std::visit(Overloaded{[](const TruthSwitch&) { return std::string("on or off"); },
                               [](const IntegerSwitch& of) {
                                 return of.range ? std::string(of.range)
                                                 : formatted("an integer in {}..{}", of.low, of.high);
                               },
                               [](const NumberSwitch& of) { return std::string(of.range); }},
                    of_);
}

SwitchValue Switch::initial() const {
  return std::visit([](const auto& of) { return SwitchValue(of.initial); }, of_);
}

std::string Switch::initial_text() const {
  return takes(initial()) ? switch_text(initial()) : "unset";
}

bool Switch::takes(const SwitchValue& value) const {
  return std::visit(
      Overloaded{
          [](const TruthSwitch&, bool) { return true; },
          [](const IntegerSwitch& of, int64_t v) { return v >= of.low && v <= of.high && (!of.valid || of.valid(v)); },
          [](const NumberSwitch& of, double v) { return of.valid(v); }, [](const auto&, const auto&) { return false; }},
      of_, value);
}

std::optional<SwitchValue> Switch::read(const std::string& text) const {
  const auto any = [](const auto& parsed) { return parsed ? std::optional<SwitchValue>(*parsed) : std::nullopt; };
  return std::visit(Overloaded{[&](const TruthSwitch&) -> std::optional<SwitchValue> {
                                 if (text == "on" || text == "true" || text == "1") return true;
                                 if (text == "off" || text == "false" || text == "0") return false;
                                 return std::nullopt;
                               },
                               [&](const IntegerSwitch&) { return any(parse_integer(text)); },
                               [&](const NumberSwitch&) { return any(parse_finite(text)); }},
                    of_);
}

bool Switch::accepts(const std::string& text) const {
  const auto value = read(text);
  return value && takes(*value);
}

SwitchValue Switch::parse(const std::string& text) const {
  const auto value = read(text);
  if (!value || !takes(*value))
    throw bad_input("model." + name(), formatted("expected {}, got '{}'", range(), printable(text)));
  return *value;
}

}  // namespace sb
