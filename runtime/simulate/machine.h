//===- machine.h - how fast a machine does what steps do ------------------------------------------------===//
// Plain data. Its text form is part of a cluster's (cluster.h).
#pragma once
#include <limits>
#include <span>
#include <string>
#include <utility>

namespace zero::simulate {

/// What one rank has to itself. The defaults are two processors with AVX-512 and a virtual disk.
struct Machine {
  double productsF32 = 1e11;  // "products_f32": multiply-adds in a second, of matrix products and attention
  double productsTf32 = 1e11; // "products_tf32": of products that --tf32 allows it
  double productsBf16 = 2e11; // "products_bf16"
  double memory = 1e10;       // "memory": bytes that computation reads and writes in a second
  double hostMemory = 1e10;   // "host_memory": the same of updates that the host's processors make for a GPU
  double step = 2e-6;         // "step": seconds that each step takes beside its work
  double link = 1e9;          // "link": bytes in a second that a rank sends to the others, and receives; shared by gathers and reductions
  double exchange = std::numeric_limits<double>::infinity(); // the same of what goes from each rank to each other one, where that is slower
                                                             // than around a ring (cluster.h); no name: it follows from a cluster
  double linkLatency = 5e-5; // "link_latency": seconds that each collective, or each slice of a sum, takes beside them
  double toDevice = 5e9;     // "to_device": bytes in a second from host memory to the device
  double toHost = 5e9;       // "to_host": and back
  double diskRead = 1.5e9;   // "disk_read": bytes in a second, when nothing is written
  double diskWrite = 2e9;    // "disk_write": when nothing is read
  double diskRequest = 2e-5; // "disk_request": seconds that each small request takes at least, many of them under way together
  bool operator==(const Machine &) const = default;
};

/// Its numbers, each above 0, by the names they have in text.
std::span<const std::pair<const char *, double Machine::*>> machineNumbers();
/// As JSON.
std::string print(const Machine &machine);

} // namespace zero::simulate
