// The functions of libcuda.so.1 (runtime/device/cuda/driver.h).
#include "runtime/device/cuda/driver.h"
#include "test/gpu/fake/faults.h"
#include "test/gpu/fake/kernels.h"
#include "test/gpu/fake/machine.h"
#include "test/gpu/fake/memory.h"
#include "test/gpu/fake/ptx.h"
#include "test/gpu/fake/streams.h"
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>

using namespace zero::runtime::cuda;
namespace fake = zero::fake;
using fake::Fault;
using fake::Memory;

namespace {

constexpr Status kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3, kInvalidDevice = 101, kInvalidContext = 201, kNoBinary = 209,
                 kInvalidPtx = 218, kInvalidHandle = 400, kNotFound = 500, kIllegalAddress = 700, kLaunchFailed = 719,
                 kCaptureUnsupported = 900, kCaptureInvalidated = 901, kCaptureUnmatched = 903, kCaptureUnjoined = 904,
                 kCaptureIsolation = 905, kCapturedEvent = 907, kCaptureWrongThread = 908, kUnknown = 999;

bool initialised = false;
thread_local ContextHandle current{};

struct Kernel {
  fake::Launch launch;     // of the plan's
  uint64_t iterations = 0; // of all its blocks
  std::vector<uint64_t> argBytes;
  std::optional<fake::Machine> machine; // of others
};

struct LoadedModule {
  std::string text;
  std::map<std::string, Kernel> kernels;
  std::map<std::string, uint64_t> globals; // their addresses
};

struct Link {
  std::string code;
  char *log = nullptr;
};
Link &linkOf(LinkHandle link) { return *reinterpret_cast<Link *>(link); }

// What code for this driver and this GPU begins with.
std::string cubinHead() {
  return "fake cubin of driver " + std::to_string(fake::setting("ZERO_FAKE_VERSION", 12080)) + " for sm_" +
         std::to_string(fake::setting("ZERO_FAKE_CAPABILITY", 90)) + "\n";
}

fake::Stream *streamOf(StreamHandle stream) { return reinterpret_cast<fake::Stream *>(stream); }
std::shared_ptr<fake::Event> &eventOf(EventHandle event) { return *reinterpret_cast<std::shared_ptr<fake::Event> *>(event); }
template <typename Handle> std::shared_ptr<fake::Graph> &graphOf(Handle graph) {
  return *reinterpret_cast<std::shared_ptr<fake::Graph> *>(graph);
}
LoadedModule *moduleOf(ModuleHandle module) { return reinterpret_cast<LoadedModule *>(module); }

// Why a call cannot be served, before it is looked at.
Status refusal(const char *function, bool needsContext = true) {
  if (fake::faultOf(function) != Fault::None) return kUnknown;
  if (!initialised) return kNotInitialized;
  if (needsContext && !current) return kInvalidContext;
  return fake::lostDevice();
}

// The same of a call that waits or allocates, which no thread may make while it captures.
Status refusalOfUnsafe(const char *function) {
  if (Status status = refusal(function)) return status;
  for (const auto &capture : fake::capturesOfThread()) capture->valid = false;
  return fake::capturesOfThread().empty() ? kSuccess : kCaptureUnsupported;
}

// A call that puts work into a stream. `prepare` looks at its arguments and gives the work, or a status.
template <typename Prepare> Status enqueue(const char *function, StreamHandle stream, Prepare prepare) {
  Fault fault = fake::faultOf(function);
  if (fault == Fault::Now) return kUnknown;
  if (!initialised) return kNotInitialized;
  if (!current) return kInvalidContext;
  if (int lost = fake::lostDevice()) return lost;
  if (!stream) return kInvalidHandle; // the runtime never uses the null stream
  if (auto &capture = streamOf(stream)->capture; capture && !capture->valid) return kCaptureInvalidated;
  std::function<int()> work;
  if (Status status = prepare(work)) return status;
  if (fault == Fault::Later) work = [] { return kLaunchFailed; };
  streamOf(stream)->put(std::move(work));
  return kSuccess;
}

bool runs(const fake::Machine &machine, const std::vector<uint64_t> &parameters, zero::test::GpuGrid grid) try {
  machine.run(parameters, grid);
  return true;
} catch (const std::runtime_error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return false;
}

Status readMachine(Kernel &kernel, const std::string &text, const char *symbol) try {
  kernel.machine.emplace(text, symbol);
  return kSuccess;
} catch (const std::runtime_error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return kInvalidPtx;
}

std::vector<uint64_t> wordsOf(const std::vector<std::byte> &bytes) {
  std::vector<uint64_t> words(bytes.size() / 8);
  std::memcpy(words.data(), bytes.data(), words.size() * 8);
  return words;
}

} // namespace

