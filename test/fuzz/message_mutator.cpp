#include "test/fuzz/message_mutator.h"
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

namespace zero::fuzz {
namespace {

using Random = std::minstd_rand;

enum Wire { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

struct Field {
  uint64_t tag = 0;
  uint64_t value = 0;  // of a varint
  std::string payload; // of all others, without the length
  Wire wire() const { return Wire(tag & 7); }
};
using Message = std::vector<Field>;

std::optional<uint64_t> readVarint(std::string_view &in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    auto byte = uint8_t(in.front());
    in.remove_prefix(1);
    value |= uint64_t(byte & 127) << shift;
    if (byte < 128) return value;
  }
  return std::nullopt;
}

void writeVarint(std::string &out, uint64_t value) {
  for (; value > 127; value >>= 7) out += char(value | 128);
  out += char(value);
}

std::optional<Message> read(std::string_view in) {
  Message message;
  while (!in.empty()) {
    auto tag = readVarint(in);
    if (!tag || *tag >> 3 == 0) return std::nullopt;
    Field field{.tag = *tag};
    uint64_t length = 0;
    switch (field.wire()) {
    case Varint:
      if (auto value = readVarint(in))
        field.value = *value;
      else
        return std::nullopt;
      break;
    case Fixed64:
      length = 8;
      break;
    case Fixed32:
      length = 4;
      break;
    case Bytes:
      if (auto value = readVarint(in))
        length = *value;
      else
        return std::nullopt;
      break;
    default:
      return std::nullopt;
    }
    if (length > in.size()) return std::nullopt;
    field.payload = in.substr(0, length);
    in.remove_prefix(length);
    message.push_back(std::move(field));
  }
  return message;
}

std::string write(const Message &message) {
  std::string out;
  for (const Field &field : message) {
    writeVarint(out, field.tag);
    if (field.wire() == Varint) writeVarint(out, field.value);
    if (field.wire() == Bytes) writeVarint(out, field.payload.size());
    out += field.payload;
  }
  return out;
}

uint64_t otherNumber(uint64_t number, Random &random) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  constexpr uint64_t kChoices[] = {0,     1,        2, 7, 64, 1u << 16, kMost >> 33, kMost >> 32, 1ull << 40, kMost >> 1, (kMost >> 1) + 1,
                                   kMost, kMost - 1};
  switch (random() % 4) {
  case 0:
    return number + 1;
  case 1:
    return number - 1;
  case 2:
    return number ^ 1ull << random() % 64;
  default:
    return kChoices[random() % std::size(kChoices)];
  }
}

// Another value for what is not a message: a name, a number, packed numbers, the bytes of a tensor.
void changeLeaf(Field &field, Random &random) {
  if (field.wire() == Varint) {
    field.value = otherNumber(field.value, random);
    return;
  }
  size_t size = field.payload.size();
  if (field.wire() == Bytes) field.payload.resize(size + 16);
  std::string &bytes = field.payload;
  size_t changed = LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(bytes.data()), size, bytes.size());
  if (field.wire() == Bytes) bytes.resize(changed);
}

// Fields of one kind occur many times (nodes, names, dimensions), so a field and its neighbours are worth exchanging.
void change(Message &message, Random &random) {
  if (message.empty()) return;
  size_t at = random() % message.size(), other = random() % message.size();
  // Deeper first: messages hold most of their meaning in messages.
  if (message[at].wire() == Bytes && random() % 8)
    if (auto inner = read(message[at].payload); inner && !inner->empty()) {
      change(*inner, random);
      message[at].payload = write(*inner);
      return;
    }
  switch (random() % 8) {
  case 0:
    message.erase(message.begin() + std::ptrdiff_t(at));
    return;
  case 1:
    message.insert(message.begin() + std::ptrdiff_t(other), Field(message[at]));
    return;
  case 2:
    std::swap(message[at], message[other]);
    return;
  case 3:
    message[at].tag ^= uint64_t(8) << random() % 5;
    return;
  case 4: {
    if (message[at].wire() == message[other].wire()) message[at].payload = message[other].payload, message[at].value = message[other].value;
    return;
  }
  default:
    changeLeaf(message[at], random);
  }
}

} // namespace

size_t mutateMessage(uint8_t *data, size_t size, size_t most, unsigned seed) {
  Random random(seed);
  auto message = read({reinterpret_cast<const char *>(data), size});
  if (!message || message->empty() || random() % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  for (size_t changes = 1 + random() % 3; changes; --changes) change(*message, random);
  std::string bytes = write(*message);
  if (bytes.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

} // namespace zero::fuzz
