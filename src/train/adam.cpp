#include "train/adam.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/util/BFloat16.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "kernels/adam_update.h"
#include "kernels/backend.h"

namespace sb {
namespace {

constexpr int64_t kBlock = 16384;

template <typename Real>
struct Coefficients {
  Real scale, beta1, beta2, step, root, eps, shrink;
};

template <typename Real>
void update_range(Real* p, Real* m, Real* v, const Real* g, int64_t n, const Coefficients<Real>& c) {
  const Real one_beta1 = 1 - c.beta1, one_beta2 = 1 - c.beta2;
  for (int64_t i = 0; i < n; ++i) {
    const Real grad = g[i] * c.scale;
    m[i] += (grad - m[i]) * one_beta1;
    v[i] = v[i] * c.beta2 + one_beta2 * grad * grad;
    p[i] = p[i] * c.shrink - c.step * m[i] / (std::sqrt(v[i]) * c.root + c.eps);
  }
}

inline float bf16(float x) {
  return static_cast<float>(c10::BFloat16(x));
}

// Adam in bfloat16: the result of every operation is rounded.
template <typename Real>
void update_range_bf16(Real* p, Real* m, Real* v, const Real* g, int64_t n, const Coefficients<Real>& c) {
  for (int64_t i = 0; i < n; ++i) {
    const float grad = bf16(bf16(static_cast<float>(g[i])) * static_cast<float>(c.scale));
    const float m0 = static_cast<float>(m[i]), v0 = static_cast<float>(v[i]);
    const float m1 = bf16(m0 + (grad - m0) * static_cast<float>(1 - c.beta1));
    const float v1 = bf16(bf16(v0 * static_cast<float>(c.beta2)) + static_cast<float>(1 - c.beta2) * grad * grad);
    const float root = bf16(bf16(bf16(std::sqrt(v1)) * static_cast<float>(c.root)) + static_cast<float>(c.eps));
    const float p0 = bf16(static_cast<float>(p[i]) * static_cast<float>(c.shrink));
    m[i] = m1;
    v[i] = v1;
    p[i] = bf16(p0 - static_cast<float>(c.step) * m1 / root);
  }
}

template <typename Real>
void update_all(at::Tensor& parameters, at::Tensor& first, at::Tensor& second, const at::Tensor& gradients,
                const std::vector<ParameterGroup>& groups, const AdamConfig& config, double scale, double lr,
                int64_t count) {
  Real* p = parameters.data_ptr<Real>();
  Real* m = first.data_ptr<Real>();
  Real* v = second.data_ptr<Real>();
  const Real* g = gradients.data_ptr<Real>();
  const double t = static_cast<double>(count);
  for (const auto& group : groups) {
    const double rate = group.max_lr > 0 ? std::min(lr, group.max_lr) : lr;
    const Coefficients<Real> c{static_cast<Real>(scale),
                               static_cast<Real>(config.beta1),
                               static_cast<Real>(config.beta2),
                               static_cast<Real>(rate / (1 - std::pow(config.beta1, t))),
                               static_cast<Real>(1 / std::sqrt(1 - std::pow(config.beta2, t))),
                               static_cast<Real>(config.eps),
                               static_cast<Real>(group.decay ? 1 - rate * config.weight_decay : 1)};
    const int64_t blocks = (group.length + kBlock - 1) / kBlock;
    at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
      const int64_t from = group.offset + begin * kBlock;
      const int64_t n = std::min(group.offset + group.length, group.offset + end * kBlock) - from;
      if (config.bf16_state) {
        update_range_bf16(p + from, m + from, v + from, g + from, n, c);
      } else {
        update_range(p + from, m + from, v + from, g + from, n, c);
      }
    });
  }
}

template <typename Real>
double norm_of(const at::Tensor& values) {
  const Real* x = values.data_ptr<Real>();
  const int64_t n = values.numel(), blocks = (n + kBlock - 1) / kBlock;
  std::vector<double> partial(static_cast<size_t>(blocks));
  at::parallel_for(0, blocks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      double lane[8] = {};
      const int64_t to = std::min(n, (b + 1) * kBlock);
      int64_t i = b * kBlock;
      for (; i + 8 <= to; i += 8) {
        for (int j = 0; j < 8; ++j) lane[j] += static_cast<double>(x[i + j]) * static_cast<double>(x[i + j]);
      }
      for (; i < to; ++i) lane[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      partial[static_cast<size_t>(b)] =
          ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    }
  });
  double sum = 0;
  for (double s : partial) sum += s;
  return std::sqrt(sum);
}

}  // namespace

Adam::Adam(at::Tensor parameters, std::vector<ParameterGroup> groups, const AdamConfig& config)
    : parameters_(std::move(parameters)), groups_(std::move(groups)), config_(config) {
  m_ = at::zeros_like(parameters_);
  v_ = at::zeros_like(parameters_);
  count_ = at::zeros({1}, parameters_.options().dtype(at::kLong));
  sound_ = at::ones({1}, parameters_.options().dtype(at::kLong));
  int64_t covered = 0;
  for (const auto& group : groups_) {
    if (group.offset != covered) throw bad_input("train.adam", "parameter groups leave a hole or overlap");
    covered += group.length;
  }
  if (covered != parameters_.numel()) throw bad_input("train.adam", "parameter groups do not cover the buffer");
  if (parameters_.is_cuda() && parameters_.scalar_type() == at::kFloat && kernels::cuda_kernels_are_built()) {
    std::vector<kernels::AdamStretch> stretches;
    for (const auto& group : groups_) stretches.push_back({group.offset, group.length, group.max_lr, group.decay});
    stretches_ = kernels::adam_stretches(stretches, parameters_.device());
    clip_ = at::full({1}, config_.clip, parameters_.options().dtype(at::kDouble));
  }
}

