// How many files this process may have open.
#pragma once

namespace zero::runtime {

// As many as it may allow itself: some models keep each of a thousand weights in a file of its own.
void raiseFileLimit();

} // namespace zero::runtime
