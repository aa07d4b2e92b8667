#pragma once
#include <string>
#include <string_view>

#include "base/file_system.h"

namespace sb {

// write_file_atomically() for names that the program chose in a folder of its own: a symbolic link, pipe or device of
// that name is removed first, where the other would follow it out of the folder or wait at it.
void replace_file(const std::string& path, std::string_view content, FileSystem& files = real_file_system());

}  // namespace sb
