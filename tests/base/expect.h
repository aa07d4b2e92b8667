// What tests say about texts and errors.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sb {

// Whether all parts stand in the text.
template <class... Parts>
testing::AssertionResult has(std::string_view text, const Parts&... parts) {
  for (const std::string_view part : std::initializer_list<std::string_view>{parts...})
    if (text.find(part) == text.npos) return testing::AssertionFailure() << "no '" << part << "' in: " << text;
  return testing::AssertionSuccess();
}

// Whether none of the parts stands in the text. True of an empty text, so not to be used alone on error_line().
template <class... Parts>
testing::AssertionResult lacks(std::string_view text, const Parts&... parts) {
  for (const std::string_view part : std::initializer_list<std::string_view>{parts...})
    if (text.find(part) != text.npos) return testing::AssertionFailure() << "'" << part << "' in: " << text;
  return testing::AssertionSuccess();
}

// The line of the error that `act` ends in, with this code; "" where it ends well.
template <class Act>
std::string error_line(const Act& act, Exit code = Exit::bad_input) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

}  // namespace sb
