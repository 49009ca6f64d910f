// A wish to stop, from Ctrl-C or a batch system: kept until the step at hand is done. A second one ends the process.
#pragma once

namespace zero::runtime {

void catchInterrupts();
int interruption(); // SIGINT or SIGTERM if one has arrived, else 0

} // namespace zero::runtime
