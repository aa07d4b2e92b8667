// Writes arrays as numpy's .npz: a zip of uncompressed .npy members, written front to back.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sb {

// Receives the bytes of the archive in order, e.g. for a file and a digest.
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

// For each array, call begin_array(shape), then write() until the shape is full. finish() writes the zip directory. The
// archive is plain zip, limited to 4 GiB. An array that would exceed the limit is refused with bad_input before any of
// its bytes are written.
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
