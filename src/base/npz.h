// Arrays as numpy's .npz: a zip of stored .npy members, written front to back.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sb {

// Takes the bytes of the archive in order, e.g. a file and a digest.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(const void* data, size_t size) = 0;
};

template <class T>
constexpr const char* npy_type() {
  static_assert(sizeof(T) == 0, "no numpy name for this type");
  return "";
}
template <>
constexpr const char* npy_type<int16_t>() {
  return "<i2";
}
template <>
constexpr const char* npy_type<int32_t>() {
  return "<i4";
}
template <>
constexpr const char* npy_type<int64_t>() {
  return "<i8";
}
template <>
constexpr const char* npy_type<uint64_t>() {
  return "<u8";
}
template <>
constexpr const char* npy_type<float>() {
  return "<f4";
}
template <>
constexpr const char* npy_type<double>() {
  return "<f8";
}

// begin_array(shape), write portions until the shape is full, and so on; finish() writes the directory.
// Plain zip, so the archive stays below 4 GiB; one that would not is refused as bad_input before its array is begun.
class NpzWriter {
 public:
  explicit NpzWriter(ByteSink& sink) : sink_(sink) {}

  template <class T>
  void begin_array(const std::string& name, const std::vector<uint64_t>& shape) {
    begin(name, npy_type<T>(), sizeof(T), shape);
  }
  template <class T>
  void write(const T* data, size_t count) {
    write_bytes(data, count * sizeof(T));
  }
  template <class T>
  void array(const std::string& name, const std::vector<T>& data) {
    begin_array<T>(name, {data.size()});
    write(data.data(), data.size());
  }
  void finish();

 private:
  struct Member {
    std::string name;
    uint32_t crc = 0, size = 0, offset = 0;
  };
  void begin(const std::string& name, const char* type, size_t item, const std::vector<uint64_t>& shape);
  void end_member();
  void write_bytes(const void* data, size_t size);
  void raw(std::string_view bytes);

  ByteSink& sink_;
  std::vector<Member> members_;
  uint64_t offset_ = 0;
  uint64_t expected_ = 0;  // bytes the open member still needs
  bool open_ = false;
};

}  // namespace sb
