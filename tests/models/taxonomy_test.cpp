#include <gtest/gtest.h>

#include "models/probe.h"
#include "zoo.h"

namespace sb {

static void PrintTo(const Taxonomy& row, std::ostream* out) {
  *out << action_name(row.action) << " data " << row.data_dependent << " complementary " << row.complementary
       << " zero " << row.reaches_zero << " mixes " << row.channel_mixing << " state " << row.state_elements;
}

namespace {

void expect_measured(const std::string& model, const Switches& switches = {}) {
  const Measured measured = probe(model, switches);
  EXPECT_EQ(measured.row, declared_row(model, switches))
      << model << ": smallest decay " << measured.smallest_decay << ", write-forget "
      << measured.write_forget_correlation << ", off-diagonal " << measured.off_diagonal_mass;
}

class DeclaredTaxonomy : public testing::TestWithParam<std::string> {};

TEST_P(DeclaredTaxonomy, MatchesMeasuredTaxonomy) {
  if (declared_row(GetParam()).action == Taxonomy::Action::unknown) GTEST_SKIP() << "nothing declared";
  expect_measured(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Zoo, DeclaredTaxonomy, testing::ValuesIn(model_names()), test::by_model);

TEST(Taxonomy, DecouplingRemovesComplementaryGating) {
  EXPECT_FALSE(declared_row("mamba", {{"complementary", "off"}}).complementary);
  expect_measured("mamba", {{"complementary", "off"}});
  expect_measured("mamba2", {{"complementary", "off"}});
}

TEST(Taxonomy, CouplingMakesGlaComplementary) {
  EXPECT_TRUE(declared_row("gla", {{"complementary", "on"}}).complementary);
  expect_measured("gla", {{"complementary", "on"}});
}

TEST(Taxonomy, ClampedDecayCannotReachZero) {
  for (const char* model : {"mamba", "mamba2", "gated_delta_net", "gated_delta_product", "gru"}) {
    EXPECT_FALSE(declared_row(model, {{"a_min", "0.5"}}).reaches_zero);
    EXPECT_FALSE(probe(model, {{"a_min", "0.5"}}).row.reaches_zero) << model;
  }
}

TEST(Taxonomy, MatchesPaper) {
  EXPECT_EQ(declared_row("delta_net").action, Taxonomy::Action::matrix);
  EXPECT_FALSE(declared_row("delta_net").reaches_zero);
  EXPECT_TRUE(declared_row("gated_delta_net").reaches_zero);
  EXPECT_EQ(declared_row("mamba2").action, Taxonomy::Action::scalar);
  EXPECT_EQ(declared_row("linear_attn").action, Taxonomy::Action::identity);
}

}  // namespace
}  // namespace sb
