// What the models and this build say about a config, for resolving it.
#pragma once
#include "runs/config_file.h"

namespace sb {

// Models, switches and sizes: everything that building the network would refuse.
ModelRules model_rules();
// These, and what a run needs here: a device and precision of this build, a grammar that gives samples. For commands
// that train.
ModelRules run_rules();

}  // namespace sb