extern "C" {

Status cuGetErrorName(Status status, const char **name) {
  switch (status) {
  case kInvalidValue:
    *name = "CUDA_ERROR_INVALID_VALUE";
    break;
  case kOutOfMemory:
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    break;
  case kNotInitialized:
    *name = "CUDA_ERROR_NOT_INITIALIZED";
    break;
  case kInvalidDevice:
    *name = "CUDA_ERROR_INVALID_DEVICE";
    break;
  case kInvalidContext:
    *name = "CUDA_ERROR_INVALID_CONTEXT";
    break;
  case kInvalidPtx:
    *name = "CUDA_ERROR_INVALID_PTX";
    break;
  case kNoBinary:
    *name = "CUDA_ERROR_NO_BINARY_FOR_GPU";
    break;
  case kInvalidHandle:
    *name = "CUDA_ERROR_INVALID_HANDLE";
    break;
  case kNotFound:
    *name = "CUDA_ERROR_NOT_FOUND";
    break;
  case kIllegalAddress:
    *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
    break;
  case kLaunchFailed:
    *name = "CUDA_ERROR_LAUNCH_FAILED";
    break;
  case kCaptureUnsupported:
    *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
    break;
  case kCaptureInvalidated:
    *name = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
    break;
  case kCaptureUnmatched:
    *name = "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED";
    break;
  case kCaptureUnjoined:
    *name = "CUDA_ERROR_STREAM_CAPTURE_UNJOINED";
    break;
  case kCaptureIsolation:
    *name = "CUDA_ERROR_STREAM_CAPTURE_ISOLATION";
    break;
  case kCapturedEvent:
    *name = "CUDA_ERROR_CAPTURED_EVENT";
    break;
  case kUnknown:
    *name = "CUDA_ERROR_UNKNOWN";
    break;
  default:
    return kInvalidValue;
  }
  return fake::faultOf("cuGetErrorName") == Fault::None ? kSuccess : kUnknown;
}

Status cuInit(unsigned flags) {
  if (fake::faultOf("cuInit") != Fault::None) return kUnknown;
  initialised = true;
  return flags ? kInvalidValue : kSuccess;
}

Status cuDriverGetVersion(int *version) {
  if (fake::faultOf("cuDriverGetVersion") != Fault::None) return kUnknown;
  *version = static_cast<int>(fake::setting("ZERO_FAKE_VERSION", 12080));
  return kSuccess;
}

Status cuDeviceGetCount(int *count) {
  *count = static_cast<int>(fake::setting("ZERO_FAKE_DEVICES", 1));
  return refusal("cuDeviceGetCount", false);
}

Status cuDeviceGet(Ordinal *device, int number) {
  if (Status status = refusal("cuDeviceGet", false)) return status;
  *device = number;
  return number < static_cast<int>(fake::setting("ZERO_FAKE_DEVICES", 1)) ? kSuccess : kInvalidDevice;
}

Status cuDeviceGetName(char *name, int bytes, Ordinal) {
  if (Status status = refusal("cuDeviceGetName", false)) return status;
  std::snprintf(name, static_cast<size_t>(bytes), "fake device");
  return kSuccess;
}

Status cuDeviceGetAttribute(int *value, int attribute, Ordinal) {
  if (Status status = refusal("cuDeviceGetAttribute", false)) return status;
  int capability = static_cast<int>(fake::setting("ZERO_FAKE_CAPABILITY", 90));
  if (attribute == kCapabilityMajor) return *value = capability / 10, kSuccess;
  if (attribute == kCapabilityMinor) return *value = capability % 10, kSuccess;
  return kInvalidValue;
}

Status cuDevicePrimaryCtxRetain(ContextHandle *context, Ordinal device) {
  if (Status status = refusal("cuDevicePrimaryCtxRetain", false)) return status;
  *context = reinterpret_cast<ContextHandle>(static_cast<uintptr_t>(device) + 1);
  return kSuccess;
}
Status cuDevicePrimaryCtxRelease_v2(Ordinal) { return refusal("cuDevicePrimaryCtxRelease_v2", false); }
Status cuCtxSetCurrent(ContextHandle context) {
  if (Status status = refusal("cuCtxSetCurrent", false)) return status;
  current = context;
  return kSuccess;
}

Status cuCtxGetDevice(Ordinal *device) {
  if (Status status = refusal("cuCtxGetDevice")) return status;
  *device = static_cast<Ordinal>(reinterpret_cast<uintptr_t>(current)) - 1;
  return kSuccess;
}

Status cuMemGetInfo_v2(size_t *free, size_t *total) {
  if (Status status = refusal("cuMemGetInfo_v2")) return status;
  *free = Memory::get().free(), *total = Memory::get().total();
  return kSuccess;
}
Status cuMemAlloc_v2(Pointer *memory, size_t bytes) {
  if (Status status = refusalOfUnsafe("cuMemAlloc_v2")) return status;
  *memory = bytes ? Memory::get().allocate(bytes) : 0;
  return *memory ? kSuccess : bytes ? kOutOfMemory : kInvalidValue;
}
Status cuMemFree_v2(Pointer memory) {
  if (Status status = refusalOfUnsafe("cuMemFree_v2")) return status;
  return Memory::get().release(memory) ? kSuccess : kInvalidValue;
}
Status cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  if (Status status = refusalOfUnsafe("cuMemHostAlloc")) return status;
  *memory = Memory::get().allocatePinned(bytes);
  return *memory ? kSuccess : kOutOfMemory;
}
Status cuMemFreeHost(void *memory) {
  if (Status status = refusalOfUnsafe("cuMemFreeHost")) return status;
  return Memory::get().releasePinned(memory) ? kSuccess : kInvalidValue;
}
Status cuMemHostRegister_v2(void *memory, size_t bytes, unsigned) {
  if (Status status = refusalOfUnsafe("cuMemHostRegister_v2")) return status;
  return Memory::get().pin(memory, bytes) ? kSuccess : kInvalidValue;
}
Status cuMemHostUnregister(void *memory) {
  if (Status status = refusalOfUnsafe("cuMemHostUnregister")) return status;
  return Memory::get().unpin(memory) ? kSuccess : kInvalidValue;
}

