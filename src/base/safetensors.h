// The safetensors container: 8 bytes of header length, a JSON header, then the tensors' bytes without gaps. The reader
// validates everything in the file. The bytes of the writer depend only on its arguments.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sb {

enum class Dtype { boolean, u8, i8, i16, i32, i64, f16, bf16, f32, f64 };
std::string_view dtype_name(Dtype dtype);  // as in the header: BOOL, U8, …, BF16, F32, F64
size_t dtype_bytes(Dtype dtype);

struct StoredTensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // row-major, little-endian; owned by the file it came from

  int64_t count() const { return static_cast<int64_t>(bytes.size() / dtype_bytes(dtype)); }
  // Values of any stored type, widened exactly (except integers beyond 2^53).
  std::vector<double> as_doubles() const;
};

class Safetensors {
 public:
  // Both throw bad_input with one line that names the file and the problem.
  static Safetensors load(const std::string& path, size_t limit = size_t{1} << 34);
  static Safetensors parse(std::string content, const std::string& name);
  Safetensors(Safetensors&&) = default;
  Safetensors& operator=(Safetensors&&) = default;

  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // in the order of the header
  const StoredTensor* find(std::string_view name) const;                 // null if absent
  const StoredTensor& at(std::string_view name) const;                   // throws if absent
  const std::string& name() const { return name_; }

 private:
  Safetensors() = default;
  std::string name_;
  std::unique_ptr<const std::string> content_;  // keeps its address when moved, so that the tensors' spans stay valid
  std::map<std::string, std::string> metadata_;
  std::vector<StoredTensor> tensors_;
  std::unordered_map<std::string, size_t> index_;
};

// The bytes before the tensor data, for tensors in this order: header length and JSON header, padded with spaces to a
// multiple of 8.
std::string safetensors_header(const std::vector<StoredTensor>& tensors,
                               const std::map<std::string, std::string>& metadata = {});
// The complete file.
std::string write_safetensors(const std::vector<StoredTensor>& tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace sb
