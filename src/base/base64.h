#pragma once
#include <string>
#include <string_view>

namespace sb {

std::string base64(std::string_view bytes);  // RFC 4648, padded

}  // namespace sb