Status cuMemcpyAsync(Pointer to, Pointer from, size_t bytes, StreamHandle stream) {
  return enqueue("cuMemcpyAsync", stream, [&](std::function<int()> &work) {
    std::byte *dst = Memory::get().reach(to, bytes), *src = Memory::get().reach(from, bytes);
    if (!dst || !src) return kInvalidValue;
    work = [=] { return std::memcpy(dst, src, bytes), kSuccess; };
    return kSuccess;
  });
}
Status cuMemsetD32Async(Pointer to, unsigned pattern, size_t words, StreamHandle stream) {
  return enqueue("cuMemsetD32Async", stream, [&](std::function<int()> &work) {
    auto *dst = reinterpret_cast<unsigned *>(Memory::get().reach(to, words * 4));
    if (!dst || to % 4) return kInvalidValue;
    work = [=] { return std::fill_n(dst, words, pattern), kSuccess; };
    return kSuccess;
  });
}
Status cuMemsetD8Async(Pointer to, unsigned char pattern, size_t bytes, StreamHandle stream) {
  return enqueue("cuMemsetD8Async", stream, [&](std::function<int()> &work) {
    std::byte *dst = Memory::get().reach(to, bytes);
    if (!dst) return kInvalidValue;
    work = [=] { return std::memset(dst, pattern, bytes), kSuccess; };
    return kSuccess;
  });
}

