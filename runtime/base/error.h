// The one exception of the runtime: a sentence for people, printed as it is by `main`.
#pragma once
#include <stdexcept>
#include <string>

namespace zero {

class Error : public std::runtime_error {
public:
  explicit Error(const std::string &sentence) : std::runtime_error(sentence) {}
};

} // namespace zero
