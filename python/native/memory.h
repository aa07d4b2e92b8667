// What the machine has left: work that would not fit is refused before it begins.
#pragma once
#include <string>

namespace sb::python {

// Bytes that this process may still take: of the machine, its control group and its limit of addresses.
double free_memory();

// Throws bad_input "[where] what takes N GB, …; remedy" above four fifths of what is free.
void expect_memory(const std::string& where, const std::string& what, double bytes, const std::string& remedy);

}  // namespace sb::python
