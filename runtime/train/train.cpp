#include "runtime/train/train.h"
#include "runtime/comm/patience.h"
#include "runtime/footprint/footprint.h"
#include "runtime/process/addresses.h"
#include "runtime/process/file_limit.h"
#include "runtime/process/signals.h"
#include "runtime/process/streams.h"
#include "runtime/train/agreement.h"
#include "runtime/train/resume.h"
#include "runtime/train/run.h"
#include "runtime/train/same_files.h"
#include "runtime/train/tune.h"
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <thread>

namespace zero::runtime {
namespace {

void complainAlone(const std::string &sentence, CommunicatorFactory &factory) {
  std::fflush(stdout);
  factory.sayLast(fmt::format("zerorun: {}{}", factory.world() > 1 ? fmt::format("rank {}: ", factory.rank()) : "", sentence));
}

// All ranks that wait give up at about the same time, and each has its own to say: none ends the others before.
void letOthersSpeak() { std::this_thread::sleep_for(std::chrono::seconds(2)); }

// GPUs that wait for another one keep working, whatever their processes wait for meanwhile; so a rank of this machine that is stopped is
// given up after 15 looks, which are a second apart. One on a CPU costs nothing while it waits.
void giveUpStoppedRanks(const plan::Target &target) {
  if (target.kind() != plan::Target::CUDA) return;
  PatienceLimits limits = usualPatience();
  limits.stopped = 15;
  setPatience(limits);
}

} // namespace

int train(const TrainOptions &options, CommunicatorFactory &factory) {
  std::unique_ptr<Communicator> communicator = factory.create();
  Setup setup;
  std::unique_ptr<Device> device;
  bool several = factory.world() > 1;
  if (several) { // before any of it is used
    requireSame(*communicator, flagSettings(options));
    requireSame(*communicator, inputFiles(options));
  }
  if (options.tune) return tune(options, *communicator);
  collectively(*communicator, [&] {
    prepare(options, factory.world(), setup);
    setup.diskFolders = diskFolders(options, setup.file.plan);
    auto beside = [&setup](int threads) {
      return Beside{bytesOf(besideArenas(setup.file, threads)), mappedBesideArenas(setup.file, threads)};
    };
    device = setup.device->make({options.threads, factory.neighbours(), factory.rank(), factory.world(), beside, setup.diskFolders,
                                 !options.noGraphs, setup.measured});
    device->requireTarget(setup.file.plan.target());
  });
  giveUpStoppedRanks(setup.file.plan.target());
  collectively(*communicator, [&] {
    if (factory.rank() == 0) tryResults(options, setup.file.plan, setup.steps);
  });
  chooseCheckpoints(options, *communicator, setup);
  if (several) {
    requireSame(*communicator, stateFiles(options, setup));
    requireSharedFolders(*communicator, options);
  }
  catchInterrupts(factory.world() == 1);
  std::optional<Run> run; // outlives a failure: the others may be waiting inside the engine's communicators
  try {
    run.emplace(options, setup, *device, factory, *communicator);
    factory.closeListeners();
    return run->train();
  } catch (const ReportedElsewhere &) {
    throw;
  } catch (const CollectiveError &) {
    throw;
  } catch (const TimedOut &error) {
    complainAlone(error.what(), factory);
    letOthersSpeak();
  } catch (const std::exception &error) {
    complainAlone(sentenceOf(error), factory);
  }
  if (run) run->giveUp();
  factory.abort();
  return 1; // not reached
}

int runProcess(const TrainOptions &options) {
  std::unique_ptr<CommunicatorFactory> factory;
  PatienceLimits limits;
  limits.giveUp = std::chrono::seconds(options.timeout);
  setPatience(limits);
  raiseFileLimit();
  try {
    factory = connect();
  } catch (const RankError &error) {
    complain(fmt::format("zerorun: {}", error.what()));
    return 1;
  } catch (const std::exception &error) {
    complainOnce(fmt::format("zerorun: {}", sentenceOf(error)));
    return 1;
  }
  // A launcher must learn of a refusal from abort(), not from exit statuses: those it may confuse when all ranks end at once.
  try {
    int status = train(options, *factory);
    factory->finalize();
    return status;
  } catch (const ReportedElsewhere &) {
    factory->awaitAbort();
  } catch (const std::exception &error) {
    std::fflush(stdout);
    factory->sayLast(fmt::format("zerorun: {}", sentenceOf(error)));
    if (dynamic_cast<const TimedOut *>(&error)) letOthersSpeak();
    factory->abort();
  }
  return 1; // not reached
}

} // namespace zero::runtime
