// The bytes that a few tiny runs end in, per config_format, instruction set, compiler and libtorch. A change of numbers
// without a new config_format would mix runs of both under one id: it fails here. Where nothing is recorded the tests
// are skipped. SELECTIVBENCH_RECORD=1 pinned_test prints the lines to add to pinned.inc.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <iostream>
#include <map>

#include "../base/temporary_folder.h"
#include "base/format.h"
#include "base/sha256.h"
#include "base/version.h"
#include "small_run.h"
#include "train/provenance.h"

namespace sb {
namespace {

struct Pinned {
  const char *machine, *run, *digest;
};
const std::vector<Pinned>& recorded() {
  static const std::vector<Pinned> all = {
#include "pinned.inc"
  };
  return all;
}

const std::map<std::string, std::vector<std::string>>& runs() {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"gated_delta_net", {"model.name=gated_delta_net"}},
      {"delta_net, no dropout", {"model.name=delta_net", "model.dropout=0"}},
      {"gated_delta_product, accumulate 2", {"model.name=gated_delta_product", "train.accumulate=2"}},
      {"mamba, predict, no dropout", {"model.name=mamba", "task.objective=predict", "model.dropout=0"}},
      {"mamba2, task 2, no dropout", {"model.name=mamba2", "task.number=2", "model.dropout=0"}},
      {"gla, order 3", {"model.name=gla", "train.order_seed=3"}},
      {"transformer, task 2, accumulate 2",
       {"model.name=transformer", "model.residual=post", "task.number=2", "train.accumulate=2"}},
      {"s4", {"model.name=s4"}},
      {"gru, fp64", {"model.name=gru", "train.precision=fp64"}},
      {"retnet, task 3", {"model.name=retnet", "task.number=3", "task.length=60"}},
  };
  return all;
}

std::string up_to(const std::string& version, int dots) {
  size_t end = 0;
  for (; end < version.size(); ++end)
    if (version[end] == '.' && dots-- == 0) break;
  return version.substr(0, end);
}

// "format 3, x86_64 avx512bw, GNU 12, libtorch 1.13"
std::string machine() {
  const Provenance made = provenance();
  return formatted("format {}, {}, {}, libtorch {}", config_format, made.instructions, up_to(made.compiler, 0),
                   up_to(made.libtorch, 1));
}

// Of the metrics and of the weights, without what says which run it is.
std::string digest_of(const std::vector<std::string>& overrides) {
  const ResolvedConfig config = test::small_config(overrides);
  const test::TemporaryFolder root;
  EXPECT_EQ(test::work(config, root.path()), RunStatus::done);
  Sha256 digest;
  digest.update(test::content(root.path(), config, "metrics.jsonl"));
  const Safetensors weights = load_sealed_safetensors(root.path() + "/" + config.run_id + "/final.safetensors");
  for (const StoredTensor& tensor : weights.tensors()) {
    digest.update(tensor.name);
    digest.update(tensor.bytes.data(), tensor.bytes.size());
  }
  return digest.hex().substr(0, 16);
}

class PinnedRuns : public testing::TestWithParam<std::string> {};

TEST_P(PinnedRuns, GiveRecordedBytes) {
  const std::string here = machine();
  if (std::getenv("SELECTIVBENCH_RECORD") != nullptr) {
    std::cout << formatted("{{\"{}\", \"{}\", \"{}\"}},\n", here, GetParam(), digest_of(runs().at(GetParam())));
    GTEST_SKIP() << "recording";
  }
  for (const Pinned& each : recorded()) {
    if (here != each.machine || GetParam() != each.run) continue;
    EXPECT_EQ(digest_of(runs().at(GetParam())), each.digest)
        << "numbers of " << GetParam() << " changed: raise config_format and record anew, or find out why";
    return;
  }
  GTEST_SKIP() << "nothing recorded for " << here << "; SELECTIVBENCH_RECORD=1 prints the lines for pinned.inc";
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, overrides] : runs()) out.push_back(name);
  return out;
}
std::string word(const testing::TestParamInfo<std::string>& each) {
  std::string name;
  for (const char c : each.param) name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}
INSTANTIATE_TEST_SUITE_P(Runs, PinnedRuns, testing::ValuesIn(names()), word);

TEST(PinnedLines, NameExistingRuns) {
  for (const Pinned& each : recorded()) EXPECT_TRUE(runs().contains(each.run)) << each.run;
}

}  // namespace
}  // namespace sb
