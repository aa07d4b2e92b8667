// The parameters of a network: named tensors that are views into one flat buffer, their gradients into another.
#pragma once
#include <ATen/core/Tensor.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "models/init.h"
#include "models/padding.h"

namespace sb {

// How the optimiser treats a parameter.
struct LearningGroup {
  double max_lr = 0;  // the learning rate is no higher; 0: no cap
  bool decay = true;  // weight decay acts
  bool operator==(const LearningGroup&) const = default;
};

struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  Init init;
  int64_t uses = 0;  // multiplications a token with each element as the weight of a matrix product
  LearningGroup group;
  int64_t offset = -1;  // first element in the flat buffers
  at::Tensor value;     // leaf; its gradient is a view into the flat gradient
  at::Tensor copy;      // the value in bfloat16, for matrix products; undefined: there is none

  int64_t count() const;
};
using Param = const Parameter*;

// Parameters that act as one tensor, stacked along the first axis. They lie side by side in the flat buffer, so
// value() costs no copy where nothing is padded; absent (null) parts are left out.
class Joined {
 public:
  Joined() = default;
  explicit Joined(std::vector<Param> parts) : parts_(std::move(parts)) {}
  explicit Joined(Param part) : parts_{part} {}
  at::Tensor value(const Padding& padding = {}, double scale = 1) const;
  at::Tensor copy(const Padding& padding = {}) const;  // as Parameter::copy
  // Takes the gradient of value(padding) and has its shape, but no values.
  at::Tensor stand_in(const Padding& padding) const;
  bool empty() const { return parts_.empty(); }

 private:
  std::vector<at::Tensor> values() const;

  std::vector<Param> parts_;
};

class ParameterList {
 public:
  ParameterList() = default;
  ParameterList(ParameterList&&) = default;
  ParameterList& operator=(ParameterList&&) = default;

  // Declaring: names get the current prefix; the order of declaration is the order of all().
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  Param add(const std::string& name, std::vector<int64_t> shape, const Init& init, int64_t uses = 0,
            const LearningGroup& group = {});
  Param matrix(const std::string& name, int64_t outputs, int64_t inputs);  // U(-1/sqrt(inputs), 1/sqrt(inputs))
  Param bias(const std::string& name, int64_t outputs, int64_t inputs);    // the same bound
  Param conv4(const std::string& name, int64_t channels);                  // [channels,1,4], U(-1/2, 1/2)
  Param ones(const std::string& name, int64_t length);
  Joined join(std::vector<Param> parts);

  const std::deque<Parameter>& all() const { return parameters_; }
  Param find(std::string_view name) const;  // null where absent
  int64_t count() const;

  // After the last declaration. On a GPU parameters begin at multiples of 16 bytes of the copy, with zeros between
  // them; `with_copy`: products there take weights in bfloat16.
  void allocate(at::ScalarType type, at::Device device, bool with_copy = false);
  void initialise(uint64_t seed);
  void refresh_copy();                                 // after values were changed by anybody but Adam
  at::Tensor flat() const { return flat_; }            // [count], or more with what lies between
  at::Tensor flat_grad() const { return flat_grad_; }  // as flat(), where backward() adds
  at::Tensor flat_copy() const { return flat_copy_; }  // as flat(), in bfloat16; undefined without

 private:
  std::string prefix_;
  std::deque<Parameter> parameters_;       // addresses are handed out
  std::vector<std::vector<Param>> joins_;  // each laid out side by side
  at::Tensor flat_, flat_grad_, flat_copy_;
};

}  // namespace sb
