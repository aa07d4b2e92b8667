#include "train/run_result.h"

#include "base/clock.h"
#include "config/schema.h"
#include "store/result_parts.h"
#include "train/gpu.h"
#include "train/provenance.h"

namespace sb {
namespace {

// The quirks that have an effect. Runs that differ only in other quirks have the same id and result.
Quirks acting_quirks(const RunContext& run) {
  RunConfig acting = run.config;
  for (const auto& name : idle_keys(run.config)) {
    if (name.starts_with("quirks.")) find_config_key(name)->set(acting, false);
  }
  acting.quirks.delta_bf16 = keeps_bf16(run.config);
  return acting.quirks;
}

}  // namespace

Result result_of(const RunContext& run, const char* status) {
  const Network& network = run.trainer.network();
  const RunConfig& config = run.config;
  Result out = result_header(run.resolved, run.data, run.done);
  out.status = status;
  const bool whole_bf16 = config.train.precision == Precision::amp && keeps_bf16(config);
  if (whole_bf16) out.precision = "bf16";  // what ran
  out.quirks = quirk_names(acting_quirks(run));
  out.params = network.parameters().count();
  const Taxonomy row = network.mixer(0).taxonomy();
  if (row.action != Taxonomy::Action::cache && row.action != Taxonomy::Action::unknown) {
    out.state_size = row.state_elements;
  }
  out.chance = 1.0 / static_cast<double>(network.config().outputs);
  return out;
}

Provenance made_by(const RunContext& run) {
  const Spent all = run.spent_so_far();
  Provenance out = provenance();
  if (!run.trainer.device().is_cpu()) out.device = gpu_facts().name;
  out.accumulate = run.trainer.micro_batches_asked();
  out.world = run.group == nullptr ? 1 : run.group->size();
  out.train_seconds = all.train_seconds;
  out.total_seconds = all.total_seconds;
  if (all.train_seconds > 0) out.tokens_per_second = all.frames / all.train_seconds;
  out.shared_by = run.hooks.shared_by;
  out.finished = utc_now();
  return out;
}

}  // namespace sb
