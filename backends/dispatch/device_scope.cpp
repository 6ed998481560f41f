#include "backends/dispatch/device_scope.hpp"

#include "backends/dispatch/refuse.hpp"

namespace samebits::backends {

const device_runtime* available_runtime() {
  static const device_runtime* const runtime = [] {
    const device_runtime* found = nullptr;
    for (const backend* b : compiled()) {
      if (found == nullptr) found = b->runtime;
    }
    return found != nullptr && found->is_available() ? found : nullptr;
  }();
  return runtime;
}

int current_device_number() {
  const device_runtime* const runtime = available_runtime();
  return runtime != nullptr ? runtime->current_device() : no_device;
}

void device_finder::refuse(const address_memory& memory, const std::string& name) const {
  refuse_if(memory.what == address_memory::kind::host, name,
            ": must be device memory, got an address of host memory; pass memory of "
            "cudaMalloc, or a view without on_device()");
  samebits::refuse(name, ": lies on device ", memory.device, ", arguments before it on device ",
                   found_, "; all memory of a call must lie on one device");
}

device_scope::device_scope(memory_space space, std::initializer_list<named_address> memory,
                           void* stream, completion ends)
    : runtime_(space == memory_space::device ? available_runtime() : nullptr) {
  if (runtime_ == nullptr) return;
  device_finder finder(space);
  for (const named_address& m : memory) finder.add(m.address, m.name);
  enter(finder.device(), stream, ends);
}

device_scope::device_scope(memory_space space, int device, void* stream, completion ends)
    : runtime_(space == memory_space::device ? available_runtime() : nullptr) {
  if (runtime_ != nullptr) enter(device, stream, ends);
}

void device_scope::enter(int device, void* stream, completion ends) {
  const int of_stream = runtime_->device_of_stream(stream);
  if (device == no_device) device = of_stream;
  refuse_if(of_stream != no_device && of_stream != device, "where.stream: is a stream of device ",
            of_stream, ", the memory of the call lies on device ", device);
  const int current = runtime_->current_device();
  if (device != no_device && device != current) {
    runtime_->make_current(device);
    before_ = current;
  }
  if (ends == completion::enqueued) return;
  try {
    refuse_if(runtime_->is_capturing(stream),
              "where.stream: is being captured into a graph, and this call waits for its result");
  } catch (...) {  // no destructor runs after a constructor throws
    leave();
    throw;
  }
}

device_scope::~device_scope() { leave(); }

void device_scope::leave() noexcept {
  if (before_ == no_device) return;
  try {
    runtime_->make_current(before_);
  } catch (const cuda_error&) {  // the device was current before: its next call reports the error
  }
}

}  // namespace samebits::backends
