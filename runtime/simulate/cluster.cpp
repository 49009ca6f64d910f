#include "runtime/simulate/cluster.h"
#include "runtime/base/error.h"
#include "runtime/files/file.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/simulate/machines.h"
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace zero::simulate {
namespace {

using Json = nlohmann::json;

constexpr std::pair<const char *, plan::Tier> kBytes[] = {
    {"device_bytes", plan::DEVICE}, {"host_bytes", plan::HOST}, {"disk_bytes", plan::DISK}};

std::string rankNames() {
  std::string names;
  for (auto [word, number] : machineNumbers()) names += (names.empty() ? "" : ", ") + std::string(word);
  return names;
}

std::string allNames() {
  std::string names = "like, " + rankNames() + ", ranks_per_node, network, variation";
  for (auto [word, tier] : kBytes) names += ", " + std::string(word);
  return names + ", ranks";
}

/// Takes values out of an object, so that what is left is known to nobody.
class Reader {
public:
  Reader(Json object, const std::string &name, std::string of) : object(std::move(object)), name(name), of(std::move(of)) {}

  std::optional<Json> take(const std::string &key) {
    auto found = object.find(key);
    if (found == object.end()) return std::nullopt;
    Json value = std::move(*found);
    object.erase(found);
    return value;
  }

  /// A number above 0, or from 0 on.
  void number(const std::string &key, double &into, bool mayBeZero = false) {
    std::optional<Json> value = take(key);
    if (!value) return;
    double given = value->is_number() ? value->get<double>() : -1;
    if (!(given > 0 || (mayBeZero && given == 0)) || !std::isfinite(given))
      throw Error("'" + name + "' gives '" + key + "' of " + of + " no number " + (mayBeZero ? "from 0 on" : "above 0"));
    into = given;
  }

  void machine(Machine &into) {
    for (auto [word, member] : machineNumbers()) number(word, into.*member);
  }

  void end(const std::string &names) const {
    if (!object.empty()) throw Error("'" + name + "' says '" + object.begin().key() + "' of " + of + ", of which there are " + names);
  }

private:
  Json object;
  const std::string &name;
  std::string of;
};

void readRanks(const Json &ranks, const std::string &name, Cluster &cluster) {
  if (!ranks.is_object())
    throw Error("'" + name + "' has no object of ranks and what is different of them in 'ranks', as {\"17\": {\"memory\": 5e9}} is");
  for (const auto &[key, numbers] : ranks.items()) {
    uint64_t rank = 0;
    auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), rank);
    if (error != std::errc() || end != key.data() + key.size())
      throw Error("'" + name + "' has '" + key + "' in 'ranks', which is no rank");
    if (!numbers.is_object())
      throw Error("'" + name + "' says nothing of rank " + key + ": an object with numbers for some of " + rankNames() + " is wanted");
    Machine machine = cluster.rank;
    Reader reader(numbers, name, "rank " + key);
    reader.machine(machine);
    reader.end(rankNames());
    cluster.others[rank] = machine;
  }
}

} // namespace

const Machine &Cluster::machineOf(uint64_t at) const {
  auto other = others.find(at);
  return other == others.end() ? rank : other->second;
}

Machine amongRanks(const Cluster &cluster, const Machine &machine, uint64_t world) {
  Machine limited = machine;
  if (world <= cluster.ranksPerNode) return limited;
  limited.link = std::min(limited.link, cluster.network);
  auto here = double(cluster.ranksPerNode), all = double(world);
  limited.exchange = cluster.network * (all - 1) / (here * (all - here));
  return limited;
}

Cluster parseCluster(const std::string &text, const std::string &name) {
  auto object = Json::parse(text, nullptr, /*allow_exceptions=*/false, /*ignore_comments=*/true);
  if (!object.is_object())
    throw Error("'" + name + "' describes no machine: a JSON object with numbers for some of " + allNames() + " is wanted");
  Reader reader(std::move(object), name, "a machine");
  Cluster cluster;
  if (std::optional<Json> like = reader.take("like")) {
    const Cluster *named = like->is_string() ? clusterNamed(like->get<std::string>()) : nullptr;
    if (!named) throw Error("'" + name + "' is like no machine that is known by name, which are " + machineNames());
    cluster = *named;
  }
  reader.machine(cluster.rank);
  if (std::optional<Json> each = reader.take("ranks_per_node")) {
    if (!each->is_number_unsigned() || *each == 0) throw Error("'" + name + "' gives 'ranks_per_node' no whole number from 1 on");
    cluster.ranksPerNode = each->get<uint64_t>();
  }
  reader.number("network", cluster.network);
  reader.number("variation", cluster.variation, /*mayBeZero=*/true);
  for (auto [word, tier] : kBytes) {
    double bytes = 0;
    reader.number(word, bytes);
    if (bytes > 0) cluster.bytes[tier] = bytes;
  }
  if (std::optional<Json> ranks = reader.take("ranks")) readRanks(*ranks, name, cluster);
  reader.end(allNames());
  return cluster;
}

Cluster readCluster(const std::string &path) {
  std::string text;
  try {
    text = runtime::readText(path);
  } catch (const Error &error) {
    throw Error("the machine's description cannot be read: " + std::string(error.what()) + "; known by name are " + machineNames());
  }
  return parseCluster(text, path);
}

} // namespace zero::simulate
