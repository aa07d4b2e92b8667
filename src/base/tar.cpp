#include "base/tar_reader.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace sb {
namespace {

constexpr size_t block = 512;
constexpr size_t longest_name = 100, longest_prefix = 155;

// Positions of the fields of a header.
struct Field {
  size_t at, size;
};
constexpr Field name_field{0, 100}, mode_field{100, 8}, owner_field{108, 8}, group_field{116, 8}, size_field{124, 12},
    time_field{136, 12}, sum_field{148, 8}, type_field{156, 1}, magic_field{257, 5}, version_field{263, 2},
    prefix_field{345, 155};

// Position of the slash between prefix and name; 0: the name needs no prefix; npos: the name is too long.
size_t split_of(std::string_view name) {
  if (name.size() <= longest_name) return 0;
  for (size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1))
    if (slash <= longest_prefix && name.size() - slash - 1 <= longest_name) return slash;
  return std::string_view::npos;
}

void put(std::string& header, Field field, std::string_view text) {
  std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(field.at));
}

void put_octal(std::string& header, Field field, uint64_t value) {
  for (size_t i = field.size - 1; i-- > 0; value /= 8) header[field.at + i] = static_cast<char>('0' + value % 8);
}

// The checksum counts its own field as spaces.
uint64_t sum_of(std::string_view header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < block; ++i)
    sum += i >= sum_field.at && i < sum_field.at + sum_field.size ? ' ' : static_cast<unsigned char>(header[i]);
  return sum;
}

std::string header_of(const TarFile& file) {
  std::string header(block, '\0');
  const size_t slash = split_of(file.name);
  if (slash > 0) put(header, prefix_field, std::string_view(file.name).substr(0, slash));
  put(header, name_field, std::string_view(file.name).substr(slash > 0 ? slash + 1 : 0));
  put_octal(header, mode_field, 0644);
  put_octal(header, owner_field, 0);
  put_octal(header, group_field, 0);
  put_octal(header, size_field, file.content.size());
  put_octal(header, time_field, 0);
  header[type_field.at] = '0';
  put(header, magic_field, "ustar");
  put(header, version_field, "00");
  put_octal(header, {sum_field.at, sum_field.size - 1}, sum_of(header));
  header[sum_field.at + sum_field.size - 1] = ' ';
  return header;
}

std::string_view text_in(std::string_view header, Field field) {
  const std::string_view text = header.substr(field.at, field.size);
  return text.substr(0, std::min(text.find('\0'), text.size()));
}

// Parses an octal number surrounded by spaces or zero bytes, as various tar programs write it.
std::optional<uint64_t> octal_in(std::string_view header, Field field) {
  std::string_view text = text_in(header, field);
  for (const char rest : header.substr(field.at + text.size(), field.size - text.size()))
    if (rest != '\0' && rest != ' ') return std::nullopt;
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.empty()) return std::nullopt;
  uint64_t value = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value * 8 + static_cast<uint64_t>(digit - '0');
  }
  return value;  // twelve digits at most
}

bool all_zero(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == '\0'; });
}

std::string name_in(std::string_view header) {
  const std::string_view prefix = text_in(header, prefix_field);
  std::string name(text_in(header, name_field));
  // The GNU format uses the prefix field for other data.
  const bool plain = header[magic_field.at + magic_field.size] == '\0';
  return plain && !prefix.empty() ? std::string(prefix) + "/" + name : name;
}

Error refused(const std::string& file, const std::string& what) {
  return bad_input("tar", printable(file, 400) + ": " + what);
}

}  // namespace

bool is_tar_name(std::string_view name) {
  if (name.empty() || split_of(name) == std::string_view::npos) return false;
  for (const char letter : name)
    if (letter < ' ' || letter > '~' || letter == '\\') return false;
  for (size_t from = 0; from <= name.size();) {
    const size_t end = std::min(name.find('/', from), name.size());
    const std::string_view part = name.substr(from, end - from);
    if (part.empty() || part == "." || part == "..") return false;
    from = end + 1;
  }
  return true;
}

std::string tar_bytes(std::vector<TarFile> files) {
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string out;
  for (size_t i = 0; i < files.size(); ++i) {
    const TarFile& file = files[i];
    if (!is_tar_name(file.name))
      throw bad_input("tar", "expected a plain name, got '" + printable(file.name, 300) + "'");
    if (i > 0 && files[i - 1].name == file.name)
      throw bad_input("tar", "expected each file once, got '" + printable(file.name, 300) + "' twice");
    out += header_of(file) + file.content;
    out.resize((out.size() + block - 1) / block * block);
  }
  out.resize(out.size() + 2 * block);
  return out;
}

TarReader::TarReader(std::string file, size_t size, size_t most_files)
    : file_(std::move(file)), left_(size), most_files_(most_files) {}

void TarReader::take(std::string_view piece) {
  while (!piece.empty()) {
    size_t n = piece.size();
    if (content_left_ > 0) {
      n = std::min(n, content_left_);
      out_.back().content += piece.substr(0, n);
      content_left_ -= n;
    } else if (padding_left_ > 0) {
      n = std::min(n, padding_left_);
      if (!all_zero(piece.substr(0, n))) throw refused(file_, "data after the end of a file");
      padding_left_ -= n;
    } else if (zeros_ > 0) {
      if (!all_zero(piece)) throw refused(file_, "expected nothing but zeros behind its last file");
      zeros_ += n;
    } else {
      n = std::min(n, block - header_.size());
      header_ += piece.substr(0, n);
    }
    left_ -= std::min(n, left_);
    piece.remove_prefix(n);
    if (header_.size() == block) take_header();
  }
}

void TarReader::take_header() {
  const std::string header = std::exchange(header_, {});
  if (all_zero(header)) {
    zeros_ = block;
    return;
  }
  if (text_in(header, magic_field).substr(0, magic_field.size) != "ustar" ||
      octal_in(header, sum_field) != sum_of(header))
    throw refused(file_, "damaged, or not an archive: a header does not match its checksum");
  const auto size = octal_in(header, size_field);
  if (!size || *size > left_) throw refused(file_, "a file is longer than the archive");
  const size_t padded = (*size + block - 1) / block * block;
  if (padded > left_) throw refused(file_, "ends early");
  std::string name = name_in(header);
  const char type = header[type_field.at];
  if (type == '5' && *size == 0) return;
  if (type != '0' && type != '\0') throw refused(file_, "entry is not a plain file: '" + printable(name) + "'");
  if (!is_tar_name(name)) throw refused(file_, "invalid file name: '" + printable(name) + "'");
  if (!seen_.insert(name).second) throw refused(file_, "expected each file once, got '" + printable(name) + "' twice");
  if (out_.size() == most_files_) throw refused(file_, "expected at most " + std::to_string(most_files_) + " files");
  out_.push_back({std::move(name), {}});
  out_.back().content.reserve(*size);
  content_left_ = *size;
  padding_left_ = padded - *size;
}

std::vector<TarFile> TarReader::finish() {
  if (zeros_ == 0) throw refused(file_, "ends early, expected two blocks of zeros at its end");
  if (zeros_ < 2 * block) throw refused(file_, "expected nothing but zeros behind its last file");
  return std::move(out_);
}

std::vector<TarFile> parse_tar(std::string_view bytes, const std::string& file, size_t most_files) {
  TarReader reader(file, bytes.size(), most_files);
  reader.take(bytes);
  return reader.finish();
}

}  // namespace sb
