// What attention and its gradient do with rows that see nothing but what is hidden: the compiler and every device ask here, so that they agree.
#pragma once

namespace zero::plan {

// Where no score of a row is as high as this, masks hide all that it sees by finite numbers, as before a sample that is padded in front.
// f32 does not hold a score beside such a number, so that a softmax weighs all of these keys alike, and its gradient is what equal weights
// give.
inline constexpr float kHidden = -1e5f;

// Nor does it hold beside it the log of how many keys there are. In place of the log of the sum of exponentials such a row has this, from
// which the gradient takes the weight of each; -inf has the weight 0.
inline constexpr float kHiddenKey = 0x1p100f;
inline constexpr float lseOfHidden(float keys) { return -kHiddenKey * keys; }
inline constexpr float weightOfHidden(float lse) { return kHiddenKey / -lse; }

} // namespace zero::plan
