#include "models/probe.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/torch_pch.h"
#include "models/declare.h"
#include "random/philox.h"

namespace sb {
namespace {

constexpr double kMaxInput = 16;
constexpr double same = 1e-7;  // Jacobian entries that differ by less are equal
constexpr double step = 1e-4;  // of central differences, which are exact for linear recurrences
constexpr double complementary_above = 0.12;

// Random numbers for the probe's inputs. The distribution only has to be broad and reproducible.
class Draws {
 public:
  explicit Draws(uint64_t seed) : stream_(seed, 0, 0, Purpose::noise) {}
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += unit_double(stream_.word(next_++));
    return sum;
  }
  at::Tensor normals(int64_t rows, int64_t columns) {
    auto out = at::empty({rows, columns}, at::kDouble);
    for (int64_t i = 0; i < out.numel(); ++i) out.data_ptr<double>()[i] = normal();
    return out;
  }

 private:
  PhiloxStream stream_;
  uint32_t next_ = 0;
};

class Layer {
 public:
  Layer(const ModelConfig& config, uint64_t seed) : width_(config.mixer.width) {
    mixer_ = find_model(config.name).make(config.mixer, parameters_);
    parameters_.allocate(at::kDouble, at::kCPU);
    parameters_.initialise(seed);
    LayerState state;
    Context context;
    context.state = &state;
    mixer_->forward(at::zeros({1, 1, width_}, at::kDouble), context);
    if (state.get("state").defined()) shape_ = state.get("state").sizes().vec();
    all_elements_ = state.elements("state");
    cache_ = state.elements("cache") > 0;
  }

  const Mixer& mixer() const { return *mixer_; }
  bool has_cache() const { return cache_; }
  int64_t width() const { return width_; }
  int64_t elements() const {
    return shape_.empty() ? 0 : std::accumulate(shape_.begin() + 1, shape_.end(), int64_t{1}, std::multiplies<>());
  }
  int64_t all_elements() const { return all_elements_; }  // with those of slots "state.…"
  int64_t units() const { return shape_[1]; }             // heads or channels

  // The state after one frame x [n,d] from the states S [n, elements].
  at::Tensor next(const at::Tensor& x, const at::Tensor& S) const {
    auto shape = shape_;
    shape[0] = x.size(0);
    LayerState state;
    state.slots["state"] = S.reshape(shape).contiguous();
    Context context;
    context.state = &state;
    mixer_->forward(x.unsqueeze(1), context);
    return state.get("state").reshape({x.size(0), -1});
  }

  // J[i,j] = dS_t[i] / dS_{t-1}[j] for the frame x [d] at the state S [elements]
  at::Tensor jacobian(const at::Tensor& x, const at::Tensor& S) const {
    const int64_t n = elements();
    const auto offsets = at::eye(n, at::kDouble) * step;
    const auto states = at::cat({S + offsets, S - offsets});
    const auto after = next(x.expand({2 * n, -1}).contiguous(), states);
    return ((after.narrow(0, 0, n) - after.narrow(0, n, n)) / (2 * step)).t().contiguous();
  }

