// Text inside of XML and HTML.
#pragma once
#include <string>
#include <string_view>

namespace sb {

std::string xml_escaped(std::string_view text);  // & < > " as entities

}  // namespace sb
