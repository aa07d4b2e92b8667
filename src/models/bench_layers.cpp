#include "models/bench_layers.h"

#include "base/torch_pch.h"
#include "kernels/backend.h"
#include "models/registry.h"

namespace sb {
namespace {

// A built mixer with the gradient that its output is multiplied by.
class TimedLayer {
 public:
  TimedLayer(const ModelConfig& config, at::ScalarType type) : type_(type) {
    mixer_ = find_model(config.name).make(config.mixer, parameters_);
    mixer_->check_runnable();
    parameters_.allocate(type, at::kCPU);
    parameters_.initialise(1);
  }
  // Copies the weights, since the same seed gives other numbers in another precision.
  void take_weights(const TimedLayer& other) const { parameters_.flat().copy_(other.parameters_.flat()); }
  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor z = mixer_->forward(x, {}), more = mixer_->feed_forward(x + z, {});
    return more.defined() ? z + more : z;
  }
  // y, dx and the gradient of all parameters
  std::vector<at::Tensor> results(const at::Tensor& x, const at::Tensor& cotangent) const {
    parameters_.flat_grad().zero_();
    const at::Tensor in = x.to(type_).detach().clone().requires_grad_();
    const at::Tensor y = forward(in);
    y.backward(cotangent.to(type_));
    return {y.detach(), in.grad(), parameters_.flat_grad().clone()};
  }
  KernelTimes times(const KernelBenchOptions& options, const at::Tensor& x, const at::Tensor& cotangent) const {
    const at::Tensor in = x.to(type_).detach().clone().requires_grad_(), weight = cotangent.to(type_);
    KernelTimes out;
    out.forward = best_seconds(options, [&] {
      const at::NoGradGuard no_gradients;
      forward(in);
    });
    out.both = best_seconds(options, [&] { forward(in).backward(weight); });
    return out;
  }
  double flops(int64_t time) const {  // forward, a token
    double sum = mixer_->mixing_flops(time);
    for (const Parameter& p : parameters_.all()) sum += 2.0 * static_cast<double>(p.count() * p.uses);
    return sum;
  }
  int64_t state_elements() const { return mixer_->taxonomy().state_elements; }

 private:
  at::ScalarType type_;
  ParameterList parameters_;
  std::unique_ptr<Mixer> mixer_;
};

KernelRow measure(const KernelBenchOptions& options, const std::string& model, const BenchShape& shape,
                  const MachineRates& rates) {
  KernelRow row{};
  row.kernel = "layer " + model;
  row.width = shape.width;
  row.time = shape.time;
  row.batch = shape.batch;
  const ModelConfig config = model_config(model, shape.width);
  const TimedLayer ours(config, at::kFloat);
  const double tokens = static_cast<double>(shape.batch * shape.time);
  at::manual_seed(1);
  const at::Tensor x = at::randn({shape.batch, shape.time, config.mixer.width}, at::kDouble);
  const at::Tensor cotangent = at::randn(x.sizes(), at::kDouble);
  row.gradients_compared = 3 * tokens * static_cast<double>(ours.state_elements()) / 64 < kGraphLimit;
  if (row.gradients_compared) {
    const TimedLayer twin(config, at::kDouble);
    twin.take_weights(ours);
    const auto got = ours.results(x, cotangent);
    const kernels::UseBackend aten(kernels::Backend::aten);
    row.error = largest_difference(got, twin.results(x, cotangent));
    check_error(row);
    row.loop = ours.times(options, x, cotangent);
  }
  row.ours = ours.times(options, x, cotangent);
  row.bound = "gemm";
  row.share_forward = tokens * ours.flops(shape.time) / rates.gemm / *row.ours.forward;
  row.share_both = 3 * tokens * ours.flops(shape.time) / rates.gemm / *row.ours.both;
  return row;
}

}  // namespace

std::vector<KernelRow> bench_layers(const KernelBenchOptions& options, const MachineRates& rates, const RowSink& done) {
  std::vector<KernelRow> rows;
  for (const std::string& model : model_names()) {
    if (("layer " + model).find(options.only) == std::string::npos) continue;
    for (const BenchShape& shape : bench_shapes(options)) {
      rows.push_back(measure(options, model, shape, rates));
      if (done) done(rows.back());
    }
  }
  return rows;
}

}  // namespace sb
