#include "models/parameters.h"

#include "base/error.h"
#include "base/torch_pch.h"
#include "kernels/gradient_place.h"
#include "kernels/operation.h"

namespace sb {
namespace {

bool side_by_side(const std::vector<at::Tensor>& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is_contiguous() ||
        parts[i].storage().unsafeGetStorageImpl() != parts[0].storage().unsafeGetStorageImpl())
      return false;
    if (i > 0 && parts[i].storage_offset() != parts[i - 1].storage_offset() + parts[i - 1].numel()) return false;
  }
  return true;
}

// One tensor over the parts' common storage; undefined if they are not adjacent.
at::Tensor over_storage(const std::vector<at::Tensor>& parts) {
  if (!side_by_side(parts)) return {};
  auto shape = parts[0].sizes().vec();
  shape[0] = 0;
  for (const at::Tensor& part : parts) shape[0] += part.size(0);
  return at::empty({0}, parts[0].options()).set_(parts[0].storage(), parts[0].storage_offset(), shape);
}
at::Tensor stacked(const std::vector<at::Tensor>& parts) {
  if (parts.size() == 1) return parts[0];
  const at::Tensor whole = over_storage(parts);
  return whole.defined() ? whole : at::cat(parts);
}

// Autograd node that turns the gradient of the joined and padded values into those of the parts. Adds them directly to
// the parts' gradients if sums_into_leaves(), otherwise returns them.
struct JoinNode : torch::autograd::Node, kernels::GradientSum {
  std::vector<at::Tensor> parts;
  Padding padding;
  double scale = 1;

  // The gradients of all parts as one tensor; undefined if a part has none or if they are not adjacent
  at::Tensor gradients() const {
    std::vector<at::Tensor> all;
    for (const at::Tensor& part : parts) {
      all.push_back(part.grad());
      if (!all.back().defined()) return {};
    }
    return over_storage(all);
  }
  at::Tensor sum() const override { return padding.needed() || scale != 1 ? at::Tensor() : gradients(); }
  torch::autograd::variable_list apply(torch::autograd::variable_list&& given) override {
    torch::autograd::variable_list out(parts.size());
    if (!given[0].defined()) return out;
    if (kernels::sums_into_leaves()) {
      if (const at::Tensor all = gradients(); all.defined()) {
        padding.add_unpadded(all, given[0], scale);
        return out;
      }
    }
    const at::Tensor whole = scale == 1 ? padding.unpadded(given[0]) : padding.unpadded(given[0]) * scale;
    int64_t begin = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      out[i] = whole.narrow(0, begin, parts[i].size(0));
      begin += parts[i].size(0);
    }
    return out;
  }
};

// Connects `made`, computed from the parts without autograd, to its gradient
at::Tensor joined(at::Tensor made, const std::vector<at::Tensor>& parts, const Padding& padding, double scale) {
  if (!kernels::records_gradient(parts)) return made;
  const std::shared_ptr<JoinNode> node(new JoinNode, torch::autograd::deleteNode);
  node->parts = parts;
  node->padding = padding;
  node->scale = scale;
  node->set_next_edges(torch::autograd::collect_next_edges(parts));
  torch::autograd::create_gradient_edge(made, node);
  return made;
}

}  // namespace