Status cuStreamCreate(StreamHandle *stream, unsigned flags) {
  if (Status status = refusal("cuStreamCreate")) return status;
  *stream = reinterpret_cast<StreamHandle>(new fake::Stream);
  return flags == kNonBlocking ? kSuccess : kInvalidValue;
}
Status cuStreamDestroy_v2(StreamHandle stream) {
  delete streamOf(stream);
  return refusal("cuStreamDestroy_v2");
}
Status cuStreamSynchronize(StreamHandle stream) {
  if (Status status = refusalOfUnsafe("cuStreamSynchronize")) return status;
  streamOf(stream)->synchronize();
  return fake::lostDevice();
}
Status cuStreamWaitEvent(StreamHandle stream, EventHandle handle, unsigned) {
  fake::Stream *on = streamOf(stream);
  fake::Event &event = *eventOf(handle);
  if (on && (on->capture || event.capture)) {
    if (Status status = refusal("cuStreamWaitEvent")) return status;
    if (!event.capture) return on->capture->valid = false, kCaptureIsolation; // recorded outside
    if (event.capture->ended) return kCapturedEvent;
    if (on->capture && on->capture != event.capture) return on->capture->valid = event.capture->valid = false, kCaptureIsolation;
    on->capture = event.capture; // it joins
    on->tails.insert(on->tails.end(), event.tails.begin(), event.tails.end());
    return kSuccess;
  }
  return enqueue("cuStreamWaitEvent", stream, [&](std::function<int()> &work) {
    work = [event = eventOf(handle), number = eventOf(handle)->recorded()] { return event->await(number), kSuccess; };
    return kSuccess;
  });
}

Status cuEventCreate(EventHandle *event, unsigned flags) {
  if (Status status = refusal("cuEventCreate")) return status;
  *event = reinterpret_cast<EventHandle>(new std::shared_ptr<fake::Event>(std::make_shared<fake::Event>(flags != kUntimed)));
  return kSuccess;
}
Status cuEventDestroy_v2(EventHandle event) {
  delete &eventOf(event);
  return refusal("cuEventDestroy_v2");
}
Status cuEventRecord(EventHandle handle, StreamHandle stream) {
  if (fake::Stream *on = streamOf(stream); on && on->capture) {
    if (Status status = refusal("cuEventRecord")) return status;
    eventOf(handle)->capture = on->capture, eventOf(handle)->tails = on->tails;
    return kSuccess;
  }
  eventOf(handle)->capture = nullptr;
  return enqueue("cuEventRecord", stream, [&](std::function<int()> &work) {
    work = [event = eventOf(handle), number = eventOf(handle)->record()] { return event->complete(number), kSuccess; };
    return kSuccess;
  });
}
Status cuEventSynchronize(EventHandle event) {
  if (Status status = refusalOfUnsafe("cuEventSynchronize")) return status;
  if (eventOf(event)->capture) return kCapturedEvent;
  eventOf(event)->await(eventOf(event)->recorded());
  return fake::lostDevice();
}
Status cuEventQuery(EventHandle event) {
  if (Status status = refusalOfUnsafe("cuEventQuery")) return status;
  if (eventOf(event)->capture) return kCapturedEvent;
  return eventOf(event)->completed() ? kSuccess : kNotReady;
}
Status cuEventElapsedTime(float *milliseconds, EventHandle from, EventHandle to) {
  if (Status status = refusal("cuEventElapsedTime")) return status;
  fake::Event &first = *eventOf(from), &second = *eventOf(to);
  if (!first.timed || !second.timed || !first.recorded() || !second.recorded()) return kInvalidHandle;
  if (!first.completed() || !second.completed()) return kNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(second.when() - first.when()).count();
  return kSuccess;
}

