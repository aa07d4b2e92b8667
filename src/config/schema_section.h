// Helper that adds keys to the schema: each with its kind, range, meaning and the field of RunConfig that holds it.
#pragma once
#include <string>
#include <type_traits>
#include <vector>

#include "config/schema.h"

namespace sb {

enum class Ends { closed, above_low, below_high };

// Adds keys of one section. `Access` gives the address of the field, [](auto& c) { return &c.train.batch; }. It is
// stateless, so that get and set are plain functions.
class SchemaSection {
 public:
  using Kind = ConfigKey::Kind;

  // `prefix` begins every key, `whose` ends every meaning.
  SchemaSection(std::vector<ConfigKey>& all, const char* name, const char* prefix = "", const char* whose = "")
      : all_(all), name_(name), prefix_(prefix), whose_(whose) {}

  template <class Access>
  ConfigKey& whole(const char* key, int64_t least, int64_t most, const char* meaning, Access access) {
    ConfigKey& p = plain<int64_t>(key, Kind::whole, meaning, access);
    p.least = least;
    p.most = most;
    return p;
  }

  // An integer key that also accepts "auto", stored as kAutomatic.
  template <class Access>
  void whole_or_auto(const char* key, int64_t least, int64_t most, const char* meaning, Access access) {
    ConfigKey& p = whole(key, least, most, meaning, access);
    p.or_auto = true;
    p.get = [](const RunConfig& c) {
      const auto value = static_cast<int64_t>(*Access{}(c));
      return value == kAutomatic ? ConfigValue(std::string(kAutomaticWord)) : ConfigValue(value);
    };
    p.set = [](RunConfig& c, const ConfigValue& value) {
      const auto* number = std::get_if<int64_t>(&value);
      auto& field = *Access{}(c);
      field = static_cast<std::remove_reference_t<decltype(field)>>(number ? *number : kAutomatic);
    };
  }

  template <class Access>
  void real(const char* key, double low, double high, Ends ends, const char* meaning, Access access) {
    ConfigKey& p = plain<double>(key, Kind::real, meaning, access);
    p.low = low;
    p.high = high;
    p.above_low = ends == Ends::above_low;
    p.below_high = ends == Ends::below_high;
  }

  template <class Access>
  void truth(const char* key, const char* meaning, Access access) {
    plain<bool>(key, Kind::truth, meaning, access);
  }

  template <class Access>
  void text(const char* key, const char* meaning, Access access) {
    plain<std::string>(key, Kind::text, meaning, access);
  }

  // A choice is stored as its index in the list of names, which is the value of the enum.
  template <int count, class Access>
  void choice(const char* key, const char* meaning, Access) {
    using Enum = std::remove_reference_t<decltype(*Access{}(std::declval<RunConfig&>()))>;
    ConfigKey& p = add(key, Kind::choice, meaning);
    for (int i = 0; i < count; ++i) p.choices.emplace_back(to_string(static_cast<Enum>(i)));
    p.get = [](const RunConfig& c) { return ConfigValue(std::string(to_string(*Access{}(c)))); };
    p.set = [](RunConfig& c, const ConfigValue& value) {
      const auto& name = std::get<std::string>(value);
      for (int i = 0; i < count; ++i)
        if (name == to_string(static_cast<Enum>(i))) *Access{}(c) = static_cast<Enum>(i);
    };
  }

  ConfigKey& add(const char* key, Kind kind, const char* meaning) {
    ConfigKey& p = all_.emplace_back();
    p.section = name_;
    p.key = prefix_ + std::string(key);
    p.kind = kind;
    p.meaning = meaning + std::string(whose_);
    return p;
  }

 private:
  template <class Stored, class Access>
  ConfigKey& plain(const char* key, Kind kind, const char* meaning, Access) {
    ConfigKey& p = add(key, kind, meaning);
    p.get = [](const RunConfig& c) { return ConfigValue(static_cast<Stored>(*Access{}(c))); };
    p.set = [](RunConfig& c, const ConfigValue& value) {
      auto& field = *Access{}(c);
      field = static_cast<std::remove_reference_t<decltype(field)>>(std::get<Stored>(value));
    };
    return p;
  }

  std::vector<ConfigKey>& all_;
  const char *name_, *prefix_, *whose_;
};

}  // namespace sb
