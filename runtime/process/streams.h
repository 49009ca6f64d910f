// The standard streams of a program: always open, and never what a failure to write to them ends the program by.
#pragma once
#include <string>
#include <string_view>

namespace zero::runtime {

// First thing in main, also of what becomes too long a file. A program may be started with standard streams closed (`zerorun >&-`); the
// next file it opens would then be its standard output, and be written over by messages. What is closed becomes /dev/null.
void openStandardStreams();

// Text that may hold names from anywhere (files, other ranks), with its control characters as in "\x1b": they would move the cursor, or
// say to a terminal what its user has not.
std::string printable(std::string_view text);

// One line on stderr, made printable, in one piece because several processes may write there. That nobody can read it is no error.
void complain(const std::string &line);

} // namespace zero::runtime
