// Signals belong to one thread that waits for them, and are blocked in all others, those of libraries included. A handler would
// run on the stack of whichever thread it interrupts, and that may be no stack: the library of products runs with its stack pointer
// inside a block of the heap, whose neighbours the kernel's frame for the handler would overwrite.
#pragma once

namespace zero::runtime {

// Early in main, before any other thread exists, because threads inherit what is blocked. From here on
// - SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are waited for, except those that were ignored (nohup, a shell's background job). Until
//   catchInterrupts() they end the process as they would have;
// - a broken pipe and a limit on the size of files show as the error of a write;
// - a mapped file that shrinks, or whose disk fails, ends the process with a sentence.
// A child process gets the signals as this one has found them. Throws a sentence if the waiting thread cannot be made.
void ownSignals();

// From now on a signal is a request to stop, kept until the step at hand is done; the same one once more ends the process. SIGUSR1 is what
// batch systems send before the time is up, and what mpirun hands on to its ranks.
// `speaks`: say at once that it was received, because a step may be long. Not where launchers end ranks by signals.
void catchInterrupts(bool speaks);
int interruption(); // the signal if one has arrived, else 0

} // namespace zero::runtime
