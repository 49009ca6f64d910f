// What attention and its gradient, wherever they run, take for hidden.
#pragma once

namespace zero::plan {

// A row of attention whose log of the sum of exponentials is less than this sees nothing but what its mask hides by a finite number, as padding in
// front of a sample does. f32 does not hold such a score and the log of how many there are beside each other, so that each would weigh as much as
// all: the row passes no gradient on. No score is as low.
inline constexpr float kHidden = -1e5f;

} // namespace zero::plan
