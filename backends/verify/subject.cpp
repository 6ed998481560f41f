// A tested backend: implementation.
#include "backends/verify/subject.hpp"

#include <cstring>
#include <utility>

#include "backends/threads/parts.hpp"

namespace samebits::backends::verification {
namespace {

/// Offset of element (row, col) of a view, in bytes from its data.
std::ptrdiff_t byte_offset(const const_matrix_view& v, std::int64_t row, std::int64_t col) {
  return (row * v.row_stride + col * v.col_stride) * storage_bytes(v.format);
}

convert_call part_of(const convert_call& whole, const block& b) {
  convert_call part = whole;
  part.in.data = static_cast<const std::byte*>(whole.in.data) + byte_offset(whole.in, b.row, b.col);
  part.out.data = static_cast<std::byte*>(whole.out.data) + byte_offset(whole.out, b.row, b.col);
  part.in.rows = part.out.rows = b.rows;
  part.in.cols = part.out.cols = b.cols;
  part.random.offset +=
      static_cast<std::uint64_t>(b.row) * whole.pitch + static_cast<std::uint64_t>(b.col);
  part.random.pitch = whole.pitch;
  return part;
}

}  // namespace

device_buffer::device_buffer(device_buffer&& other) noexcept
    : memory_(other.memory_),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

std::byte* device_buffer::get(std::size_t bytes) {
  if (bytes > size_ || data_ == nullptr) {
    release();
    data_ = static_cast<std::byte*>(memory_->allocate(bytes));
    size_ = bytes;
  }
  return data_;
}

void device_buffer::release() {
  if (data_ != nullptr) memory_->release(data_);
  data_ = nullptr;
  size_ = 0;
}

subject::subject(const backend& tested, int threads)
    : backend_(&tested), threads_(threads), device_in_(tested.memory), device_out_(tested.memory) {}

void subject::set_input(std::span<const std::byte> input) {
  input_ = input;
  if (backend_->space == memory_space::device) {
    backend_->memory->upload(device_in_.get(input.size()), input.data(), input.size());
  }
}

std::span<const std::byte> subject::run(const convert_call& call, std::size_t in_shift,
                                        std::size_t out_shift, std::size_t out_bytes,
                                        std::byte filling, std::span<const block> blocks) {
  convert_call whole = call;
  whole.in.space = whole.out.space = backend_->space;
  if (result_.size() < out_bytes) result_.resize(out_bytes);
  const std::span<std::byte> result = std::span(result_).first(out_bytes);
  if (backend_->space == memory_space::host) {
    fill_bytes(result, filling, threads_);
    whole.in.data = input_.data() + in_shift;
    whole.out.data = result.data() + out_shift;
    run_blocks(whole, blocks);
    return result;
  }
  std::byte* out = device_out_.get(out_bytes);
  backend_->memory->fill(out, filling, out_bytes);
  whole.in.data = device_in_.get(input_.size()) + in_shift;
  whole.out.data = out + out_shift;
  run_blocks(whole, blocks);
  backend_->memory->synchronize();
  backend_->memory->download(result.data(), out, out_bytes);
  return result;
}

void subject::run_blocks(const convert_call& whole, std::span<const block> blocks) {
  for (const block& b : blocks) {
    backend_->convert.run(part_of(whole, b), {backend_->name, threads_, nullptr});
  }
}

void fill_bytes(std::span<std::byte> bytes, std::byte value, int threads) {
  for_each_part(static_cast<std::int64_t>(bytes.size()), threads, [&](element_range range) {
    std::memset(bytes.data() + range.begin, static_cast<int>(value),
                static_cast<std::size_t>(range.end - range.begin));
  });
}

}  // namespace samebits::backends::verification
