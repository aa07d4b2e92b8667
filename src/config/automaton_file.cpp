#include "config/automaton_file.h"

#include "base/error.h"
#include "base/json_layout.h"
#include "base/sha256.h"
#include "grammar/automaton_json.h"

namespace sb {

std::shared_ptr<const AutomatonFile> read_automaton_file(const std::string& path, const Place& from) {
  return parse_automaton_file(read_text(path, kMaxAutomatonFile, "grammar.automaton", from), path, from);
}

std::shared_ptr<const AutomatonFile> parse_automaton_file(std::string text, const std::string& path,
                                                          const Place& from) {
  auto file = std::make_shared<AutomatonFile>();
  file->text = std::move(text);
  file->sha256 = sha256_hex(file->text);
  try {
    file->automaton = automaton_from_json(file->text, path);
  } catch (const Error& error) {
    const std::string_view line = error.what();
    throw bad_input("grammar.automaton", std::string(line.substr(line.find("] ") + 2)) + ", " + from.text());
  }
  return file;
}

std::string automaton_identity(const AutomatonFile& file) {
  std::string_view text = file.text;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  return sha256_hex(json_laid_out(text));
}

}  // namespace sb
