// What the models and this build say about a config, for resolving it.
#pragma once
#include "runs/config_file.h"

namespace sb {

// Models, switches and sizes: everything that building the network would refuse.
ModelRules model_rules();
// These, and what a run needs here: a device and precision of this build, sizes that dropout can tell apart, a grammar
// that gives samples. For commands that train.
ModelRules run_rules();
// Throws bad_input where dropout has no stream for so many frames or channels.
void check_dropout(const RunConfig& config);

}  // namespace sb
