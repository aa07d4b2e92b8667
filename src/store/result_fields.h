// Descriptions for FieldWriter and FieldReader of result parts that other files contain too.
#pragma once
#include <limits>

#include "config/rank_place.h"
#include "store/json_fields.h"
#include "store/result.h"

namespace sb {

constexpr double any_real = std::numeric_limits<double>::max();

void describe(auto& f, Described<CeilingFigure> auto& v) {
  f.real("mse", v.mse, 0, any_real);
  if (!v.mse) f.real("accuracy", v.accuracy, 0, 1);
  f.real("stderr", v.stderr_, 0, v.mse ? any_real : 1);
  if (!v.mse) f.real("upper_bound", v.upper_bound, 0, 1);
  f.real("kl", v.kl, 0, any_real);
  f.truth("exact", v.exact);
  f.whole("samples", v.samples, 1, most_count);
}

void describe(auto& f, Described<AccuracyBin> auto& v) {
  f.real("from", v.from, 0, any_real);
  f.real("accuracy", v.accuracy, 0, 1);
  f.whole("count", v.count, 1, most_count);
}

void describe(auto& f, Described<SymbolConfusion> auto& v) {
  f.whole("symbol", v.symbol, 0, 65535);
  f.whole("right", v.right, 0, most_count);
  f.whole("same_symbol", v.same_symbol, 0, most_count);
  f.whole("other_symbol", v.other_symbol, 0, most_count);
}

void describe(auto& f, Described<Measurement> auto& v) {
  f.text("split", v.split, 16);
  f.text("axis", v.axis, 64);
  f.whole(v.axis ? "at" : "gap", v.at, 0, 100000);
  f.whole("samples", v.samples, 1, most_count);
  f.whole("elements", v.elements, 0, most_count);
  f.whole("frames", v.frames, 0, most_count);
  f.real("mse", v.mse, 0, any_real);
  if (!v.mse) f.real("accuracy", v.accuracy, 0, 1);
  f.real("stderr", v.stderr_, 0, v.mse ? any_real : 1);
  f.real("loss", v.loss, 0, any_real);
  f.real("kl", v.kl, -any_real, any_real);
  f.object("ceiling", v.ceiling);
  f.numbers("by_position", v.by_position, 0, 1, recorded_positions);
  f.objects("by_gap_frame", v.by_gap_frame, 4096);
  f.objects("by_since_certain", v.by_since_certain, 4096);
  f.objects("by_entropy", v.by_entropy, 4096);
  f.objects("confusion", v.confusion, 65536);
}

void describe(auto& f, Described<GateCounts> auto& v) {
  f.whole("total", v.total, 0, most_count);
  f.numbers("counts", v.counts, 0, static_cast<double>(most_count), 256);
  if (v.total > 0) f.real("mean", v.mean, -any_real, any_real);
}

void describe(auto& f, Described<GateFigure> auto& v) {
  f.whole("layer", v.layer, 0, 65535);
  f.text("gate", v.gate, 64);
  f.real("low", v.low, -1e9, 1e9);
  f.real("high", v.high, -1e9, 1e9);
  f.truth("log10", v.log10);
  f.object("data", v.data);
  f.object("gap", v.gap);
}

void describe(auto& f, Described<GateFigures> auto& v) {
  f.objects("gates", v.gates, 4096);
  f.real("write_selectivity", v.write_selectivity, -any_real, any_real);
  f.real("forget_selectivity", v.forget_selectivity, -any_real, any_real);
}

void describe(auto& f, Described<DecaySpectrum> auto& v) {
  f.whole("layer", v.layer, 0, 65535);
  f.numbers("quantiles", v.quantiles, -any_real, any_real, 64);
}

void describe(auto& f, Described<BaselineFigures> auto& v) {
  f.real("majority", v.majority, 0, 1);
  f.real("table_learner", v.table_learner, 0, 1);
  f.numbers("n_gram", v.n_gram, 0, 1, 64);
  f.whole("n", v.n, 1, 64);
  f.real("n_gram_stderr", v.n_gram_stderr, 0, 1);
  f.whole("train_samples", v.train_samples, 0, most_count);
  f.whole("test_samples", v.test_samples, 0, most_count);
}

void describe(auto& f, Described<Provenance> auto& v) {
  f.text("version", v.version);
  f.text("commit", v.commit);
  f.text("compiler", v.compiler);
  f.text("libtorch", v.libtorch);
  f.text("blas", v.blas);
  f.text("instructions", v.instructions);
  f.text("device", v.device);
  f.text("precision", v.precision, 16);
  f.text("host", v.host);
  f.whole("threads", v.threads, 0, 1'000'000);
  f.whole("accumulate", v.accumulate, 1, 65536);
  f.whole("world", v.world, 1, kMaxRanks);
  f.real("train_seconds", v.train_seconds, 0, 1e12);
  f.real("total_seconds", v.total_seconds, 0, 1e12);
  f.real("tokens_per_second", v.tokens_per_second, 0, 1e18);
  f.whole("shared_by", v.shared_by, 1, 65536);
  f.text("finished", v.finished, 64);
}

}  // namespace sb
