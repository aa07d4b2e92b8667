// TOML as plain values with their locations. Only toml_tree.cpp uses the TOML library.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sb {

// A position in a file, or (line 0) a piece of the command line.
struct Place {
  std::string file;
  unsigned line = 0;
  unsigned column = 0;

  std::string text() const;  // "quick.toml:14:7", always printable
};

struct TomlMember;

struct TomlValue {
  using List = std::vector<TomlValue>;
  using Table = std::vector<TomlMember>;  // in the order of the file

  std::variant<bool, int64_t, double, std::string, List, Table> content;
  Place place;

  const Table* table() const { return std::get_if<Table>(&content); }
  const List* list() const { return std::get_if<List>(&content); }
  const std::string* text() const { return std::get_if<std::string>(&content); }
};

struct TomlMember {
  std::string key;
  Place place;
  TomlValue value;
};

// "an integer", "text", … for messages.
std::string_view kind_name(const TomlValue& value);
// The value as written in TOML, cut to a short printable text.
std::string shown(const TomlValue& value);
// Sets the location of the value and of everything in it.
void move_place(TomlValue& value, const Place& place);
// The text as a TOML string.
std::string toml_quoted(std::string_view text);

// Reads a file. Throws bad_input "[where] …" that ends in `from`, the location that asked for it.
std::string read_text(const std::string& path, size_t limit, const std::string& where, const Place& from);
// Parses a document and returns its top table. Throws bad_input with one line that ends in file:line:col.
TomlValue parse_toml(std::string_view text, const std::string& file);

}  // namespace sb
