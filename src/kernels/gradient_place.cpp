#include "kernels/gradient_place.h"

#include "base/torch_pch.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <limits>
#include <mutex>
#include <utility>

#include "kernels/poison.h"

namespace sb {
namespace kernels {
namespace {

// Canonical sizes and strides: without axes of size 1, and with contiguous axes merged. Equal results mean the same
// elements in the same order.
std::vector<std::pair<int64_t, int64_t>> joined_axes(at::IntArrayRef sizes, at::IntArrayRef strides) {
  std::vector<std::pair<int64_t, int64_t>> out;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    if (!out.empty() && out.back().second == sizes[d] * strides[d])
      out.back() = {out.back().first * sizes[d], strides[d]};
    else
      out.emplace_back(sizes[d], strides[d]);
  }
  return out;
}

bool once() {
  return !at::GradMode::is_enabled() && !torch::autograd::get_current_graph_task_keep_graph();
}

}  // namespace

// The gradient of a tensor that was split into slices, while a backward pass computes it.
class WholeGradient {
 public:
  WholeGradient(const at::Tensor& x, const std::vector<int64_t>& widths, int64_t axis)
      : sizes_(x.sizes().vec()),
        strides_(x.strides().vec()),
        offset_(x.storage_offset()),
        axis_(static_cast<size_t>(axis)),
        widths_(widths),
        options_(x.options()),
        storage_(x.storage().unsafeGetStorageImpl()),
        shared_(x.is_contiguous()),
        taken_(widths.size(), false) {
    int64_t begin = 0;
    for (const int64_t width : widths) {
      begins_.push_back(begin);
      begin += width;
    }
  }

  // Whether the tensor has the same elements as this slice, possibly in another shape.
  bool is_slice(const at::Tensor& x, size_t slice) const {
    auto sizes = sizes_;
    sizes[axis_] = widths_[slice];
    return shared_ && x.numel() > 0 && x.scalar_type() == c10::typeMetaToScalarType(options_.dtype()) &&
           x.storage().unsafeGetStorageImpl() == storage_ && x.storage_offset() == offset_ + begin_of(slice) &&
           joined_axes(x.sizes(), x.strides()) == joined_axes(sizes, strides_);
  }
  int64_t begin_of(size_t slice) const { return begins_[slice] * strides_[axis_]; }

  at::Tensor take(size_t slice, at::IntArrayRef sizes, at::IntArrayRef strides) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (taken_[slice]) return {};
    taken_[slice] = true;
    if (!whole_.defined()) {
      whole_ = at::empty(sizes_, options_);
      if (buffers_are_poisoned()) whole_.fill_(std::numeric_limits<double>::quiet_NaN());
    }
    return whole_.as_strided(sizes, strides, begin_of(slice));
  }

