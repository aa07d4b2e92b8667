#pragma once
#include <string>
#include <string_view>

#include "base/file_system.h"

namespace sb {

// write_file_atomically() for a file name that the program chose in its own folder. A symbolic link, pipe or device of
// that name is removed first; write_file_atomically() would follow the link or write to the device.
void replace_file(const std::string& path, std::string_view content, FileSystem& files = real_file_system());

}  // namespace sb
