// A backend with its own memory: implementation.
#include "backends/verify/subject.hpp"

#include <cstring>

#include "backends/threads/parts.hpp"

namespace samebits::backends::verification {

std::byte* subject::device(std::size_t buffer, std::size_t bytes) {
  device_buffer& d = device_[buffer];
  if (bytes > d.size) {
    d.data.reset();
    d.data = {backend_->memory->allocate(bytes), backend_->memory->release};
    d.size = bytes;
  }
  return static_cast<std::byte*>(d.data.get());
}

void subject::set_inputs(const std::array<std::span<const std::byte>, max_inputs>& inputs) {
  inputs_ = inputs;
  if (backend_->space == memory_space::host) return;
  for (std::size_t i = 0; i < max_inputs; ++i) {
    const std::span<const std::byte> in = inputs[i];
    if (!in.empty()) backend_->memory->upload(device(i, in.size()), in.data(), in.size());
  }
}

/// Memory for result i where the backend works.
std::byte* subject::prepare(std::size_t i, std::byte filling) {
  const std::size_t bytes = sizes_[i];
  if (memory_[i].size() < bytes) memory_[i].resize(bytes);
  if (bytes == 0) return nullptr;
  if (backend_->space == memory_space::device) {
    std::byte* const result = device(max_inputs + i, bytes);
    backend_->memory->fill(result, filling, bytes);
    return result;
  }
  std::byte* const host = memory_[i].data();
  for_each_part(static_cast<std::int64_t>(bytes), threads_, [&](element_range range) {
    std::memset(host + range.begin, static_cast<int>(filling),
                static_cast<std::size_t>(range.end - range.begin));
  });
  return host;
}

void subject::run(const call_function& call, std::span<const result_layout> results,
                  std::byte filling) {
  const bool on_device = backend_->space == memory_space::device;
  call_memory memory{.space = backend_->space};
  for (std::size_t i = 0; i < max_inputs; ++i) {
    memory.in[i] = on_device ? device(i, inputs_[i].size()) : inputs_[i].data();
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    sizes_[i] = results[i].at.bytes(results[i].width);
    memory.out[i] = prepare(i, filling);
  }
  call(*backend_, memory, {backend_->name, threads_, nullptr});
  if (!on_device) return;
  backend_->memory->synchronize();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (sizes_[i] != 0) backend_->memory->download(memory_[i].data(), memory.out[i], sizes_[i]);
  }
}

}  // namespace samebits::backends::verification
