#include "store/result.h"

#include <set>

#include "base/json.h"
#include "base/number.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/result_fields.h"

namespace sb {

void describe(auto& f, Described<StateShare> auto& v) {
  f.whole("state", v.state, 0, 65535);
  f.real("p", v.probability, 0, 1);
}

void describe(auto& f, Described<ElementRecord> auto& v) {
  f.whole("symbol", v.symbol, -1, 65535);
  f.whole("state", v.state, -1, 65535);
  f.whole("gap_frames", v.gap_frames, 0, 100000);
  f.numbers("gap", v.gap, -1, 65535, recorded_gap);
  f.objects("network", v.network, recorded_states);
  f.objects("filter", v.filter, recorded_states);
}

void describe(auto& f, Described<SampleRecord> auto& v) {
  f.whole("index", v.index, 0, most_count);
  f.whole("length", v.length, 0, most_count);
  f.objects("elements", v.elements, recorded_elements);
}

void describe(auto& f, Described<DivergenceFigure> auto& v) {
  f.whole("update", v.update, 0, most_count);
  f.whole("layer", v.layer, -1, 65535);
  f.text("tensor", v.tensor);
}

void describe(auto& f, Described<Result> auto& v) {
  f.text("run_id", v.run_id, 64);
  f.text("status", v.status, 16);
  f.text("model", v.model);
  f.whole("task", v.task, 0, 1000);
  f.text("objective", v.objective, 64);
  f.text("precision", v.precision, 64);
  f.text("device", v.device, 64);
  f.texts("config", v.config, 4096);
  f.text("label", v.label);
  f.seed("run_seed", v.run_seed);
  f.seed("grammar_seed", v.grammar_seed);
  f.seed("train_seed", v.train_seed);
  f.whole("width", v.width, 1, most_count);
  f.whole("layers", v.layers, 1, 65536);
  f.texts("quirks", v.quirks, 64);
  f.whole("params", v.params, 0, most_count);
  f.whole("state_size", v.state_size, 0, most_count);
  f.whole("updates", v.updates, 0, most_count);
  f.whole("samples_seen", v.samples_seen, 0, most_count);
  f.whole("states", v.states, 1, 65536);
  f.real("lr", v.lr, 0, any_real);
  f.real("chance", v.chance, 0, 1);
  f.real("topological_entropy", v.topological_entropy, -1e6, 1e6);
  f.object("test", v.test);
  f.object("valid", v.valid);
  f.object("published_test", v.published_test);
  f.objects("grid", v.grid, 4096);
  f.object("baselines", v.baselines);
  f.object("gates", v.gates);
  f.objects("decays", v.decays, 4096);
  f.objects("samples", v.samples, 16);
  f.object("divergence", v.divergence);
  f.object("made", v.made);
  f.texts("files", v.files, 64);
}

namespace {

// Writes each member on its own line, also those of short objects; lists and deeper objects in one line.
std::string laid_out(const Json& object) {
  std::string out = "{";
  const auto plain = [](const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); };
  for (const auto& [key, value] : object.items()) {
    out += (out.size() == 1 ? "\n  " : ",\n  ") + json_quoted(key) + ": ";
    if (key != "config" && key != "made" && key != "files") {
      out += plain(value);
      continue;
    }
    std::string inner = "{";
    for (const auto& [name, item] : value.items()) {
      inner += (inner.size() == 1 ? "\n    " : ",\n    ") + json_quoted(name) + ": " + plain(item);
    }
    out += inner + (inner.size() == 1 ? "}" : "\n  }");
  }
  return out + "\n}\n";
}

std::string canonical_text(const nlohmann::json& value) {
  if (value.is_number_float()) return shortest(value.get<double>());
  if (value.is_string()) return json_quoted(value.get_ref<const std::string&>());
  return value.dump();
}

void check_parts(const Result& result, const FieldReader& reader, const nlohmann::json& parsed) {
  if (result.status != "done" && result.status != "diverged") {
    reader.refuse("status", "done or diverged", &parsed["status"]);
  }
  std::set<std::optional<int>> gaps;
  for (const auto& point : result.grid) {
    const nlohmann::json twice = (point.at ? std::to_string(*point.at) : "none") + " twice";
    if (!gaps.insert(point.at).second) reader.refuse("grid", "every gap once", &twice);
  }
  if (result.baselines && result.baselines->n &&
      *result.baselines->n > static_cast<int>(result.baselines->n_gram.size()))
    reader.refuse("baselines", "n among n_gram", nullptr);
  const auto sums = [&](const GateCounts& c) {
    int64_t sum = 0;
    for (const int64_t n : c.counts) sum += n;
    return sum == c.total;
  };
  if (!result.gates) return;
  for (const auto& gate : result.gates->gates) {
    if (!sums(gate.data) || !sums(gate.gap)) reader.refuse("gates", "counts that add up to total", nullptr);
    if (!(gate.low < gate.high)) reader.refuse("gates", "low below high", nullptr);
  }
}

}  // namespace