 private:
  int64_t width_;
  ParameterList parameters_;
  std::unique_ptr<Mixer> mixer_;
  std::vector<int64_t> shape_;
  int64_t all_elements_ = 0;
  bool cache_ = false;
};

// |J| between channels: (re, im) pairs of a complex state are one channel.
at::Tensor channel_magnitudes(const at::Tensor& J, bool complex) {
  if (!complex) return J.abs();
  const int64_t n = J.size(0) / 2;
  return J.square().view({n, 2, n, 2}).sum(3).sum(1).sqrt();
}

// Channels that act on each other, as lists of indices.
std::vector<std::vector<int64_t>> blocks(const at::Tensor& magnitudes) {
  const int64_t n = magnitudes.size(0);
  std::vector<int64_t> label(static_cast<size_t>(n), -1);
  std::vector<std::vector<int64_t>> out;
  const auto m = magnitudes.accessor<double, 2>();
  for (int64_t seed = 0; seed < n; ++seed) {
    if (label[static_cast<size_t>(seed)] >= 0) continue;
    std::vector<int64_t> members{seed};
    label[static_cast<size_t>(seed)] = seed;
    for (size_t i = 0; i < members.size(); ++i)
      for (int64_t j = 0; j < n; ++j)
        if (label[static_cast<size_t>(j)] < 0 && (m[members[i]][j] > same || m[j][members[i]] > same)) {
          label[static_cast<size_t>(j)] = seed;
          members.push_back(j);
        }
    out.push_back(std::move(members));
  }
  return out;
}

double largest_singular_value(const at::Tensor& matrix) {
  auto v = at::ones({matrix.size(1)}, at::kDouble);
  double value = 0;
  for (int i = 0; i < 60; ++i) {
    const auto next = at::mv(matrix.t(), at::mv(matrix, v));
    const double norm = next.norm().item<double>();
    if (norm < 1e-300) return 0;
    value = std::sqrt(norm / std::max(1e-300, v.norm().item<double>()));
    v = next / norm;
  }
  return value;
}

// The smallest share of the state that one step keeps.
double smallest_factor(const at::Tensor& J, const Taxonomy& row, bool complex) {
  const auto m = channel_magnitudes(J, complex);
  if (row.action != Taxonomy::Action::matrix)
    return m.norm(2, {0}).min().item<double>() / (complex ? std::sqrt(2.) : 1);
  double smallest = std::numeric_limits<double>::infinity();
  for (const auto& block : blocks(m)) {
    const auto index = at::tensor(block, at::kLong);
    smallest = std::min(smallest, largest_singular_value(J.index_select(0, index).index_select(1, index)));
  }
  return smallest;
}

double off_diagonal_share(const at::Tensor& magnitudes) {
  const double all = magnitudes.sum().item<double>();
  return all > 0 ? 1 - magnitudes.diagonal().sum().item<double>() / all : 0;
}

at::Tensor bounded(const at::Tensor& x) {
  return x.clamp(-kMaxInput, kMaxInput);
}

// Kind of action and dependence on data, from a few Jacobians.
void classify(const Layer& layer, Draws& draws, Measured& out) {
  const bool complex = layer.mixer().complex_state();
  const int64_t n = layer.elements();
  const auto zero = at::zeros({n}, at::kDouble);
  const auto elsewhere = draws.normals(1, n)[0];
  bool identity = true, scalar = true, nonlinear = false;
  at::Tensor first;
  for (int i = 0; i < 4; ++i) {
    const auto x = bounded(draws.normals(1, layer.width())[0] * (1 << i));
    const auto J = layer.jacobian(x, zero);
    if (!first.defined()) first = J;
    out.row.data_dependent |= (J - first).abs().max().item<double>() > same;
    nonlinear |= (J - layer.jacobian(x, elsewhere)).abs().max().item<double>() > 1e-5;
    identity &= (J - at::eye(n, at::kDouble)).abs().max().item<double>() < same;
    const auto by_unit = J.diagonal().reshape({layer.units(), -1});
    scalar &= by_unit.size(1) > 1 && (by_unit - by_unit.narrow(1, 0, 1)).abs().max().item<double>() < same;
    out.off_diagonal_mass = std::max(out.off_diagonal_mass, off_diagonal_share(channel_magnitudes(J, complex)));
  }
  using Action = Taxonomy::Action;
  out.row.channel_mixing = out.off_diagonal_mass > 1e-4;
  out.row.action = nonlinear                ? Action::nonlinear
                   : out.row.channel_mixing ? Action::matrix
                   : identity               ? Action::identity
                   : scalar                 ? Action::scalar
                                            : Action::elementwise;
}

// Tries random inputs of several sizes, then improves the best one by random steps.
double search_smallest(const Layer& layer, Draws& draws, const Taxonomy& row) {
  const bool complex = layer.mixer().complex_state();
  const auto zero = at::zeros({layer.elements()}, at::kDouble);
  const auto value_at = [&](const at::Tensor& x) { return smallest_factor(layer.jacobian(x, zero), row, complex); };
  at::Tensor best_x;
  double best = std::numeric_limits<double>::infinity();
  const int trials = row.data_dependent ? 24 : 1, climbs = row.data_dependent ? 48 : 0;
  for (int i = 0; i < trials + climbs && best > reach_threshold / 4; ++i) {
    const auto fresh = draws.normals(1, layer.width())[0];
    const auto x = bounded(i < trials ? fresh * (1 << (1 + i % 4)) : best_x + fresh * (1 << (i % 3)));
    if (const double value = value_at(x); value < best) {
      best = value;
      best_x = x;
    }
  }
  return best;
}

std::vector<double> ranks(const at::Tensor& values) {
  const auto order = values.contiguous().argsort();
  std::vector<double> out(static_cast<size_t>(values.numel()));
  for (int64_t i = 0; i < values.numel(); ++i)
    out[static_cast<size_t>(order[i].item<int64_t>())] = static_cast<double>(i);
  return out;
}

double rank_correlation(const at::Tensor& a, const at::Tensor& b) {
  const auto ra = ranks(a), rb = ranks(b);
  const double middle = static_cast<double>(ra.size() - 1) / 2;
  double ab = 0, aa = 0;
  for (size_t i = 0; i < ra.size(); ++i) {
    ab += (ra[i] - middle) * (rb[i] - middle);
    aa += (ra[i] - middle) * (ra[i] - middle);
  }
  return ab / aa;
}

// Rank correlation between how much a frame writes into a unit, and how much it forgets of the state in that direction.
double correlation(const Layer& layer, Draws& draws, double size) {
  constexpr int64_t inputs = 256;
  auto x = draws.normals(inputs, layer.width());
  x = x / x.norm(2, {1}, true) * (size * std::sqrt(static_cast<double>(layer.width())));
  const auto zero = at::zeros({inputs, layer.elements()}, at::kDouble);
  const auto write = layer.next(x, zero);
  const auto kept = (layer.next(x, write * step) - layer.next(x, write * -step)) / (2 * step);
  const auto units = [&](const at::Tensor& v) { return v.view({inputs, layer.units(), -1}).sum(-1); };
  const auto power = units(write.square()) + 1e-300;
  const auto forgotten = 1 - units(write * kept) / power;
  double sum = 0;
  for (int64_t u = 0; u < layer.units(); ++u) {
    const auto f = forgotten.select(1, u), w = power.select(1, u);
    const double spread = (f.max() - f.min()).item<double>();
    if (spread > same) sum += rank_correlation(f, w);
  }
  return sum / static_cast<double>(layer.units());
}

}  // namespace

