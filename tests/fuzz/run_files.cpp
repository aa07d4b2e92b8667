// Checkpoints, config.json and metrics of a run: any bytes, sealed anew where they have room for a seal, give a value
// or one line.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "attempt.h"
#include "store/checkpoint.h"
#include "store/metrics.h"
#include "store/run_check.h"
#include "store/seal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::string sealed = text;
  if (sb::find_seal(sealed) != std::string::npos) sb::seal(sealed);
  attempt([&] {
    const sb::StoredConfig config = sb::parse_stored_config(sealed, "config.json");
    const sb::StoredConfig again = sb::parse_stored_config(sb::stored_config_text(config), "again");
    expect(again.toml == config.toml && again.canonical == config.canonical && again.updates == config.updates);
  });
  attempt([&] {
    sb::CheckpointRules rules;
    rules.tensors = {{"w", "F32", {2}, nullptr}};
    const auto checkpoint = sb::parse_checkpoint(sealed, {5, "checkpoint"}, "id", rules);
    expect(checkpoint.file.at("w").as_doubles().size() == 2);
  });
  attempt([&] {
    const auto rows = sb::parse_metrics(text, "metrics.jsonl");
    expect(sb::parse_metrics(sb::metric_lines(rows), "again").size() == rows.size());
  });
  return 0;
}
