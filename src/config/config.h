// The resolved config of one run: everything that can change a number. Plain values; config_file.h reads them from
// TOML.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/residual.h"
#include "grammar/automaton.h"
#include "grammar/sampler.h"
#include "tasks/task_registry.h"

namespace sb {

enum class Precision { fp64, fp32, tf32, amp };
constexpr int kAutomatic = 0;                    // "auto": a number that the program chooses
enum class DeviceKind { cpu, cuda, automatic };  // automatic: only before the config is resolved

// The file of an automaton, read once, so that the digest, the copy in the run folder and the training use the same
// bytes.
struct AutomatonFile {
  std::string text;
  std::string sha256;
  Automaton automaton;
};

struct GrammarSection {
  GrammarConfig build;
  std::string automaton;                      // path of a JSON automaton; empty: build one
  std::shared_ptr<const AutomatonFile> file;  // its content when the config was resolved
};

struct TaskSection {
  std::string kind = kGapsKind;
  std::map<std::string, TaskValue> keys;  // of kinds other than `gaps`: their own keys
  TaskFiles files;                        // content of the keys that name files
  TaskConfig task;                        // of `gaps`
  int length = 200;                       // elements per sample
  Stream stream = Stream::reference;
};

// "1" for a task of the paper, else the kind: how tables and messages call the task.
inline std::string task_name(const TaskSection& task) {
  return task.kind == kGapsKind ? std::to_string(task.task.number) : task.kind;
}

struct ModelSection {
  std::string name = "gated_delta_net";
  int width = 256;
  int layers = 8;
  double dropout = 0;
  Residual residual = Residual::post;
  // Further parameters of the mixer (heads, d_state, expand_k, a_min, …), checked by the models module.
  std::map<std::string, std::string> switches;
};

// A numeric key of [task], without its section, that starts at `from` and moves linearly to its configured value during
// the first `over` of the updates, a share.
struct ScheduledKey {
  std::string key;
  double from = 0, over = 1;
  bool operator==(const ScheduledKey&) const = default;
};
using TaskSchedule = std::vector<ScheduledKey>;  // sorted by key

struct TrainSection {
  int64_t updates = 3125;
  int batch = 64;
  int accumulate = kAutomatic;  // micro-batches per update; batch % accumulate == 0
  double lr = 1e-3;
  int64_t warmup = 476;  // updates
  double clip = 1;       // global L2 norm; 0: off
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;       // decoupled
  int64_t dropout_until = 3125;  // dropout acts in the updates before this one
  uint64_t seed = 1;             // initialisation and dropout
  uint64_t order_seed = 0;       // order of the training samples; 0: in index order
  Precision precision = Precision::fp32;
  DeviceKind device = DeviceKind::automatic;
  TaskSchedule schedule;     // empty: every update trains on the configured task
  int position_stretch = 1;  // maximum range of random positions / frames of a training sample; 1: 0, 1, …
};

struct EvalSection {
  int64_t every = 78;  // updates between evaluations on valid; 0: only at the end
  int valid_samples = 1000;
  int test_samples = 1000;
  int batch = 50;
  std::vector<int> points;  // of the task's test axis (gap lengths), tested without retraining
  int grid_samples = 1000;  // samples per grid point
  int chunk = 1024;         // frames per forward pass of an evaluation
  int ceiling_samples = 1000;
};

// Errors of the published code that can be reproduced; each is off by default.
struct Quirks {
  bool delta_bf16 = false;       // DeltaNet family: weights, gradients and Adam state kept in bfloat16
  bool padding_correct = false;  // elements that are only padding count as right
  bool sum_accumulated = false;  // micro-batch losses summed instead of averaged
  bool first_lr_zero = false;    // update 0 has learning rate 0
  bool select_on_test = false;   // periodic evaluation and selection use the test set
};

// Which defaults apply to keys that a config does not set (config/protocol.h).
enum class Protocol { corrected, published };

struct RunSection {
  Protocol protocol = Protocol::corrected;
  uint64_t seed = 1;             // default of grammar.seed and train.seed
  int64_t checkpoint_every = 0;  // updates; 0: at evaluations only
  std::string label;             // a word for tables; changes no number
};

struct RunConfig {
  GrammarSection grammar;
  TaskSection task;
  ModelSection model;
  TrainSection train;
  EvalSection eval;
  Quirks quirks;
  RunSection run;
};

}  // namespace sb
