// The system calls that touch files: where their arguments name the file, and what may go wrong in them.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <sys/types.h>

namespace zero::faults {

// Positions are of arguments, -1: there is none.
struct FileCall {
  long number;
  const char *name;
  struct Place {
    int path = -1;       // a string, relative to...
    int directory = -1;  // ...this descriptor, or to the working directory
    int descriptor = -1; // an open file
  } first, second;
  bool changes = false; // what is on disk
  bool fills = false;   // takes room of it
  int count = -1;       // bytes to move: the call may move fewer
  int flags = -1;       // those of open: they say whether it changes anything
};

std::span<const FileCall> fileCalls();
const FileCall *findCall(uint64_t number);

// One call of a stopped thread.
struct Seen {
  const FileCall *call;
  std::string path;  // of the first file that lies under one of the folders; absolute
  std::string other; // the second one, or empty
  bool changes, fills;
};

// Whether a path the call names lies under one of `folders` (absolute, without a slash at the end).
bool touches(pid_t thread, const FileCall &call, const uint64_t *args, std::span<const std::string> folders, Seen &seen);

} // namespace zero::faults
