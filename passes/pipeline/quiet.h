//===- quiet.h - what passes say while nobody listens -------------------------------------------------===//
#pragma once

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

} // namespace zero::pipeline
