// What a run says before its first step and after its last: memory, disks, data.
#include "runtime/base/bytes.h"
#include "runtime/data/show.h"
#include "runtime/process/streams.h"
#include "runtime/train/run.h"
#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zero::runtime {

void Run::announce() {
  if (options.resume && !setup.resumedFrom) say(fmt::format("no checkpoint in {} yet: the run starts at its beginning", *options.resume));
  if (setup.resumedFrom)
    say(fmt::format("resumed from {} at step {}{}", *setup.resumedFrom, at.step,
                    setup.steps > 0 && at.step == setup.steps ? ", the last one: nothing is left to train" : ""));
  for (const std::string &sentence : changed) say(sentence);
  if (metrics && !metrics->before().empty()) say(fmt::format("what {} held is in {} now", *options.metrics, metrics->before()));
  say(fmt::format("{} bytes of memory per rank ({}), as planned", engine.allocatedBytes(), inMiB(engine.allocatedBytes())));
  announceDisk();
  if (setup.feeder && leads) announceData();
  for (const std::string &report : setup.groups.report) say(report);
  if (setup.evalFeeder)
    if (uint64_t left = setup.evalFeeder->samples() % setup.evalFeeder->globalBatch())
      say(fmt::format("{} of {} samples in '{}' make no whole batch of {} and are left out", left, setup.evalFeeder->samples(),
                      setup.evalData->path(), setup.evalFeeder->globalBatch()));
}

void Run::announceDisk() {
  if (engine.diskBytes() > 0)
    say(fmt::format("{} bytes on disk per rank ({}), in {}{}", engine.diskBytes(), inMiB(engine.diskBytes()),
                    fmt::join(setup.diskFolders, " and "),
                    options.diskPaths.empty() ? ", where the plan lies (--disk-path chooses other disks)" : ""));
  else if (!options.diskPaths.empty())
    say("--disk-path is not needed: the plan keeps nothing on disk");
  for (const std::string &note : device.notes()) say(note);
}

// Collective, where the plan keeps something on disk: what it has cost the disks.
void Run::sayTraffic() {
  if (engine.diskBytes() == 0) return;
  DiskTraffic mine = device.diskTraffic(), sum;
  std::vector<DiskTraffic> all(plan.world());
  rank.communicator.allGather(&mine, all.data(), sizeof mine);
  for (const DiskTraffic &one : all) sum.read += one.read, sum.written += one.written;
  say(fmt::format("{} bytes written to disk ({}) and {} read ({}) by all ranks; what is written wears an SSD", sum.written,
                  inMiB(sum.written), sum.read, inMiB(sum.read)));
}

// What the model is about to read, so that what is not meant is seen before it is trained.
void Run::announceData() {
  say(fmt::format("{} samples in '{}', {} per step{}", setup.feeder->samples(), setup.data->path(), setup.feeder->globalBatch(),
                  at.shuffled ? ", in another order every epoch" : ""));
  if (!setup.warning.empty()) {
    std::fflush(stdout);
    complain(fmt::format("zerorun: warning: {}", setup.warning));
  }
  if (options.showBatch) say("the next batch begins with " + describeSample(plan, *setup.data, setup.feeder->sampleAt(at.position)));
}

} // namespace zero::runtime