Status cuStreamBeginCapture_v2(StreamHandle stream, int mode) {
  if (Status status = refusal("cuStreamBeginCapture_v2")) return status;
  if (!stream || mode != kThreadLocalCapture || streamOf(stream)->capture) return kInvalidValue;
  streamOf(stream)->capture = std::make_shared<fake::Capture>(fake::Capture{{}, streamOf(stream), std::this_thread::get_id()});
  streamOf(stream)->tails.clear();
  fake::capturesOfThread().push_back(streamOf(stream)->capture);
  return kSuccess;
}
// Streams that have joined are let go.
Status cuStreamEndCapture(StreamHandle stream, GraphHandle *graph) {
  if (Status status = refusal("cuStreamEndCapture")) return status;
  fake::Stream &origin = *streamOf(stream);
  std::shared_ptr<fake::Capture> capture = origin.capture;
  if (!capture) return kInvalidValue;
  if (capture->thread != std::this_thread::get_id()) return kCaptureWrongThread;
  if (capture->origin != &origin) return capture->valid = false, kCaptureUnmatched;
  std::erase(fake::capturesOfThread(), capture);
  bool joined = capture->isAllBefore(origin.tails);
  capture->ended = true;
  fake::Stream::letGo(capture);
  *graph = nullptr;
  if (!capture->valid) return kCaptureInvalidated;
  if (!joined) return kCaptureUnjoined;
  *graph = reinterpret_cast<GraphHandle>(new std::shared_ptr<fake::Graph>(std::make_shared<fake::Graph>(std::move(capture->graph))));
  return kSuccess;
}
Status cuGraphInstantiateWithFlags(GraphExecHandle *exec, GraphHandle graph, unsigned long long flags) {
  if (Status status = refusalOfUnsafe("cuGraphInstantiateWithFlags")) return status;
  if (!graph || flags) return kInvalidValue;
  *exec = reinterpret_cast<GraphExecHandle>(new std::shared_ptr<fake::Graph>(graphOf(graph)));
  return kSuccess;
}
Status cuGraphLaunch(GraphExecHandle exec, StreamHandle stream) {
  Fault fault = fake::faultOf("cuGraphLaunch");
  if (fault == Fault::Now) return kUnknown;
  if (!current) return kInvalidContext;
  if (int lost = fake::lostDevice()) return lost;
  if (!stream || !exec) return kInvalidHandle;
  if (auto &capture = streamOf(stream)->capture) return capture->valid = false, kCaptureUnsupported; // the fake has no graphs in graphs
  if (fault == Fault::Later)
    streamOf(stream)->put([] { return kLaunchFailed; });
  else
    streamOf(stream)->put(std::shared_ptr<const fake::Graph>(graphOf(exec)));
  return kSuccess;
}
Status cuGraphDestroy(GraphHandle graph) {
  delete &graphOf(graph);
  return refusal("cuGraphDestroy");
}
Status cuGraphExecDestroy(GraphExecHandle exec) {
  delete &graphOf(exec);
  return refusal("cuGraphExecDestroy");
}

Status cuLinkCreate_v2(unsigned options, int *names, void **values, LinkHandle *link) {
  if (Status status = refusalOfUnsafe("cuLinkCreate_v2")) return status;
  auto *made = new Link;
  for (unsigned i = 0; i < options; ++i)
    if (names[i] == kErrorLog) made->log = static_cast<char *>(values[i]);
  *link = reinterpret_cast<LinkHandle>(made);
  return kSuccess;
}
Status cuLinkAddData_v2(LinkHandle link, int kind, void *data, size_t bytes, const char *, unsigned, int *, void **) {
  if (Status status = refusal("cuLinkAddData_v2")) return status;
  std::string text(static_cast<const char *>(data), bytes);
  if (kind != kPtx || text.empty() || text.back() != '\0' || !linkOf(link).code.empty()) return kInvalidValue;
  text.pop_back();
  if (!fake::isPtx(text)) {
    if (linkOf(link).log) std::strcpy(linkOf(link).log, "ptxas fatal : the fake device finds no .version\n");
    return kInvalidPtx;
  }
  linkOf(link).code = cubinHead() + text + '\0';
  return kSuccess;
}
Status cuLinkComplete(LinkHandle link, void **code, size_t *bytes) {
  if (Status status = refusal("cuLinkComplete")) return status;
  *code = linkOf(link).code.data(), *bytes = linkOf(link).code.size();
  return *bytes ? kSuccess : kInvalidValue;
}
Status cuLinkDestroy(LinkHandle link) {
  delete &linkOf(link);
  return refusal("cuLinkDestroy");
}

