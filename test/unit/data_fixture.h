// Data files made byte by byte, a plan of tokens, and the memory of its inputs.
#pragma once
#include "runtime/base/error.h"
#include "runtime/data/dataset.h"
#include "runtime/data/element.h"
#include "runtime/data/feeder.h"
#include "runtime/data/safetensors.h"
#include "runtime/data/tensor_file.h"
#include "test/unit/run_fixtures.h"
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

namespace zero::test {

using namespace zero::runtime;

template <class T> std::string raw(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
}

inline std::string safetensors(const std::string &header, const std::string &data) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<char *>(&length), 8) + header + data;
}

inline std::string npy(const std::string &descr, const std::string &shape, const std::string &data, int version = 1) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}\n", descr, shape);
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  auto length = static_cast<uint32_t>(header.size());
  out.append(reinterpret_cast<char *>(&length), version == 1 ? 2 : 4);
  return out + header + data;
}

template <class T> void put(std::string &out, T value) { out.append(reinterpret_cast<char *>(&value), sizeof value); }

inline std::string zip(const std::vector<std::pair<std::string, std::string>> &members, bool deflated) {
  std::string out, directory;
  for (const auto &[name, data] : members) {
    std::string packed = data;
    if (deflated) {
      z_stream stream{};
      deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
      packed.resize(data.size() + 100);
      stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(data.data())), stream.avail_in = static_cast<uInt>(data.size());
      stream.next_out = reinterpret_cast<Bytef *>(packed.data()), stream.avail_out = static_cast<uInt>(packed.size());
      deflate(&stream, Z_FINISH);
      packed.resize(packed.size() - stream.avail_out);
      deflateEnd(&stream);
    }
    auto crc = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef *>(data.data()), data.size()));
    std::string common; // the fields both headers share
    put<uint16_t>(common, 20), put<uint16_t>(common, 0), put<uint16_t>(common, deflated ? 8 : 0), put<uint32_t>(common, 0),
        put(common, crc);
    put(common, static_cast<uint32_t>(packed.size())), put(common, static_cast<uint32_t>(data.size()));
    put(common, static_cast<uint16_t>(name.size())), put<uint16_t>(common, 0);
    auto local = static_cast<uint32_t>(out.size());
    out += "PK\3\4" + common + name + packed;
    directory += "PK\1\2";
    put<uint16_t>(directory, 20);
    directory += common;
    put<uint16_t>(directory, 0), put<uint16_t>(directory, 0), put<uint16_t>(directory, 0), put<uint32_t>(directory, 0),
        put(directory, local);
    directory += name;
  }
  auto at = static_cast<uint32_t>(out.size());
  out += directory + "PK\5\6";
  put<uint32_t>(out, 0);
  put(out, static_cast<uint16_t>(members.size())), put(out, static_cast<uint16_t>(members.size()));
  put(out, static_cast<uint32_t>(directory.size())), put(out, at), put<uint16_t>(out, 0);
  return out;
}

// tokens [batch x 4], labels [batch x 4].
inline plan::Plan tokenPlan(uint32_t world, uint32_t accumulate, uint64_t batch, int64_t vocabulary = 1000) {
  plan::Plan plan;
  plan.set_world(world), plan.set_accumulate(accumulate), plan.set_samples(batch);
  plan::Loss *loss = plan.add_losses();
  loss->set_kind(plan::CROSS_ENTROPY), loss->set_ignore_index(-100), loss->set_labels("labels");
  auto add = [&](const char *name, plan::Input::Role role, plan::DType type, std::vector<int64_t> shape) {
    plan::Input *input = plan.add_inputs();
    input->set_name(name), input->set_role(role), input->set_dtype(type);
    uint64_t bytes = sizeOf(type);
    for (int64_t extent : shape) input->add_shape(extent), bytes *= static_cast<uint64_t>(extent);
    input->mutable_ref()->set_buffer(static_cast<uint32_t>(plan.inputs_size() - 1)), input->mutable_ref()->set_bytes(bytes);
    return input;
  };
  auto b = static_cast<int64_t>(batch);
  add("tokens", plan::Input::DATA, plan::I64, {b, 4})->set_limit(vocabulary);
  add("labels", plan::Input::LABELS, plan::I64, {b, 4})->set_limit(vocabulary);
  add("scale", plan::Input::LOSS_SCALE, plan::F32, {1});
  add("seed", plan::Input::SEED, plan::I64, {2});
  return plan;
}

// The inputs of a plan, to be looked at.
struct InputValues {
  explicit InputValues(const plan::Plan &plan) : memory(Inputs::bytesOf(plan)), inputs(plan, memory) {}
  std::vector<std::byte> memory;
  Inputs inputs;
  template <class T> std::vector<T> as(int input) {
    std::span<std::byte> bytes = inputs.of(input);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

} // namespace zero::test