std::string task_name(const Result& result) {
  const auto kind = result.config.find("task.kind");
  if (kind == result.config.end()) return std::to_string(result.task);
  const auto parsed = nlohmann::json::parse(kind->second, nullptr, false);
  return printable(parsed.is_string() ? parsed.get<std::string>() : kind->second, 64);
}

std::string contradiction_in(const Result& result) {
  const std::pair<const char*, std::string> copies[] = {
      {"model.name", json_quoted(result.model)},
      {"model.width", std::to_string(result.width)},
      {"model.layers", std::to_string(result.layers)},
      {"task.number", std::to_string(result.task)},
      {"grammar.seed", std::to_string(result.grammar_seed)},
      {"train.seed", std::to_string(result.train_seed)},
      {"train.lr", shortest(result.lr)},
      {"train.updates", std::to_string(result.updates)},
  };
  const bool diverged = result.status == "diverged";
  for (const auto& [key, value] : copies) {
    const auto own = result.config.find(key);
    if (own == result.config.end() || own->second == value) continue;
    if (diverged && std::string_view(key) == "train.updates" && result.updates <= parse_integer(own->second)) continue;
    return std::string(key) + ": expected " + printable(own->second) + " as in its config, got " + printable(value);
  }
  if (diverged != result.divergence.has_value())
    return diverged ? "expected a divergence, since its status is diverged, got none"
                    : "expected no divergence, since its status is " + printable(result.status) + ", got one";
  return "";
}

Json to_json(const Result& result) {
  FieldWriter writer;
  writer.out["schema"] = result_schema;
  describe(writer, result);
  return std::move(writer.out);
}

Result parse_result(std::string_view text, const std::string& file) {
  const nlohmann::json parsed = parse_bounded(text, kMaxResultBytes, "result", file);
  FieldReader reader(parsed, "result", file);
  const auto schema = parsed.find("schema");
  if (schema == parsed.end() && !(parsed.contains("run_id") && parsed.contains("status"))) {
    reader.refuse("schema", std::to_string(result_schema), nullptr);
  }
  if (schema != parsed.end() && (!schema->is_number_unsigned() || *schema == 0)) {
    reader.refuse("schema", "a number from 1 on", &*schema);
  }
  const auto number = schema == parsed.end() ? uint64_t{1} : schema->get<uint64_t>();
  if (number != result_schema) {
    throw OtherSchema(static_cast<int64_t>(std::min<uint64_t>(number, INT64_MAX)), result_schema,
                      "[result] schema " + std::to_string(number) + ", this program reads " +
                          std::to_string(result_schema) + ", " + printable(file, 400));
  }
  Result result;
  describe(reader, result);
  check_parts(result, reader, parsed);
  return result;
}

std::string comparable_text(const Result& result) {
  Json json = to_json(result);
  json.erase("made");
  return laid_out(json);
}

std::string result_text(const Result& result) {
  Json json = to_json(result);
  json["numbers_sha256"] = sha256_hex(comparable_text(result));
  return laid_out(json);
}

std::string packed_result_text(const Result& result) {
  Result small = result;
  small.samples.clear();
  Json json = to_json(small);
  json["numbers_sha256"] = sha256_hex(comparable_text(small));
  json["whole_sha256"] = sha256_hex(comparable_text(result));
  return laid_out(json);
}

std::map<std::string, std::string> config_map(const std::string& canonical) {
  std::map<std::string, std::string> out;
  const auto parsed = parse_bounded(canonical, kMaxResultBytes, "config", "the canonical config");
  for (const auto& [section, value] : parsed.items()) {
    if (!value.is_object()) {
      out[section] = canonical_text(value);
      continue;
    }
    for (const auto& [key, item] : value.items()) out[section + "." + key] = canonical_text(item);
  }
  return out;
}

}  // namespace sb
