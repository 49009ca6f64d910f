// What ranks of one machine share.
#pragma once

namespace zero::runtime {

struct Neighbours {
  int all = 1;           // ranks on this rank's machine, itself included: they share its memory and its GPUs
  int before = 0;        // how many of these have a lower rank: ranks need not be numbered machine by machine
  int container = 1;     // how many of these are in this rank's container: they share what its control groups allow
  double processors = 0; // that are this rank's: each is divided evenly among those here that may run on it; 0: not known
};

} // namespace zero::runtime
