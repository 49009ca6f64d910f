// For functions whose loops the compiler makes vector code of: one form for each level of x86-64 processors, of which the loader picks the
// best that this machine has. Files that use it are compiled so that all forms give the same bits.
#pragma once

// The thread sanitizer cannot start a program whose functions are picked by the loader.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define ZERO_EVERY_LEVEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ZERO_EVERY_LEVEL
#endif
