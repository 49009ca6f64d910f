// zerorun on a device that completes operations in any order their waits allow (virtual_device.h); run by test/e2e/seam.py.
// usage: virtual_run PLAN DATA STEPS EXPORT SEED [own|entry WAIT]: without wait number WAIT of the last program of a step, or of the entries
// by which its programs follow each other.
#include "runtime/process/streams.h"
#include "runtime/train/run.h"
#include "test/unit/virtual_device.h"
#include <cstdio>
#include <cstdlib>

using namespace zero;
using namespace zero::runtime;

namespace {

// Exit status 3 if there are no more.
void removeWait(plan::Program &program, uint64_t number) {
  for (plan::Step &step : *program.mutable_steps())
    for (int i = 0; i < step.waits_size(); ++i)
      if (number-- == 0) {
        std::printf("'%s' of lane %d no longer waits for lane %d\n", step.name().c_str(), step.lane(), step.waits(i).lane());
        step.mutable_waits()->DeleteSubrange(i, 1);
        return;
      }
  std::exit(3);
}

void removeEntryWait(plan::Plan &plan, const std::vector<uint32_t> &programs, uint64_t number) {
  for (size_t i = 0; i < programs.size(); ++i)
    for (plan::Entry &entry : *plan.mutable_programs(static_cast<int>(programs[i]))->mutable_entries()) {
      if (entry.after() != programs[(i + programs.size() - 1) % programs.size()]) continue;
      if (number >= static_cast<uint64_t>(entry.waits_size())) {
        number -= static_cast<uint64_t>(entry.waits_size());
        continue;
      }
      auto at = static_cast<int>(number);
      std::printf("step %u of program %u no longer waits for lane %d of program %u\n", entry.waits(at).step(), programs[i],
                  entry.waits(at).lane(), entry.after());
      entry.mutable_waits()->DeleteSubrange(at, 1);
      return;
    }
  std::exit(3);
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 6) return 2;
  std::unique_ptr<CommunicatorFactory> factory = connect();
  try {
    TrainOptions options;
    options.plan = argv[1], options.data = argv[2], options.steps = std::strtoull(argv[3], nullptr, 10), options.exportTo = argv[4];
    options.lr = 1e-2;
    std::unique_ptr<Communicator> communicator = factory->create();
    Setup setup;
    prepare(options, factory->world(), setup);
    if (argc > 7) {
      plan::Plan &plan = setup.file.plan;
      uint64_t number = std::strtoull(argv[7], nullptr, 10);
      if (std::string(argv[6]) == "own")
        removeWait(*plan.mutable_programs(static_cast<int>(setup.programs.micros.back())), number);
      else
        removeEntryWait(plan, setup.programs.micros, number);
    }
    test::VirtualDevice device(setup.file.plan, std::strtoull(argv[5], nullptr, 10));
    int status = Run(options, setup, device, *factory, *communicator).train();
    communicator.reset();
    factory->finalize();
    return status;
  } catch (const std::exception &error) {
    complain(std::string("virtual_run: ") + error.what());
    factory->abort();
  }
}
