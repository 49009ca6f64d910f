// An exception that nobody may catch, as of a thread that has no more memory in the middle of its end.
#pragma once

namespace zero::runtime {

// From now on it ends the process with its sentence and status 1, in place of SIGABRT.
void endInASentence();

} // namespace zero::runtime
