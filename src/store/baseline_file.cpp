#include "store/baseline_file.h"

#include <filesystem>

#include "base/file.h"
#include "base/replace_file.h"
#include "base/sha256.h"
#include "store/result_fields.h"
#include "store/seal.h"

namespace sb {
namespace {

constexpr size_t kMaxBaselinesBytes = size_t{1} << 16;
constexpr int baseline_schema = 1;  // incremented if the file's format or the method of counting changes

}  // namespace

std::string baseline_file(const std::string& root, const std::string& of) {
  return (std::filesystem::path(root) / (".baselines-" + sha256_hex(of).substr(0, 16) + ".json")).string();
}

std::optional<BaselineFigures> load_baselines(const std::string& root, const std::string& of) {
  const std::string path = baseline_file(root, of);
  try {
    const std::string text = read_file(path, kMaxBaselinesBytes);
    if (!is_sealed(text)) return std::nullopt;
    const nlohmann::json parsed = parse_bounded(text, kMaxBaselinesBytes, "baselines", path);
    if (parsed.value("schema", 0) != baseline_schema || parsed.value("of", std::string()) != of) return std::nullopt;
    FieldReader reader(parsed, "baselines", path);
    BaselineFigures out;
    reader.object("baselines", out);
    if (!out.n || *out.n > static_cast<int>(out.n_gram.size())) return std::nullopt;
    return out;
  } catch (const Error&) {
    return std::nullopt;
  } catch (const nlohmann::json::exception&) {  // a member of another type
    return std::nullopt;
  }
}

void save_baselines(const std::string& root, const std::string& of, const BaselineFigures& figures) {
  FieldWriter writer;
  writer.out["schema"] = baseline_schema;
  writer.out["of"] = of;
  writer.object("baselines", figures);
  replace_file(baseline_file(root, of), sealed_json(writer.out.dump(2)));
}

}  // namespace sb
