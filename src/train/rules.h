// Checks that models and this build add to the resolution of a config.
#pragma once
#include "config/config_file.h"

namespace sb {

// Checks models, switches and sizes: everything that would make building the network fail.
ModelRules model_rules();
// For commands that train: model_rules(), and checks that this build supports the device, that check_dropout() passes
// and that the task can be made, also at every test point.
ModelRules run_rules();
// Throws bad_input if the frames or channels exceed what the dropout generator supports (kernels/dropout_stream.h).
void check_dropout(const RunConfig& config);

}  // namespace sb
