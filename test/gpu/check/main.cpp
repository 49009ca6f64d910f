// gpu-check: measures a machine with a GPU and holds what plans compute on it against references. test/gpu/run.sh calls its commands one by
// one.
#include "test/gpu/check/check.h"
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace zero::check {

Arguments::Arguments(int count, char **values) {
  for (int i = 0; i < count; ++i) {
    std::string text = values[i];
    if (!text.starts_with("--"))
      names.push_back(text);
    else if (++i < count)
      flags[text] = values[i];
    else
      throw BadUsage(text + " wants a value");
  }
}

std::string Arguments::text(const std::string &flag, const std::string &otherwise) const {
  auto found = flags.find(flag);
  return found == flags.end() ? otherwise : found->second;
}

double Arguments::number(const std::string &flag, double otherwise) const {
  std::string text = this->text(flag);
  double value = otherwise;
  if (text.empty()) return value;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) throw BadUsage(flag + " wants a number, not '" + text + "'");
  return value;
}

Limits::Limits(std::string path) : path(std::move(path)) {
  std::ifstream in(this->path);
  if (!this->path.empty() && in) values = nlohmann::json::parse(in).get<std::map<std::string, double>>();
}

double Limits::of(const std::string &name) const {
  auto found = values.find(name);
  return found == values.end() ? 0 : found->second;
}

void Limits::raise(const std::string &name, double value) {
  values[name] = std::max(values[name], value);
  if (!path.empty()) std::ofstream(path) << nlohmann::json(values).dump(1) << "\n";
}

double Stopwatch::seconds(const std::function<void(cuda::StreamHandle)> &work) {
  const cuda::Driver &driver = cuda::Driver::get();
  std::vector<double> times;
  work(own.get()); // once without being timed: what is done at first use is not measured
  for (int i = 0; i < repeats; ++i) {
    driver.require(driver.eventRecord(begin.get(), own.get()), "cannot measure time");
    work(own.get());
    driver.require(driver.eventRecord(end.get(), own.get()), "cannot measure time");
    driver.require(driver.eventSynchronize(end.get()), "the GPU failed");
    float milliseconds = 0;
    driver.require(driver.eventElapsedTime(&milliseconds, begin.get(), end.get()), "cannot measure time");
    times.push_back(double(milliseconds) / 1e3);
  }
  std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
  return std::max(times[size_t(repeats / 2)], 1e-9);
}

void Stopwatch::synchronize() const {
  const cuda::Driver &driver = cuda::Driver::get();
  driver.require(driver.streamSynchronize(own.get()), "the GPU failed");
}

namespace {

struct Command {
  const char *name;
  void (*run)(const Arguments &);
  const char *usage;
};
constexpr Command kCommands[] = {
    {"machine", machine, "                                      GPUs, driver and libraries, with their versions"},
    {"copies", copies, "[--mib N] [--limits FILE]              bytes in a second: on the device, from the host, to it, both at once"},
    {"products", products,
     "PLAN… [--square N] [--limits FILE]     each matrix product of the plans, held against sums in double, and flops in a second"},
    {"kernels", kernels,
     "PLAN NAME [--limits FILE --large N]    each kernel held against NAME.so and NAME.json of gpu-reference; with limits, those that move "
     "N bytes timed"},
    {"training", training,
     "FOLDER PRECISION RUN                   RUN.jsonl and RUN.gradients.safetensors of zerorun against PyTorch's in FOLDER"},
    {"equal", equal, "RUN RUN…                               losses, gradients and parameters of runs are equal to the bit"},
    {"speed", speed, "RUN --flops-per-token N [--limits FILE] [--peak FLOPS]  what a run reached"},
    {"slowest", slowest, "PLAN TRACE [--limits FILE]             the ten steps that took longest, and what they reached"},
    {"room", room, "[PLAN --disk FOLDER] [--gpus N] [--processors N]  whether this machine has what a run of the plan takes"},
    {"tiers", tiers,
     "PLAN RUN                               what lanes did and tiers gave in a run of a plan with state outside of the GPU"},
};

int usage(const std::string &why) {
  std::fprintf(stderr, "gpu-check: %s; the commands are\n", why.c_str());
  for (const Command &command : kCommands) std::fprintf(stderr, "  gpu-check %-9s %s\n", command.name, command.usage);
  std::fprintf(stderr, "  gpu-check %-9s %s\n", "watch",
               "FILE COMMAND…                          runs a command; memory that it took goes into FILE: bytes of GPU, host and disk");
  return kUsage;
}

} // namespace
} // namespace zero::check

int main(int count, char **values) {
  using namespace zero::check;
  if (count < 2) return usage("a command is missing");
  std::string name = values[1];
  try {
    if (name == "watch") return watch(count - 2, values + 2);
    for (const Command &command : kCommands)
      if (name == command.name) return command.run(Arguments(count - 2, values + 2)), kPassed;
    return usage("there is no command '" + name + "'");
  } catch (const BadUsage &error) {
    return usage(error.what());
  } catch (const NotRun &error) {
    std::fflush(stderr);
    std::printf("%s\n", error.what());
    return kNotRun;
  } catch (const std::exception &error) {
    std::fflush(stderr);
    std::printf("%s\n", error.what());
    return kFailed;
  }
}
