#pragma once
#include <string>
#include <string_view>

namespace sb {

// Reformats valid JSON text with the white space of json_document(…, 1). Numbers and strings keep their spelling.
std::string json_laid_out(std::string_view json);

}  // namespace sb
