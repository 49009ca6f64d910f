#include "runtime/comm/tcp/environment.h"
#include "runtime/base/error.h"
#include "runtime/comm/tcp/secret.h"
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

namespace zero::runtime {
namespace {

const char *given(const char *name) {
  const char *value = std::getenv(name);
  return value && *value ? value : nullptr;
}

int64_t number(const char *name, const char *text, int64_t least, int64_t most, const std::string &meaning) {
  int64_t value = 0;
  const char *end = text + std::strlen(text);
  auto [stopped, error] = std::from_chars(text, end, value);
  if (error == std::errc() && stopped == end && value >= least && value <= most) return value;
  throw Error(fmt::format("{}='{}' in the environment is no {} from {} to {}", name, text, meaning, least, most));
}

const char *required(const char *name, int64_t world, const char *meaning) {
  if (const char *text = given(name)) return text;
  throw Error(
      fmt::format("WORLD_SIZE={} in the environment says that this is one of {} ranks, but {}, {}, is not set; set it, or start with "
                  "mpirun -np {} zerorun …, or unset WORLD_SIZE",
                  world, world, name, meaning, world));
}

} // namespace

bool environmentIsComplete() { return given("WORLD_SIZE") && given("RANK") && given("MASTER_ADDR"); }

bool startedByTorchrun() { return environmentIsComplete() && given("TORCHELASTIC_RUN_ID"); }

std::optional<Membership> membershipFromEnvironment() {
  const char *size = given("WORLD_SIZE");
  if (!size) {
    if (given("RANK") && given("MASTER_ADDR"))
      throw Error(
          fmt::format("RANK={} and MASTER_ADDR in the environment say that this is one of several ranks, but WORLD_SIZE, their number, "
                      "is not set; set it, or unset RANK",
                      given("RANK")));
    return std::nullopt;
  }
  Membership result;
  result.world = static_cast<int>(number("WORLD_SIZE", size, 1, kMaxWorld, "number of ranks"));
  const char *rank = result.world == 1 && !given("RANK") ? "0" : required("RANK", result.world, "the number of this rank");
  result.rank = static_cast<int>(number("RANK", rank, 0, result.world - 1, "rank"));
  if (result.world == 1) return result;
  result.host = required("MASTER_ADDR", result.world, "the machine of rank 0");
  if (const char *port = given("MASTER_PORT")) result.port = static_cast<uint16_t>(number("MASTER_PORT", port, 1, 65535, "port"));
  if (const char *store = given("TORCHELASTIC_USE_AGENT_STORE"); store && std::strcmp(store, "True") == 0) {
    result.portNote = fmt::format(" (torchrun itself listens at {}, so zerorun takes the port beside it)", result.port);
    result.port = static_cast<uint16_t>(result.port == 65535 ? 65534 : result.port + 1);
  }
  // torchrun's ranks of one machine may know it by a name that others can reach as well.
  const char *here = given("LOCAL_WORLD_SIZE");
  if (startedByTorchrun() && here && std::strcmp(here, size) == 0) result.host = "127.0.0.1";
  result.secret = secretFromEnvironment();
  if (result.secret.empty() && !namesLoopback(result.host))
    throw Error(
        fmt::format("MASTER_ADDR='{}' can be reached from other machines, so the ranks need a secret by which they know each other; "
                    "set ZERORUN_SECRET, or ZERORUN_SECRET_FILE to a file that holds it, to the same for all ranks: `openssl rand "
                    "-hex 32` makes one",
                    result.host));
  if (const char *seconds = given("ZERORUN_START_TIMEOUT"))
    result.limits.giveUp = std::chrono::seconds(number("ZERORUN_START_TIMEOUT", seconds, 1, 86400, "number of seconds"));
  return result;
}

} // namespace zero::runtime