// Takes what a link of this very machine has made; the driver would take PTX too, which the runtime does not give it.
Status cuModuleLoadDataEx(ModuleHandle *module, const void *image, unsigned options, int *, void **) {
  if (Status status = refusalOfUnsafe("cuModuleLoadDataEx")) return status;
  std::string code = static_cast<const char *>(image), head = cubinHead();
  if (options) return kInvalidValue;
  if (!code.starts_with(head)) return kNoBinary;
  *module = reinterpret_cast<ModuleHandle>(new LoadedModule{code.substr(head.size()), {}, {}});
  return kSuccess;
}
Status cuModuleUnload(ModuleHandle module) {
  for (auto [name, address] : moduleOf(module)->globals) Memory::get().release(address);
  delete moduleOf(module);
  return refusal("cuModuleUnload");
}
Status cuModuleGetFunction(FunctionHandle *function, ModuleHandle handle, const char *symbol) {
  if (Status status = refusal("cuModuleGetFunction")) return status;
  LoadedModule &module = *moduleOf(handle);
  if (!fake::hasKernel(module.text, symbol)) return kNotFound;
  auto bounds = fake::arrayOf(module.text, std::string(symbol) + "_bounds");
  Kernel &kernel = module.kernels[symbol];
  *function = reinterpret_cast<FunctionHandle>(&kernel);
  if (!bounds) return readMachine(kernel, module.text, symbol);
  kernel.launch = fake::launchOf(symbol);
  if (!kernel.launch) return kNotFound;
  std::vector<uint64_t> words = wordsOf(*bounds);
  kernel.iterations = words.empty() ? 0 : words[0];
  if (words.size() > 2 && words[1] <= words.size() - 2)
    kernel.argBytes.assign(words.begin() + 2, words.begin() + 2 + static_cast<long>(words[1]));
  return kSuccess;
}
Status cuModuleGetGlobal_v2(Pointer *address, size_t *bytes, ModuleHandle handle, const char *symbol) {
  if (Status status = refusal("cuModuleGetGlobal_v2")) return status;
  LoadedModule &module = *moduleOf(handle);
  auto content = fake::arrayOf(module.text, symbol);
  if (!content) return kNotFound;
  uint64_t &at = module.globals[symbol];
  if (!at) at = Memory::get().allocate(content->size());
  std::memcpy(Memory::get().reach(at, content->size()), content->data(), content->size());
  *address = at, *bytes = content->size();
  return kSuccess;
}
Status cuFuncSetAttribute(FunctionHandle, int attribute, int) {
  if (Status status = refusal("cuFuncSetAttribute")) return status;
  return attribute == kMaxDynamicShared ? kSuccess : kInvalidValue;
}

Status cuLaunchKernel(FunctionHandle function, unsigned blocksX, unsigned blocksY, unsigned blocksZ, unsigned threadsX, unsigned threadsY,
                      unsigned threadsZ, unsigned, StreamHandle stream, void **given, void **extra) {
  return enqueue("cuLaunchKernel", stream, [&](std::function<int()> &work) {
    if (blocksX == 0 || blocksY != 1 || blocksZ != 1 || threadsX == 0 || threadsX > 1024 || threadsY != 1 || threadsZ != 1 || extra)
      return kInvalidValue;
    const Kernel &kernel = *reinterpret_cast<Kernel *>(function);
    if (kernel.machine) {
      std::vector<uint64_t> values;
      for (size_t bytes : kernel.machine->parameterBytes()) {
        uint64_t value = 0;
        std::memcpy(&value, given[values.size()], bytes);
        values.push_back(value);
      }
      work = [=, &machine = *kernel.machine] { return runs(machine, values, {blocksX, threadsX}) ? kSuccess : kIllegalAddress; };
      return kSuccess;
    }
    std::vector<void *> args; // as they are now: the caller may use the room again
    bool reached = true;
    for (size_t i = 0; i < kernel.argBytes.size(); ++i) {
      uint64_t bytes = kernel.argBytes[i];
      if (blocksX < kernel.iterations) bytes = bytes / kernel.iterations * blocksX; // at least, of what has a number for each element
      args.push_back(Memory::get().reach(*static_cast<Pointer *>(given[i]), bytes));
      reached = reached && args.back();
    }
    work = [=, launch = kernel.launch]() mutable {
      if (!reached) return kIllegalAddress;
      return launch(args, {blocksX, threadsX}) ? kSuccess : kLaunchFailed;
    };
    return kSuccess;
  });
}
// As memory operations do: of numbers modulo 2^32, in memory of the host that is pinned.
Status cuStreamWaitValue32_v2(StreamHandle stream, Pointer address, unsigned value, unsigned flags) {
  return enqueue("cuStreamWaitValue32_v2", stream, [&](std::function<int()> &work) {
    std::byte *word = Memory::get().reach(address, sizeof(value));
    if (flags != kAtLeast || address % sizeof(value) || !word) return kInvalidValue;
    work = [=] {
      std::atomic_ref<unsigned> now(*reinterpret_cast<unsigned *>(word));
      while (static_cast<int>(now.load(std::memory_order_acquire) - value) < 0 && !fake::lostDevice())
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      return kSuccess;
    };
    return kSuccess;
  });
}
Status cuLaunchHostFunc(StreamHandle stream, HostFunction *run, void *data) {
  return enqueue("cuLaunchHostFunc", stream, [&](std::function<int()> &work) {
    work = [=] {
      static std::mutex turns;
      std::lock_guard lock(turns);
      run(data);
      return kSuccess;
    };
    return kSuccess;
  });
}

} // extern "C"
