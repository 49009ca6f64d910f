// Which memories a step may reach, and on which lane.
#include "runtime/base/error.h"
#include "runtime/plan/checks.h"

namespace zero::plan {
namespace {

bool isLink(Lane lane) {
  return lane == TO_DEVICE || lane == TO_HOST || lane == DISK_READ || lane == DISK_WRITE || lane == UPDATE_READ || lane == UPDATE_WRITE;
}

// What a disk reads and writes directly: whole blocks, on every rank, and in memory as well.
void requireBlocks(const Plan &plan, const Ref &ref, const std::string &name) {
  const Buffer &buffer = plan.buffers(static_cast<int>(ref.buffer()));
  bool aligned = (buffer.offset() + ref.offset()) % kDiskBlock == 0;
  for (uint64_t stride : ref.strides()) aligned = aligned && stride % kDiskBlock == 0;
  std::string unit = std::to_string(kDiskBlock) + " bytes, as copies from and to disk do";
  if (!aligned) throw Error(name + " does not start at a multiple of " + unit);
  if (ref.bytes() % kDiskBlock != 0) throw Error(name + " has " + std::to_string(ref.bytes()) + " bytes, not a multiple of " + unit);
}

void checkCopy(const Plan &plan, const Step &step, const std::string &what) {
  Tier from = tierOf(plan, step.reads(0)), to = tierOf(plan, step.writes(0));
  std::string route = std::string(" copies from ") + tierText(from) + " to " + tierText(to);
  if (from == to && from != DEVICE) throw Error(what + route + "; one side must be in " + (from == DISK ? "memory" : "another place"));
  if (from == to) {
    if (isLink(step.lane()))
      throw Error(what + route + " on lane " + Lane_Name(step.lane()) + ", which is for copies between them and others");
    return;
  }
  Lane link = from == DISK ? DISK_READ : to == DISK ? DISK_WRITE : from == HOST ? TO_DEVICE : TO_HOST;
  Lane ofUpdates = from == DISK || to == DEVICE ? UPDATE_READ : UPDATE_WRITE;
  bool afterUpdates = to == DISK && step.lane() == UPDATE;
  if (step.lane() != link && step.lane() != ofUpdates && !afterUpdates)
    throw Error(what + route + " on lane " + Lane_Name(step.lane()) + "; expected lane " + Lane_Name(link) + ", or " +
                Lane_Name(ofUpdates) + " where an update needs it");
  if (from != DISK && to != DISK) return;
  requireBlocks(plan, step.reads(0), "the source of " + what);
  requireBlocks(plan, step.writes(0), "the destination of " + what);
}

// What rows are written to, from the device's memory. Of a disk whole blocks are, which are read before: all of them lie in the buffer.
void checkRows(const Plan &plan, const Step &step, const std::string &what) {
  requireDevice(plan, step.reads(0), what);
  requireDevice(plan, step.reads(1), what);
  const Ref &window = step.writes(0);
  Tier to = tierOf(plan, window);
  Lane link = to == DISK ? DISK_WRITE : TO_HOST;
  if (to == DEVICE ? isLink(step.lane()) : step.lane() != link && step.lane() != UPDATE_WRITE)
    throw Error(what + " writes rows " + (to == DEVICE ? "in the device's memory" : std::string("to ") + tierText(to)) + " on lane " +
                Lane_Name(step.lane()) + "; expected " +
                (to == DEVICE ? "one that computes" : "lane " + Lane_Name(link) + ", or UPDATE_WRITE where an update needs it"));
  if (to != DISK) return;
  const Buffer &buffer = plan.buffers(static_cast<int>(window.buffer()));
  uint64_t blocks = (window.bytes() + kDiskBlock - 1) / kDiskBlock * kDiskBlock;
  if ((buffer.offset() + window.offset()) % kDiskBlock != 0 || blocks > buffer.bytes() - window.offset())
    throw Error("the window of " + what + " does not begin at a multiple of " + std::to_string(kDiskBlock) +
                " bytes, or its last block ends beyond its buffer, which rows on disk need");
}

void checkHostUpdate(const Plan &plan, const Step &step, const std::string &what) {
  if (!step.has_update() && !step.has_fill() && !step.has_launch())
    throw Error(what + " runs on lane UPDATE_HOST, which is for updates that the host's processors make, and sums of their gradients");
  if (step.has_update() && step.update().has_apart())
    throw Error(what + " runs on lane UPDATE_HOST and sets rows apart, which updates on the device alone can do");
  for (const auto *side : {&step.reads(), &step.writes()})
    for (const Ref &ref : *side)
      if (tierOf(plan, ref) != HOST)
        throw Error(what + " runs on lane UPDATE_HOST, but buffer '" + plan.buffers(static_cast<int>(ref.buffer())).name() + "' lies " +
                    placeText(tierOf(plan, ref)) + "; the host's processors reach host memory alone");
}

} // namespace

void checkTiers(const Plan &plan, const Step &step, const std::string &what) {
  if (step.lane() == UPDATE_HOST) return checkHostUpdate(plan, step, what);
  if (step.has_copy()) return checkCopy(plan, step, what);
  if (step.has_write_rows()) return checkRows(plan, step, what);
  for (const Ref &ref : step.reads()) requireDevice(plan, ref, what);
  for (const Ref &ref : step.writes()) requireDevice(plan, ref, what);
  if (isLink(step.lane()))
    throw Error(what + " runs on lane " + Lane_Name(step.lane()) +
                ", which is for copies between the device's memory, host memory and disk");
}

} // namespace zero::plan