  at::Tensor of(const std::vector<at::Tensor>& gradients) {
    at::Tensor whole;
    std::vector<bool> taken(widths_.size(), false);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      std::swap(whole, whole_);
      std::swap(taken, taken_);
    }
    size_t there = 0;
    bool lost = false;  // a destination was taken, but not returned: its taker may still use it
    for (size_t i = 0; i < gradients.size(); ++i) {
      const bool at_place = is_at_place(gradients[i], i, whole);
      there += at_place ? 1 : 0;
      lost = lost || (taken[i] && !at_place);
    }
    if (there == 0 || at::GradMode::is_enabled() || (lost && whole.storage().use_count() > 1 + there))
      return side_by_side(gradients);
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (widths_[i] == 0 || is_at_place(gradients[i], i, whole)) continue;
      const at::Tensor place = whole.narrow(static_cast<int64_t>(axis_), begins_[i], widths_[i]);
      if (gradients[i].defined())
        place.copy_(gradients[i]);
      else
        place.zero_();
    }
    return whole;
  }

 private:
  bool is_at_place(const at::Tensor& gradient, size_t slice, const at::Tensor& whole) const {
    auto sizes = sizes_;
    sizes[axis_] = widths_[slice];
    return whole.defined() && gradient.defined() && gradient.numel() > 0 && gradient.is_alias_of(whole) &&
           gradient.storage_offset() == begin_of(slice) &&
           joined_axes(gradient.sizes(), gradient.strides()) == joined_axes(sizes, strides_);
  }

  at::Tensor side_by_side(const std::vector<at::Tensor>& gradients) const {
    std::vector<at::Tensor> parts;
    bool any = false;
    for (size_t i = 0; i < gradients.size(); ++i) {
      auto sizes = sizes_;
      sizes[axis_] = widths_[i];
      any = any || gradients[i].defined();
      parts.push_back(gradients[i].defined() ? gradients[i] : at::zeros(sizes, options_));
    }
    return any ? at::cat(parts, static_cast<int64_t>(axis_)) : at::Tensor();
  }

  const std::vector<int64_t> sizes_, strides_;
  const int64_t offset_;
  const size_t axis_;
  const std::vector<int64_t> widths_;
  std::vector<int64_t> begins_;
  const at::TensorOptions options_;
  // Only compared, never dereferenced. A later tensor at this address with the layout of a slice may use it as well.
  const void* const storage_;
  const bool shared_;
  std::mutex mutex_;
  std::vector<bool> taken_;
  at::Tensor whole_;
};

namespace {

struct SliceNode : torch::autograd::Node {
  std::shared_ptr<WholeGradient> whole;
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    return {task_should_compute_output(0) ? whole->of(gradients) : at::Tensor()};
  }
};

}  // namespace

bool sums_into_leaves() {
  const auto* chosen = torch::autograd::get_current_graph_task_exec_info();
  return once() && chosen != nullptr && chosen->empty();
}

GradientPlace::GradientPlace(const at::Tensor& input) {
  if (!input.defined() || !input.requires_grad()) return;
  if (!input.grad_fn()) {
    leaf_ = input;
    return;
  }
  sum_ = std::dynamic_pointer_cast<GradientSum>(input.grad_fn());
  // The slice may be behind a few views, e.g. as heads or with an additional axis.
  torch::autograd::Edge edge(input.grad_fn(), static_cast<uint32_t>(input.output_nr()));
  constexpr int most = 4;
  for (int step = 0; step < most && edge.function; ++step) {
    if (const auto* node = dynamic_cast<const SliceNode*>(edge.function.get())) {
      if (!node->whole->is_slice(input, edge.input_nr)) return;
      whole_ = node->whole;
      slice_ = edge.input_nr;
      sizes_ = input.sizes().vec();
      strides_ = input.strides().vec();
      return;
    }
    if (edge.function->num_outputs() != 1) return;
    edge = edge.function->next_edge(0);
  }
}

at::Tensor GradientPlace::take() const {
  return whole_ && once() ? whole_->take(slice_, sizes_, strides_) : at::Tensor();
}

at::Tensor GradientPlace::sum() const {
  if ((!leaf_.defined() && !sum_) || !sums_into_leaves()) return {};
  return leaf_.defined() ? leaf_.grad() : sum_->sum();
}

}  // namespace kernels

std::vector<at::Tensor> slices(const at::Tensor& x, const std::vector<int64_t>& widths, int64_t axis) {
  if (!at::GradMode::is_enabled() || !x.requires_grad()) return x.split_with_sizes(widths, axis);
  std::vector<at::Tensor> out;
  {
    const at::NoGradGuard no_gradients;
    out = x.split_with_sizes(widths, axis);
  }
  const std::shared_ptr<kernels::SliceNode> node(new kernels::SliceNode, torch::autograd::deleteNode);
  node->whole = std::make_shared<kernels::WholeGradient>(x, widths, axis < 0 ? axis + x.dim() : axis);
  node->set_next_edges(torch::autograd::collect_next_edges(x));
  for (at::Tensor& slice : out) torch::autograd::create_gradient_edge(slice, node);
  return out;
}

}  // namespace sb
