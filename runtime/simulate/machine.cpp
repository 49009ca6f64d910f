#include "runtime/simulate/machine.h"
#include "runtime/plan/error.h"
#include "runtime/simulate/machines.h"
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace zero::simulate {
namespace {

constexpr std::pair<const char *, double Machine::*> kNumbers[] = {
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

} // namespace

Machine parseMachine(const std::string &text, const std::string &name) {
  auto object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  std::string names = "like";
  for (auto [word, number] : kNumbers) names += ", " + std::string(word);
  if (!object.is_object())
    throw Error("'" + name + "' describes no machine: a JSON object with numbers for some of " + names + " is wanted");
  Machine machine;
  if (auto like = object.find("like"); like != object.end()) {
    const Machine *named = like->is_string() ? machineNamed(like->get<std::string>()) : nullptr;
    if (!named) throw Error("'" + name + "' is like no machine that is known by name, which are " + machineNames());
    machine = *named;
    object.erase(like);
  }
  for (const auto &[key, value] : object.items()) {
    auto known = std::find_if(std::begin(kNumbers), std::end(kNumbers), [&](const auto &number) { return key == number.first; });
    if (known == std::end(kNumbers)) throw Error("'" + name + "' says '" + key + "' of a machine, of which there are " + names);
    double given = value.is_number() ? value.get<double>() : 0;
    if (!(given > 0) || !std::isfinite(given)) throw Error("'" + name + "' gives '" + key + "' of a machine no number above 0");
    machine.*known->second = given;
  }
  return machine;
}

Machine readMachine(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  if (file) text << file.rdbuf();
  if (!file) throw Error("the machine's description '" + path + "' cannot be read; known by name are " + machineNames());
  return parseMachine(text.str(), path);
}

std::string print(const Machine &machine) {
  nlohmann::ordered_json object;
  for (auto [word, number] : kNumbers) object[word] = machine.*number;
  return object.dump(1);
}

} // namespace zero::simulate
