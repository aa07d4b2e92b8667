#include <ATen/Parallel.h>

#include <memory>

#include "base/json.h"
#include "base/number.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/training.h"
#include "train/gpu.h"
#include "train/provenance.h"
#include "train/ranks/process_group.h"

namespace sb::cli {
namespace doctor_command {

struct Options {
  std::string json;
};

std::string ranks() {
  std::string out = group_backend(false).empty()
                        ? "on CPUs 1 per run: built without libgloo-dev, or with a libtorch without gloo"
                        : "several per run on CPUs (" + group_backend(false) + "; docs/ranks.md)";
  if (!group_backend(true).empty())
    out += "; on GPUs several (" + group_backend(true) + ", untested beyond one rank)";
  else if (gpu_facts().built)
    out += "; on GPUs 1 per run: " + world_fault(true);
  return out;
}

std::string as_text(const Provenance& made, const GpuFacts& gpu) {
  std::string out;
  const auto line = [&](const std::string& name, const std::string& value) {
    out += name + std::string(name.size() < 12 ? 12 - name.size() : 1, ' ') + value + "\n";
  };
  line("version", made.version + ", commit " + made.commit);
  line("compiler", made.compiler);
  line("libtorch", made.libtorch);
  line("BLAS", made.blas);
  line("processor", made.instructions);
  line("threads", std::to_string(made.threads));
  if (gpu.missing.empty()) {
    line("GPU", gpu.name + ", " + bytes_text(static_cast<double>(gpu.bytes)) + ", compute capability " + gpu.compute);
    line("driver", "supports CUDA " + gpu.driver + "; this build runs with " + gpu.runtime);
    line("precisions", "cpu: fp32, fp64; cuda: amp, tf32, fp32, fp64");
  } else {
    line("GPU", "none: " + gpu.missing);
    line("precisions", "cpu: fp32, fp64");
  }
  if (gpu.built) {
    line("GPU code", "compiled for the architectures " + gpu.kernels + "; tested only on 90a (Hopper)");
  }
  line("ranks", ranks());
  line("device", std::string("auto is ") + (gpu.missing.empty() ? "cuda" : "cpu"));
  return out;
}

std::string as_json(const Provenance& made, const GpuFacts& gpu) {
  Json out = {{"version", made.version},
              {"commit", made.commit},
              {"compiler", made.compiler},
              {"libtorch", made.libtorch},
              {"blas", made.blas},
              {"instructions", made.instructions},
              {"threads", made.threads},
              {"built_for_gpu", gpu.built},
              {"gpu_code", gpu.kernels},
              {"gpu", nullptr},
              {"missing", nullptr},
              {"ranks", group_backend(false)},
              {"ranks_on_gpus", group_backend(true)}};
  if (gpu.missing.empty())
    out["gpu"] = {{"name", gpu.name},
                  {"bytes", gpu.bytes},
                  {"compute", gpu.compute},
                  {"driver", gpu.driver},
                  {"runtime", gpu.runtime}};
  else
    out["missing"] = gpu.missing;
  return out.dump(2) + "\n";
}

Exit run(const Options& options) {
  use_threads(0);  // as a run does
  const Provenance made = provenance();
  const GpuFacts& gpu = gpu_facts();
  deliver_both(options.json, as_json(made, gpu), as_text(made, gpu));
  return Exit::done;
}

}  // namespace doctor_command

void add_doctor(Program& program) {
  using namespace doctor_command;
  auto options = std::make_shared<Options>();
  Arguments& arguments =
      program.command("doctor", "Show what this build and machine support, and how to enable the rest",
                      {"selectivbench doctor"}, [options] { return run(*options); });
  arguments.text("--json", options->json, "FILE", "Write the result as JSON, - for standard output");
}

}  // namespace sb::cli
