//===- gelu.h - GELU of one number -----------------------------------------------------------------===//
#pragma once
#include <cmath>
#include <numbers>

namespace zero::nn {

inline constexpr double kSqrtTwoOverPi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kGeluCubic = 0.044715;

/// In the tanh form: x s with s = sigmoid(2 u) and u = sqrt(2/pi) (x + a x^3), which is x/2 (1 + tanh u).
inline double tanhGelu(double x) { return x / (1 + std::exp(-2 * kSqrtTwoOverPi * (x + kGeluCubic * x * x * x))); }
/// How it rises: s + x s (1 - s) 2 u'.
inline double tanhGeluSlope(double x) {
  double s = 1 / (1 + std::exp(-2 * kSqrtTwoOverPi * (x + kGeluCubic * x * x * x)));
  return s + x * s * (1 - s) * 2 * kSqrtTwoOverPi * (1 + 3 * kGeluCubic * x * x);
}

/// Exactly: x Phi(x), and Phi(x) + x phi(x).
inline double erfGelu(double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }
inline double erfGeluSlope(double x) {
  return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

} // namespace zero::nn
