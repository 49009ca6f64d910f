#include "runtime/train/tune.h"
#include "runtime/base/error.h"
#include "runtime/comm/collectively.h"
#include "runtime/engine/resolve.h"
#include "runtime/files/partial_file.h"
#include "runtime/plan/container.h"
#include "runtime/plan/mesh.h"
#include "runtime/plan/paths.h"
#include "runtime/plan/target.h"
#include <cstdio>
#include <fmt/format.h>

namespace zero::runtime {
namespace {

void checkAlone(const TrainOptions &options, int world) {
  if (world > 1)
    throw Error(
        fmt::format("--tune measures one GPU, and this run has {} ranks; start one process, once on a machine of each kind", world));
  for (auto [flag, given] : {std::pair("--data", options.data.has_value()),
                             {"--steps", options.steps.has_value()},
                             {"--resume", options.resume.has_value()},
                             {"--checkpoint", options.checkpoint.has_value()},
                             {"--eval-data", options.evalData.has_value()},
                             {"--metrics", options.metrics.has_value()},
                             {"--gradients", options.gradients.has_value()},
                             {"--trace", options.trace.has_value()},
                             {"--export", options.exportTo.has_value()}})
    if (given) throw Error(fmt::format("--tune measures and trains nothing; run it without {}, and train afterwards", flag));
}

// The plan's programs with places as they will be aligned: an arena begins at a whole page, and what differs between ranks are multiples of
// what all places are aligned to.
std::vector<DeviceProgram> programsOf(const plan::Plan &plan) {
  auto place = [&plan](const plan::Ref &ref) {
    const plan::Buffer &buffer = plan.buffers(static_cast<int>(ref.buffer()));
    return Address{buffer.arena(), buffer.offset() + plan::offsetOf(plan, ref, 0)};
  };
  std::vector<DeviceProgram> programs;
  for (const plan::Program &program : plan.programs()) programs.push_back(resolve(plan, program, place));
  return programs;
}

void writeWhole(const std::string &path, const std::string &text) {
  PartialFile partial(plan::replaceable(path));
  partial.file().write(0, text.data(), text.size());
  partial.publish();
}

} // namespace

MeasuredTable tableBeside(const std::string &plan) {
  MeasuredTable table{plan + ".tune", ""};
  if (!isThere(table.name)) return table;
  File file(table.name, File::Mode::Read);
  table.text.resize(file.size());
  file.read(0, table.text.data(), table.text.size());
  if (table.text.empty()) throw Error(fmt::format("'{}' is empty, and no table of algorithms for products; delete it", table.name));
  return table;
}

int tune(const TrainOptions &options, Communicator &communicator) {
  collectively(communicator, [&] {
    checkAlone(options, communicator.world());
    std::optional<plan::PublicKey> required;
    if (options.requireSignature) required = plan::readPublicKey(*options.requireSignature);
    plan::PlanFile file = plan::load(options.plan, required ? &*required : nullptr);
    const DeviceKind &device = deviceFor(file.plan.target(), options.plan);
    if (!device.tune)
      throw Error(fmt::format("'{}' was compiled for {}, whose products leave nothing to be measured; --tune is for plans for cuda",
                              options.plan, plan::targetName(file.plan.target().kind())));
    MeasuredTable known = tableBeside(options.plan);
    writeWhole(known.name, device.tune(programsOf(file.plan), known, [](const std::string &sentence) {
      fmt::print("{}\n", sentence);
      std::fflush(stdout);
    }));
    fmt::print("wrote {}\n", known.name);
  });
  return 0;
}

} // namespace zero::runtime
