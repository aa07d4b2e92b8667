#include "config/protocol.h"

#include <gtest/gtest.h>

#include "model_rules.h"
#include "store/result.h"

namespace sb {
namespace {

ResolvedConfig resolved(const std::string& text) {
  return resolve(parse_settings(text, "run.toml"), test::rules(), "run.toml");
}
std::string label(const std::string& text) {
  return protocol_label(config_map(resolved(text).canonical));
}

std::string run(const std::string& model, const std::string& more) {
  return "[model]\nname = '" + model + "'\n" + more;
}

TEST(Protocol, PublishedMatchesPublishedCode) {
  const RunConfig c = resolved(run("transformer", "[run]\nprotocol = 'published'\n")).values;
  EXPECT_EQ(c.model.dropout, 0.2);
  EXPECT_EQ(c.train.dropout_until, 78);
  EXPECT_EQ(c.model.residual, Residual::doubled);
  EXPECT_TRUE(c.quirks.first_lr_zero && c.quirks.delta_bf16 && c.quirks.sum_accumulated);
  EXPECT_EQ(resolved(run("mamba2", "[run]\nprotocol = 'published'\n")).values.model.residual, Residual::post);
}

TEST(Protocol, CorrectedIsDefault) {
  const RunConfig c = resolved(run("transformer", "")).values;
  EXPECT_EQ(c.model.dropout, 0);
  EXPECT_EQ(c.model.residual, Residual::pre);
  EXPECT_FALSE(c.quirks.first_lr_zero || c.quirks.delta_bf16 || c.quirks.sum_accumulated);
  EXPECT_EQ(resolved(run("transformer", "")).run_id,
            resolved(run("transformer", "[run]\nprotocol = 'corrected'\n")).run_id);
}

TEST(Protocol, OnlySetsKeys) {
  const std::string keys =
      "dropout = 0.2\nresidual = 'double'\n[train]\ndropout_until = 78\n"
      "[quirks]\nfirst_lr_zero = true\ndelta_bf16 = true\nsum_accumulated = true\n";
  EXPECT_EQ(resolved(run("transformer", keys)).run_id,
            resolved(run("transformer", "[run]\nprotocol = 'published'\n")).run_id);
}

TEST(Protocol, KeysOverrideProtocol) {
  const RunConfig c =
      resolved(run("delta_net", "dropout = 0.1\n[quirks]\ndelta_bf16 = false\n[run]\nprotocol = 'published'\n")).values;
  EXPECT_EQ(c.model.dropout, 0.1);
  EXPECT_FALSE(c.quirks.delta_bf16);
  EXPECT_TRUE(c.quirks.first_lr_zero);
}

TEST(Protocol, IsOriginOfItsValues) {
  const auto config = resolved(run("transformer", "[run]\nprotocol = 'published'\n"));
  EXPECT_EQ(config.origins.at("model.dropout").text(), "derived from run.protocol");
  EXPECT_EQ(config.origins.at("train.dropout_until").text(), "derived from run.protocol");
}

TEST(ProtocolLabel, NamesNearestProtocolAndDifferences) {
  const std::string published = "[run]\nprotocol = 'published'\n";
  for (const char* model : {"transformer", "delta_net", "mamba2", "gla"}) {
    EXPECT_EQ(label(run(model, "")), "corrected") << model;
    EXPECT_EQ(label(run(model, published)), "published") << model;
    EXPECT_EQ(label(run(model, published + "[train]\nlr = 2e-3\n")), "published but lr 0.002") << model;
    EXPECT_EQ(label(run(model, "[train]\nlr = 2e-3\n")), "corrected") << model;
  }
  EXPECT_EQ(label(run("transformer", "residual = 'post'\n")), "corrected but residual post");
  EXPECT_EQ(label(run("transformer", "conv = 4\n")), "corrected but conv 4");
  EXPECT_EQ(label(run("mamba2", "dropout = 0.2\n")), "corrected but dropout 0.2");
  EXPECT_EQ(label(run("delta_net", "[quirks]\ndelta_bf16 = false\n" + published)), "published but no delta_bf16");
  EXPECT_EQ(label(run("delta_net", "[quirks]\ndelta_bf16 = true\n")), "corrected but delta_bf16");
}

}  // namespace
}  // namespace sb
