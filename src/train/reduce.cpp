#include "train/reduce.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <numeric>

namespace sb {
namespace {

at::TensorOptions on_host(at::ScalarType type, at::Device used_by) {
  return at::TensorOptions().dtype(type).pinned_memory(!used_by.is_cpu());
}

}  // namespace

TensorReduction::TensorReduction(const Batch& batch, const Task& task, at::Device device)
    : batch_(batch),
      elements_(batch.elements),
      rows_(batch.batch),
      frames_(batch.frames),
      answers_(task.shape().answers),
      has_law_(task.has_law()),
      device_(device) {
  const at::Tensor target = at::empty({rows_, frames_}, on_host(at::kLong, device));
  task.targets(batch, target.data_ptr<int64_t>());
  target_ = target.to(device, true).clamp_min(0);
}

at::Tensor TensorReduction::sent(const std::vector<int64_t>& values) const {
  const at::Tensor out = at::empty({static_cast<int64_t>(values.size())}, on_host(at::kLong, device_));
  std::copy(values.begin(), values.end(), out.data_ptr<int64_t>());
  return out.to(device_, true);
}

at::Tensor TensorReduction::fetched(const at::Tensor& values) const {
  const at::Tensor out = at::empty(values.sizes(), on_host(values.scalar_type(), device_));
  out.copy_(values, true);
  return out;
}

TensorReduction::Terms TensorReduction::terms(int from, int to, std::vector<size_t>& ended) const {
  struct Sum {
    int row, element, first, end;  // frames of the element in this stretch
    bool goes_on;                  // continued from the previous stretch
    int terms() const { return end - first + goes_on; }
  };
  std::vector<Sum> sums;
  for (int b = 0; b < rows_; ++b) {
    const int32_t* start = batch_.starts(b);
    const auto first = static_cast<int>(std::upper_bound(start, start + elements_ + 1, from) - start) - 1;
    for (int e = first; e < elements_ && start[e] < to; ++e) {
      if (start[e] == start[e + 1]) continue;
      sums.push_back({b, e, std::max(from, start[e]), std::min(to, start[e + 1]), start[e] < from});
    }
  }
  std::stable_sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) { return a.terms() > b.terms(); });
  Terms out;
  out.sums = static_cast<int64_t>(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const Sum& s = sums[i];
    if (s.end < batch_.starts(s.row)[s.element + 1]) {
      out.open.resize(static_cast<size_t>(rows_));
      out.open[static_cast<size_t>(s.row)] = static_cast<int64_t>(i);
    } else {
      out.ended.push_back(static_cast<int64_t>(i));
      ended.push_back(static_cast<size_t>(s.row) * elements_ + s.element);
    }
  }
  const int64_t each = to - from;
  for (int g = 0; !sums.empty() && g < sums.front().terms(); ++g) {
    int64_t count = 0;
    for (const Sum& s : sums) {
      if (s.terms() <= g) break;
      const int frame = s.first + g - (s.goes_on ? 1 : 0);
      out.source.push_back(frame < s.first ? rows_ * each + s.row : s.row * each + frame - from);
      ++count;
    }
    out.counts.push_back(count);
  }
  return out;
}

void TensorReduction::take(int from, int to, const at::Tensor& logits) {
  const at::NoGradGuard no_grad;
  const int64_t each = to - from, here = rows_ * each, before = open_.defined() ? rows_ : 0;
  const at::Tensor held = at::empty({here + before, answers_}, at::TensorOptions().dtype(at::kFloat).device(device_));
  if (before > 0) held.narrow(0, here, before).copy_(open_);
  at::Tensor probabilities = held.narrow(0, 0, here);
  if (logits.scalar_type() == at::kFloat) {
    at::softmax_out(probabilities, logits.reshape({here, answers_}), -1);
  } else {
    probabilities.copy_(at::softmax(logits.reshape({here, answers_}), -1));
  }

  Stretch& out = stretches_.emplace_back();
  out.from = from;
  out.to = to;
  const at::Tensor target = target_.narrow(1, from, each).reshape({here, 1});
  out.target_probability = fetched(probabilities.gather(1, target).view({rows_, each}));
  out.best = fetched(at::argmax(probabilities, 1).to(at::kInt).view({rows_, each}));

  const Terms terms = this->terms(from, to, out.ended);
  if (terms.sums == 0) return;
  const at::Tensor source = sent(terms.source);
  at::Tensor sums;
  int64_t used = 0;
  for (const int64_t count : terms.counts) {
    const at::Tensor term = held.index_select(0, source.narrow(0, used, count));
    if (used == 0) {
      sums = term;
    } else {
      sums.narrow(0, 0, count).add_(term);
    }
    used += count;
  }
  open_ = terms.open.empty() ? at::Tensor() : sums.index_select(0, sent(terms.open));
  if (terms.ended.empty()) return;
  const bool all = terms.open.empty();
  const at::Tensor whole = all ? sums : sums.index_select(0, sent(terms.ended));
  out.named = fetched(at::argmax(whole, 1).to(at::kInt));
  if (has_law_) out.sum = fetched(whole);
}

ReducedPredictions TensorReduction::reduced() {
  if (wait_) wait_();
  const size_t cells = static_cast<size_t>(rows_) * frames_, answers = static_cast<size_t>(answers_);
  target_probability_.resize(cells);
  best_.resize(cells);
  named_.resize(static_cast<size_t>(rows_) * elements_);
  if (has_law_) sum_.resize(named_.size() * answers);
  for (const Stretch& s : stretches_) {
    const auto each = static_cast<size_t>(s.to - s.from);
    const float* target_probability = s.target_probability.data_ptr<float>();
    const int32_t* best = s.best.data_ptr<int32_t>();
    for (size_t b = 0; b < static_cast<size_t>(rows_); ++b) {
      const size_t at = b * frames_ + s.from;
      std::copy_n(target_probability + b * each, each, target_probability_.begin() + static_cast<std::ptrdiff_t>(at));
      std::copy_n(best + b * each, each, best_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    for (size_t i = 0; i < s.ended.size(); ++i) {
      named_[s.ended[i]] = s.named.data_ptr<int32_t>()[i];
      if (!has_law_) continue;
      const float* sum = s.sum.data_ptr<float>() + i * answers;
      std::copy_n(sum, answers, sum_.begin() + static_cast<std::ptrdiff_t>(s.ended[i] * answers));
    }
  }
  return {target_probability_.data(), best_.data(), named_.data(), has_law_ ? sum_.data() : nullptr};
}

}  // namespace sb
