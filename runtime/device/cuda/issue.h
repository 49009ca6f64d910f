// Puts the calls of programs into streams.
#pragma once
#include "runtime/device/cuda/cuda_program.h"

namespace zero::runtime::cuda {

// What calls use beside memory; null if no program has any of it. All must outlive what is in the streams.
struct Issuer {
  Products *products = nullptr;
  Collectives *collectives = nullptr;
  const OrderedSum *orderedSum = nullptr;
  HostLane *hostLane = nullptr;

  // Throws a sentence if it is refused. `lane`: whose workspace a product has.
  void put(const Call &call, int lane, StreamHandle stream) const;
};

} // namespace zero::runtime::cuda
