//===- quiet.h - what passes say while nobody listens -------------------------------------------------===//
#pragma once
#include <string>
#include <vector>

namespace zero::pipeline {

/// While one exists, errors and notes of passes on this thread are for nobody: they are about something that is only tried.
class Quiet {
public:
  Quiet() { ++depth; }
  ~Quiet() { --depth; }
  Quiet(const Quiet &) = delete;
  Quiet &operator=(const Quiet &) = delete;

  static bool here() { return depth > 0; }

private:
  static inline thread_local int depth = 0;
};

/// While one exists, notes of passes on this thread go to `notes`.
class KeepNotes {
public:
  explicit KeepNotes(std::vector<std::string> &notes) : before(current) { current = &notes; }
  ~KeepNotes() { current = before; }
  KeepNotes(const KeepNotes &) = delete;
  KeepNotes &operator=(const KeepNotes &) = delete;

  /// Null if they go nowhere else.
  static std::vector<std::string> *here() { return current; }

private:
  std::vector<std::string> *before;
  static inline thread_local std::vector<std::string> *current = nullptr;
};

} // namespace zero::pipeline
