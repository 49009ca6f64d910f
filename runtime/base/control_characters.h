// Characters that command a terminal: what is printed of a stranger's must have none.
#pragma once
#include <cstddef>
#include <string_view>

namespace zero {

// Bytes of the control character that begins at text[at], in UTF-8 (U+0000 to U+001F, U+007F to U+009F); 0: none does.
inline size_t controlBytes(std::string_view text, size_t at) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  if (byte(at) < ' ' || byte(at) == 127) return 1;
  return byte(at) == 0xc2 && byte(at + 1) >= 0x80 && byte(at + 1) < 0xa0 ? 2 : 0;
}

} // namespace zero