at::Tensor Adam::update(const at::Tensor& gradients, const at::Tensor& lr, const at::Tensor& loss) {
  const at::NoGradGuard no_grad;
  if (stretches_.defined()) return update_by_kernel(gradients, lr, loss);
  at::Tensor report =
      parameters_.device().is_cpu() ? update_here(gradients, lr, loss) : update_anywhere(gradients, lr, loss);
  if (copy_.defined()) copy_.copy_(parameters_);
  return report;
}

at::Tensor Adam::update_by_kernel(const at::Tensor& gradients, const at::Tensor& lr, const at::Tensor& loss) {
  kernels::FlatAdam adam;
  adam.parameters = parameters_, adam.first_moment = m_, adam.second_moment = v_, adam.copy = copy_;
  adam.stretches = stretches_, adam.lr = lr, adam.clip = clip_, adam.updates = count_, adam.sound = sound_;
  adam.beta1 = config_.beta1, adam.beta2 = config_.beta2, adam.eps = config_.eps;
  adam.weight_decay = config_.weight_decay, adam.bf16_state = config_.bf16_state;
  return kernels::adam_update(adam, gradients, loss);
}

// The formulas of update_range and update_range_bf16 in ATen operations, for any device.
at::Tensor Adam::update_anywhere(const at::Tensor& gradients, const at::Tensor& lr, const at::Tensor& loss) {
  const at::ScalarType type = parameters_.scalar_type();
  const auto round = [&](const at::Tensor& x) { return config_.bf16_state ? x.to(at::kBFloat16).to(type) : x; };
  const at::Tensor norm = at::linalg_vector_norm(gradients, 2, c10::nullopt, false, at::kDouble).reshape({1});
  sound_.mul_(at::isfinite(norm).logical_and(at::isfinite(loss)));
  count_.add_(sound_);
  const at::Tensor made = sound_.ne(0), t = count_.to(at::kDouble);
  const at::Tensor scale =
      (config_.clip > 0 ? ((norm + 1e-6).reciprocal() * config_.clip).clamp_max(1) : at::ones_like(norm)).to(type);
  const at::Tensor first = 1 - at::pow(config_.beta1, t), second = (1 - at::pow(config_.beta2, t)).sqrt();
  for (const auto& group : groups_) {
    const auto part = [&](const at::Tensor& flat) { return flat.narrow(0, group.offset, group.length); };
    at::Tensor p = part(parameters_), m = part(m_), v = part(v_);
    const at::Tensor rate = group.max_lr > 0 ? lr.clamp_max(group.max_lr) : lr;
    const at::Tensor step = (rate / first).to(type), root = second.reciprocal().to(type);
    const at::Tensor grad = round(round(part(gradients)) * scale);
    const at::Tensor m1 = round(m + (grad - m) * (1 - config_.beta1));
    const at::Tensor v1 = round(round(v * config_.beta2) + grad * grad * (1 - config_.beta2));
    const at::Tensor below = round(round(round(v1.sqrt()) * root) + config_.eps);
    const bool decays = group.decay && config_.weight_decay > 0;
    const at::Tensor kept = round(decays ? p * (1 - rate * config_.weight_decay).to(type) : p);
    p.copy_(at::where(made, round(kept - step * m1 / below), p));
    m.copy_(at::where(made, m1, m));
    v.copy_(at::where(made, v1, v));
  }
  return at::cat({norm, sound_.to(at::kDouble)});
}

// For the CPU, where reading values does not wait.
at::Tensor Adam::update_here(const at::Tensor& gradients, const at::Tensor& lr, const at::Tensor& loss) {
  at::Tensor report = at::empty({2}, at::kDouble);
  const double norm = flat_norm(gradients);
  int64_t& sound = *sound_.data_ptr<int64_t>();
  sound = sound != 0 && std::isfinite(norm) && std::isfinite(*loss.data_ptr<double>()) ? 1 : 0;
  report.data_ptr<double>()[0] = norm;
  report.data_ptr<double>()[1] = static_cast<double>(sound);
  if (sound == 0) return report;
  const double scale = config_.clip > 0 ? std::min(1.0, config_.clip / (norm + 1e-6)) : 1.0;
  const int64_t count = ++*count_.data_ptr<int64_t>();
  const double rate = *lr.data_ptr<double>();
  if (parameters_.scalar_type() == at::kDouble) {
    update_all<double>(parameters_, m_, v_, gradients, groups_, config_, scale, rate, count);
  } else {
    update_all<float>(parameters_, m_, v_, gradients, groups_, config_, scale, rate, count);
  }
  return report;
}

void Adam::restore(const at::Tensor& first, const at::Tensor& second, int64_t updates) {
  m_.copy_(first);
  v_.copy_(second);
  count_.fill_(updates);
  sound_.fill_(1);
}

double flat_norm(const at::Tensor& values) {
  return values.scalar_type() == at::kDouble ? norm_of<double>(values) : norm_of<float>(values);
}

}  // namespace sb
