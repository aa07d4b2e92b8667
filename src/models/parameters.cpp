#include "models/parameters.h"

#include "base/error.h"
#include "base/torch_pch.h"

namespace sb {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// A tensor over the parts' common storage; the gradient comes back as slices.
struct JoinFunction : torch::autograd::Function<JoinFunction> {
  static at::Tensor forward(AutogradContext* ctx, at::TensorList parts) {
    std::vector<int64_t> rows;
    for (const auto& part : parts) rows.push_back(part.size(0));
    auto shape = parts[0].sizes().vec();
    shape[0] = 0;
    for (const int64_t n : rows) shape[0] += n;
    ctx->saved_data["rows"] = rows;
    return at::empty({0}, parts[0].options()).set_(parts[0].storage(), parts[0].storage_offset(), shape);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    variable_list out;
    int64_t begin = 0;
    for (const int64_t n : ctx->saved_data["rows"].toIntVector()) {
      out.push_back(grads[0].narrow(0, begin, n));
      begin += n;
    }
    return out;
  }
};

bool side_by_side(const std::vector<at::Tensor>& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is_contiguous() ||
        parts[i].storage().unsafeGetStorageImpl() != parts[0].storage().unsafeGetStorageImpl())
      return false;
    if (i > 0 && parts[i].storage_offset() != parts[i - 1].storage_offset() + parts[i - 1].numel()) return false;
  }
  return true;
}

}  // namespace

int64_t Parameter::count() const {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

at::Tensor Joined::value() const {
  if (parts_.size() == 1) return parts_[0]->value;
  std::vector<at::Tensor> values;
  for (const Param part : parts_) values.push_back(part->value);
  return side_by_side(values) ? JoinFunction::apply(at::TensorList(values)) : at::cat(values);
}

at::Tensor Joined::copy() const {
  const at::Tensor& first = parts_[0]->copy;
  if (parts_.size() == 1 || !first.defined()) return first;
  std::vector<at::Tensor> copies;
  for (const Param part : parts_) copies.push_back(part->copy);
  if (!side_by_side(copies)) return at::cat(copies);
  auto shape = first.sizes().vec();
  shape[0] = 0;
  for (const at::Tensor& copy : copies) shape[0] += copy.size(0);
  return at::empty({0}, first.options()).set_(first.storage(), first.storage_offset(), shape);
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
