// A wish to stop, from Ctrl-C, a terminal that went away or a batch system: kept until the step at hand is done. A second
// one ends the process. SIGUSR1 is what batch systems send before the time is up, and what mpirun hands on to its ranks.
#pragma once

namespace zero::runtime {

// `speaks`: say at once that the wish was heard, because a step may be long. Not where launchers end ranks by signals.
void catchInterrupts(bool speaks);
int interruption(); // the signal if one has arrived, else 0

} // namespace zero::runtime
