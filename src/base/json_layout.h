#pragma once
#include <string>
#include <string_view>

namespace sb {

// A sound JSON text with the white space of json_document(…, 1); numbers and strings stay as they are spelled.
std::string json_laid_out(std::string_view json);

}  // namespace sb
