#include "base/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"

namespace sb {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are read in the order of their bytes");

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  size_t bytes;
};
constexpr DtypeRow dtypes[] = {
    {Dtype::boolean, "BOOL", 1}, {Dtype::u8, "U8", 1},   {Dtype::i8, "I8", 1},   {Dtype::i16, "I16", 2},
    {Dtype::i32, "I32", 4},      {Dtype::i64, "I64", 8}, {Dtype::f16, "F16", 2}, {Dtype::bf16, "BF16", 2},
    {Dtype::f32, "F32", 4},      {Dtype::f64, "F64", 8},
};
constexpr uint64_t longest_header = 100'000'000;
constexpr size_t most_dimensions = 16;

// A hostile name must not flood or break the one line of an error.
std::string shown(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 60)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return text.size() > 60 ? out + "…" : out;
}

struct Entry {
  std::string name;
  std::optional<Dtype> dtype;
  std::optional<std::vector<int64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;
};

// Accepts exactly {"__metadata__": {string: string}, name: {"dtype", "shape", "data_offsets"}}.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(std::string file) : file_(std::move(file)) {}
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;

  [[noreturn]] void refuse(const std::string& what) const { throw bad_input("safetensors", file_ + ": " + what); }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t value) override { return unexpected(formatted("{}", value)); }
  bool number_float(number_float_t, const string_t& text) override { return unexpected(shown(text)); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_array_) return unexpected(formatted("{}", value));
    if (value > static_cast<uint64_t>(INT64_MAX)) refuse(formatted("{} of '{}' is too large", value, here()));
    numbers_.push_back(value);
    if (numbers_.size() > most_dimensions)
      refuse(formatted("'{}' has more than {} entries in {}", here(), most_dimensions, field_));
    return true;
  }
  bool string(string_t& value) override {
    if (depth_ == 2 && in_metadata_) {
      if (!metadata.emplace(field_, value).second) refuse("duplicate metadata key '" + shown(field_) + "'");
      return true;
    }
    if (depth_ != 2 || field_ != "dtype" || in_array_) return unexpected("'" + shown(value) + "'");
    for (const auto& row : dtypes)
      if (row.name == value) entries.back().dtype = row.dtype;
    if (!entries.back().dtype) refuse(formatted("'{}' has unknown dtype '{}'", here(), shown(value)));
    return true;
  }
  bool start_object(std::size_t) override {
    if (in_array_ || depth_ == 2 || (depth_ == 1 && !expecting_object_)) return unexpected("an object");
    expecting_object_ = false;
    ++depth_;
    fields_.clear();
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == 1) {
      if (!names_.insert(value).second) refuse("duplicate name '" + shown(value) + "'");
      in_metadata_ = value == "__metadata__";
      if (!in_metadata_) entries.push_back({value, {}, {}, {}});
      expecting_object_ = true;
    } else {
      field_ = value;
      if (!fields_.insert(value).second) refuse(formatted("duplicate key '{}' in '{}'", shown(value), here()));
      if (!in_metadata_ && value != "dtype" && value != "shape" && value != "data_offsets")
        refuse(formatted("'{}' has unknown key '{}'", here(), shown(value)));
    }
    return true;
  }
  bool end_object() override {
    if (depth_ == 2 && !in_metadata_) {
      const Entry& entry = entries.back();
      if (!entry.dtype || !entry.shape || !entry.offsets)
        refuse(formatted("'{}' lacks {}", here(), !entry.dtype ? "dtype" : !entry.shape ? "shape" : "data_offsets"));
    }
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (in_array_ || depth_ != 2 || in_metadata_ || (field_ != "shape" && field_ != "data_offsets"))
      return unexpected("a list");
    in_array_ = true;
    numbers_.clear();
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    if (field_ == "shape")
      entries.back().shape.emplace(numbers_.begin(), numbers_.end());
    else
      entries.back().offsets = numbers_;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    refuse(formatted("header is not valid JSON at byte {}", position));
  }

 private:
  bool unexpected(const std::string& what) const {
    refuse(formatted("unexpected {} in the header, near '{}'", what, here()));
  }
  std::string here() const { return entries.empty() ? "the start" : shown(entries.back().name); }

  std::string file_, field_;
  std::set<std::string> names_, fields_;
  std::vector<uint64_t> numbers_;
  int depth_ = 0;
  bool in_metadata_ = false, in_array_ = false, expecting_object_ = false;
};

// Bytes of a tensor of this shape; nullopt on overflow.
std::optional<uint64_t> size_of(const std::vector<int64_t>& shape, Dtype dtype) {
  uint64_t size = dtype_bytes(dtype);
  for (const int64_t extent : shape)
    if (__builtin_mul_overflow(size, static_cast<uint64_t>(extent), &size)) return std::nullopt;
  return size;
}

double half_to_double(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int mantissa = bits & 1023;
  double value = exponent == 0    ? mantissa * 0x1p-24
                 : exponent == 31 ? (mantissa ? std::bit_cast<double>(0x7FF8000000000000ULL)
                                              : std::bit_cast<double>(0x7FF0000000000000ULL))
                                  : (1024 + mantissa) * std::bit_cast<double>(uint64_t(1023 + exponent - 25) << 52);
  return bits & 0x8000 ? -value : value;
}

template <class T>
void widen(std::span<const std::byte> bytes, std::vector<double>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<double>(value);
  }
}

}  // namespace

std::string_view dtype_name(Dtype dtype) {
  return dtypes[static_cast<size_t>(dtype)].name;
}
size_t dtype_bytes(Dtype dtype) {
  return dtypes[static_cast<size_t>(dtype)].bytes;
}

