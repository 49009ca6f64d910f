// What the fake reads of PTX: that it has a kernel, and the arrays beside them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace zero::fake {

bool isPtx(const std::string &text);
bool hasKernel(const std::string &text, const std::string &symbol);
// The bytes of a global array of integers (`.global .align 8 .u64 NAME[N] = {…}`, or .b8 and others), what is not said of it zero.
std::optional<std::vector<std::byte>> arrayOf(const std::string &text, const std::string &symbol);

} // namespace zero::fake
