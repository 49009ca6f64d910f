// Which rows of attention see nothing: the compiler and every device ask here, so that they agree.
#pragma once

namespace zero::plan {

// A row whose log of the sum of exponentials is below this sees nothing but keys that its mask hides by a large finite number, as a row of
// padding in front of a sample does. f32 cannot hold that number and the log of how many keys there are together, so that in the gradient
// each key would weigh as much as all of them: such a row passes no gradient on. Real scores are never as low.
inline constexpr float kHidden = -1e5f;

} // namespace zero::plan
