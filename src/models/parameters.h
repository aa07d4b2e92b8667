// The parameters of a network: named views into one flat buffer. Their gradients are views into a second buffer.
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
  double max_lr = 0;  // upper bound of the learning rate; 0: no bound
  bool decay = true;  // whether weight decay applies
  bool operator==(const LearningGroup&) const = default;
};

struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  Init init;
  int64_t uses = 0;  // how often each element is a factor in matrix products, per token
  LearningGroup group;
  int64_t offset = -1;  // first element in the flat buffers
  at::Tensor value;     // autograd leaf; its gradient is a view into the flat gradient buffer
  at::Tensor copy;      // the value in bfloat16, for matrix products; undefined if the network has no copies

  int64_t count() const;
};
using Param = const Parameter*;

// Parameters that are used as one tensor, stacked along the first axis. They are adjacent in the flat buffer, so
// value() copies nothing unless it pads or scales. Create with ParameterList::join().
class Joined {
 public:
  Joined() = default;
  explicit Joined(std::vector<Param> parts) : parts_(std::move(parts)) {}
  explicit Joined(Param part) : parts_{part} {}
  at::Tensor value(const Padding& padding = {}, double scale = 1) const;
  at::Tensor copy(const Padding& padding = {}) const;  // as Parameter::copy
  // A tensor with the shape and the gradient of value(padding), whose values must not be read: for products that read
  // the values from copy().
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

  // Declaration of parameters. The current prefix is prepended to every name. all() keeps the order of declaration.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }
  Param add(const std::string& name, std::vector<int64_t> shape, const Init& init, int64_t uses = 0,
            const LearningGroup& group = {});
  Param matrix(const std::string& name, int64_t outputs, int64_t inputs);  // U(-1/sqrt(inputs), 1/sqrt(inputs))
  Param bias(const std::string& name, int64_t outputs, int64_t inputs);    // the same bound
  Param conv4(const std::string& name, int64_t channels);                  // [channels,1,4], U(-1/2, 1/2)
  Param ones(const std::string& name, int64_t length);
  Joined join(std::vector<Param> parts);  // null parts are ignored

  const std::deque<Parameter>& all() const { return parameters_; }
  Param find(std::string_view name) const;  // null if absent
  int64_t count() const;

  // Allocates the buffers, after the last declaration. On a GPU, gaps of zeros align the copy of every parameter (or of
  // every joined group) to 16 bytes. `with_copy`: keeps a bfloat16 copy of all parameters for matrix products.
  void allocate(at::ScalarType type, at::Device device, bool with_copy = false);
  void initialise(uint64_t seed);
  void refresh_copy();                                 // call after anything but Adam has changed values
  at::Tensor flat() const { return flat_; }            // all values, [count] plus alignment gaps
  at::Tensor flat_grad() const { return flat_grad_; }  // layout of flat(); backward() adds gradients here
  at::Tensor flat_copy() const { return flat_copy_; }  // layout of flat(), in bfloat16; undefined without a copy

 private:
  std::string prefix_;
  std::deque<Parameter> parameters_;       // deque: addresses must stay valid
  std::vector<std::vector<Param>> joins_;  // groups that must be adjacent in the buffer
  at::Tensor flat_, flat_grad_, flat_copy_;
};

}  // namespace sb
