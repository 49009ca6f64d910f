#include "runtime/simulate/machine.h"
#include <nlohmann/json.hpp>

namespace zero::simulate {

std::span<const std::pair<const char *, double Machine::*>> machineNumbers() {
  static constexpr std::pair<const char *, double Machine::*> numbers[] = {
      {"products_f32", &Machine::productsF32},
      {"products_tf32", &Machine::productsTf32},
      {"products_bf16", &Machine::productsBf16},
      {"memory", &Machine::memory},
      {"host_memory", &Machine::hostMemory},
      {"step", &Machine::step},
      {"link", &Machine::link},
      {"link_latency", &Machine::linkLatency},
      {"to_device", &Machine::toDevice},
      {"to_host", &Machine::toHost},
      {"disk_read", &Machine::diskRead},
      {"disk_write", &Machine::diskWrite},
      {"disk_request", &Machine::diskRequest},
  };
  return numbers;
}

std::string print(const Machine &machine) {
  nlohmann::ordered_json object;
  for (auto [word, number] : machineNumbers()) object[word] = machine.*number;
  return object.dump(1);
}

} // namespace zero::simulate