int64_t Parameter::count() const {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

std::vector<at::Tensor> Joined::values() const {
  std::vector<at::Tensor> out;
  for (const Param part : parts_) out.push_back(part->value);
  return out;
}

at::Tensor Joined::value(const Padding& padding, double scale) const {
  if (parts_.size() == 1 && !padding.needed() && scale == 1) return parts_[0]->value;
  const auto parts = values();
  at::Tensor made;
  {
    const at::NoGradGuard no_gradients;
    made = padding.padded(stacked(parts));
    if (scale != 1) made = made * scale;
  }
  return joined(made, parts, padding, scale);
}

at::Tensor Joined::copy(const Padding& padding) const {
  if (!parts_[0]->copy.defined()) return {};
  std::vector<at::Tensor> copies;
  for (const Param part : parts_) copies.push_back(part->copy);
  return padding.padded(stacked(copies));
}

at::Tensor Joined::stand_in(const Padding& padding) const {
  if (!padding.needed()) return value();
  const auto parts = values();
  auto shape = parts[0].sizes().vec();
  shape[0] = 0;
  for (const at::Tensor& part : parts) shape[0] += part.size(0);
  return joined(at::empty({1}, parts[0].options()).expand(padding.padded_shape(shape)), parts, padding, 1);
}

Param ParameterList::add(const std::string& name, std::vector<int64_t> shape, const Init& init, int64_t uses,
                         const LearningGroup& group) {
  parameters_.push_back({prefix_ + name, std::move(shape), init, uses, group, -1, {}, {}});
  return &parameters_.back();
}

Param ParameterList::matrix(const std::string& name, int64_t outputs, int64_t inputs) {
  return add(name, {outputs, inputs}, Init::fan_in(inputs), 1);
}
Param ParameterList::bias(const std::string& name, int64_t outputs, int64_t inputs) {
  return add(name, {outputs}, Init::fan_in(inputs));
}
Param ParameterList::conv4(const std::string& name, int64_t channels) {
  return add(name, {channels, 1, 4}, Init::fan_in(4));
}
Param ParameterList::ones(const std::string& name, int64_t length) {
  return add(name, {length}, Init::constant(1));
}

Joined ParameterList::join(std::vector<Param> parts) {
  std::erase(parts, nullptr);
  if (parts.size() > 1) joins_.push_back(parts);
  return Joined(std::move(parts));
}

Param ParameterList::find(std::string_view name) const {
  for (const auto& parameter : parameters_)
    if (parameter.name == name) return &parameter;
  return nullptr;
}

int64_t ParameterList::count() const {
  int64_t sum = 0;
  for (const auto& parameter : parameters_) sum += parameter.count();
  return sum;
}

void ParameterList::allocate(at::ScalarType type, at::Device device, bool with_copy) {
  const int64_t grain = device.is_cpu() ? 1 : 8;
  int64_t next = 0;
  const auto begin = [&] { next = (next + grain - 1) / grain * grain; };
  const auto place = [&](Parameter& parameter) {
    if (parameter.offset >= 0) return;
    parameter.offset = next;
    next += parameter.count();
  };
  for (auto& parameter : parameters_) {
    begin();
    for (const auto& join : joins_)
      if (join[0] == &parameter)
        for (const Param part : join) place(const_cast<Parameter&>(*part));
    const auto joined_later = [&](const std::vector<Param>& join) {
      return std::find(join.begin(), join.end(), &parameter) != join.end();
    };
    if (std::none_of(joins_.begin(), joins_.end(), joined_later)) place(parameter);
  }
  begin();
  const auto options = at::TensorOptions().dtype(type).device(device);
  flat_ = at::zeros({next}, options);
  flat_grad_ = at::zeros({next}, options);
  if (with_copy) flat_copy_ = at::zeros({next}, options.dtype(at::kBFloat16));
  for (auto& parameter : parameters_) {
    if (with_copy) parameter.copy = flat_copy_.narrow(0, parameter.offset, parameter.count()).view(parameter.shape);
    parameter.value = flat_.narrow(0, parameter.offset, parameter.count()).view(parameter.shape).detach();
    parameter.value.set_requires_grad(true);
    parameter.value.mutable_grad() = flat_grad_.narrow(0, parameter.offset, parameter.count()).view(parameter.shape);
  }
}

void ParameterList::initialise(uint64_t seed) {
  const auto values = at::zeros({flat_.numel()}, at::kDouble);
  for (const auto& parameter : parameters_) {
    const int64_t last_axis = parameter.shape.empty() ? 1 : parameter.shape.back();
    double* out = values.data_ptr<double>() + parameter.offset;
    at::parallel_for(0, parameter.count(), 1 << 14, [&](int64_t begin, int64_t end) {
      draw_initial(parameter.init, seed, parameter.name, last_axis, begin, end, out + begin);
    });
  }
  flat_.copy_(values);
  refresh_copy();
}

void ParameterList::refresh_copy() {
  if (flat_copy_.defined()) flat_copy_.copy_(flat_);
}

}  // namespace sb