ModelConfig probe_config(const std::string& model, const Switches& switches) {
  const ModelRow& row = find_model(model);
  Switches asked = switches;
  const auto prefer = [&](const char* name, const char* value) {
    if (row.find(name)) asked.emplace(name, value);
  };
  prefer("heads", "2");
  prefer("d_state", "16");
  prefer("expand_v", "1");
  return model_config(model, 16, asked, 1, 1, 1, 0);
}

Taxonomy declared_row(const std::string& model, const Switches& switches) {
  return declare(probe_config(model, switches)).mixers[0]->taxonomy();
}

Measured probe(const std::string& model, const Switches& switches, uint64_t seed) {
  const at::NoGradGuard no_gradients;
  const ModelConfig config = probe_config(model, switches);
  Draws draws(seed);
  const Layer layer(config, seed);
  Measured out;
  if (layer.has_cache()) {
    out.row.action = Taxonomy::Action::cache;
    out.row.data_dependent = true;
    return out;
  }
  if (layer.elements() == 0) throw bad_input("probe", model + " carries no state");
  out.row.state_elements = layer.all_elements();
  classify(layer, draws, out);
  out.smallest_decay = search_smallest(layer, draws, out.row);
  out.row.reaches_zero = out.smallest_decay < reach_threshold;
  // After a LayerNorm, rows have norm sqrt(d). Weak gates (Mamba's at initialisation) react only to larger inputs.
  constexpr int layers = 6;
  for (const double size : {4.0, 16.0}) {
    double mean = 0;
    for (int i = 0; i < layers; ++i)
      mean += correlation(Layer(config, seed + static_cast<uint64_t>(i)), draws, size) / layers;
    if (std::abs(mean) > std::abs(out.write_forget_correlation)) out.write_forget_correlation = mean;
  }
  out.row.complementary = out.write_forget_correlation > complementary_above;
  return out;
}

}  // namespace sb