std::vector<double> StoredTensor::as_doubles() const {
  std::vector<double> out(static_cast<size_t>(count()));
  switch (dtype) {
    case Dtype::boolean:
    case Dtype::u8:
      widen<uint8_t>(bytes, out);
      break;
    case Dtype::i8:
      widen<int8_t>(bytes, out);
      break;
    case Dtype::i16:
      widen<int16_t>(bytes, out);
      break;
    case Dtype::i32:
      widen<int32_t>(bytes, out);
      break;
    case Dtype::i64:
      widen<int64_t>(bytes, out);
      break;
    case Dtype::f32:
      widen<float>(bytes, out);
      break;
    case Dtype::f64:
      widen<double>(bytes, out);
      break;
    case Dtype::f16:
    case Dtype::bf16:
      for (size_t i = 0; i < out.size(); ++i) {
        uint16_t bits;
        std::memcpy(&bits, bytes.data() + 2 * i, 2);
        out[i] = dtype == Dtype::f16 ? half_to_double(bits) : std::bit_cast<float>(uint32_t{bits} << 16);
      }
  }
  return out;
}

Safetensors Safetensors::load(const std::string& path, size_t limit) {
  return parse(read_file(path, limit), path);
}

Safetensors Safetensors::parse(std::string content, const std::string& name) {
  Safetensors file;
  file.name_ = name;
  file.content_ = std::make_unique<const std::string>(std::move(content));
  HeaderReader header(name);
  if (file.content_->size() < 8) header.refuse(formatted("expected at least 8 bytes, got {}", file.content_->size()));
  uint64_t length;
  std::memcpy(&length, file.content_->data(), 8);
  const uint64_t rest = file.content_->size() - 8;
  if (length > longest_header || length > rest)
    header.refuse(formatted("header length {} exceeds the {} bytes that follow it", length, rest));
  const char* text = file.content_->data() + 8;
  if (length == 0 || *text != '{') header.refuse("header does not start with '{'");
  nlohmann::json::sax_parse(text, text + length, &header);

  const std::span<const std::byte> data(reinterpret_cast<const std::byte*>(text + length), rest - length);
  std::vector<std::pair<uint64_t, size_t>> order;
  for (size_t i = 0; i < header.entries.size(); ++i) {
    Entry& entry = header.entries[i];
    const auto& offsets = *entry.offsets;
    const std::string who = "'" + shown(entry.name) + "'";
    if (offsets.size() != 2) header.refuse(formatted("{} has {} data_offsets, expected 2", who, offsets.size()));
    if (offsets[0] > offsets[1] || offsets[1] > data.size())
      header.refuse(formatted("{} lies at bytes {}..{} of {}", who, offsets[0], offsets[1], data.size()));
    const auto size = size_of(*entry.shape, *entry.dtype);
    if (!size || *size != offsets[1] - offsets[0])
      header.refuse(formatted("{} has {} bytes, expected {} for {} [{}]", who, offsets[1] - offsets[0],
                              size ? std::to_string(*size) : "more than 2^64", dtype_name(*entry.dtype),
                              joined(*entry.shape, ",")));
    order.emplace_back(offsets[0], i);
    file.index_.emplace(entry.name, i);
    file.tensors_.push_back({std::move(entry.name), *entry.dtype, std::move(*entry.shape),
                             data.subspan(offsets[0], offsets[1] - offsets[0])});
  }
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return std::pair(a.first, file.tensors_[a.second].bytes.size()) <
           std::pair(b.first, file.tensors_[b.second].bytes.size());
  });
  uint64_t end = 0;
  for (const auto& [begin, i] : order) {
    if (begin != end)
      header.refuse(formatted("'{}' {} at byte {}, expected {}", shown(file.tensors_[i].name),
                              begin < end ? "overlaps another tensor" : "leaves a hole", begin, end));
    end += file.tensors_[i].bytes.size();
  }
  if (end != data.size()) header.refuse(formatted("{} bytes after the last tensor", data.size() - end));
  file.metadata_ = std::move(header.metadata);
  return file;
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

const StoredTensor& Safetensors::at(std::string_view name) const {
  const auto* tensor = find(name);
  if (!tensor) throw bad_input("safetensors", formatted("{}: no tensor '{}'", name_, shown(name)));
  return *tensor;
}

std::string safetensors_header(const std::vector<StoredTensor>& tensors,
                               const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t end = 0;
  std::set<std::string_view> names;
  for (const auto& tensor : tensors) {
    const auto size = size_of(tensor.shape, tensor.dtype);
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second)
      throw bad_input("safetensors", "cannot write two tensors of the name '" + shown(tensor.name) + "'");
    if (!size || *size != tensor.bytes.size())
      throw bad_input("safetensors",
                      formatted("'{}' has {} bytes, its shape [{}] needs {}", shown(tensor.name), tensor.bytes.size(),
                                joined(tensor.shape, ","), size ? std::to_string(*size) : "more than 2^64"));
    header.push_back({tensor.name, nlohmann::ordered_json{{"dtype", dtype_name(tensor.dtype)},
                                                          {"shape", tensor.shape},
                                                          {"data_offsets", {end, end + *size}}}});
    end += *size;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + text;
}

std::string write_safetensors(const std::vector<StoredTensor>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::string out = safetensors_header(tensors, metadata);
  size_t size = out.size();
  for (const auto& tensor : tensors) size += tensor.bytes.size();
  out.reserve(size);
  for (const auto& tensor : tensors)
    out.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return out;
}

}  // namespace sb
