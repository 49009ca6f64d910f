// Requests through threads that each make one call at a time: for systems that allow no io_uring.
#pragma once
#include "runtime/storage/request_queue.h"

namespace zero::runtime {

std::unique_ptr<RequestQueue> makeThreadQueue(std::span<const int> files);
std::unique_ptr<RequestQueue> makeThreadQueueBecause(std::span<const int> files, const std::string &remark);

} // namespace zero::runtime
