// A tested backend with its own memory: copies host inputs in and host results out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "backends/dispatch/backend.hpp"

namespace samebits::backends::verification {

/// A rectangular block of a matrix.
struct block {
  std::int64_t row;
  std::int64_t col;
  std::int64_t rows;
  std::int64_t cols;
};

/// Device memory that grows if a request exceeds its size.
class device_buffer {
 public:
  explicit device_buffer(const device_memory* memory) : memory_(memory) {}
  ~device_buffer() { release(); }
  device_buffer(const device_buffer&) = delete;
  device_buffer& operator=(const device_buffer&) = delete;
  device_buffer(device_buffer&& other) noexcept;
  device_buffer& operator=(device_buffer&&) = delete;

  std::byte* get(std::size_t bytes);

 private:
  void release();

  const device_memory* memory_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A tested backend with memory for its inputs and results.
class subject {
 public:
  subject(const backend& tested, int threads);

  [[nodiscard]] std::string_view name() const { return backend_->name; }
  [[nodiscard]] bool has(const convert_call& call) const { return backend_->convert.has(call); }

  /// Sets the input of the following runs; it must outlive them.
  void set_input(std::span<const std::byte> input);

  /// Runs the call block by block on an output buffer of `out_bytes` bytes filled with `filling`,
  /// and returns the buffer. Each block gets the offset of its first element and the pitch of the
  /// whole matrix. run() sets the views' data: `in` starts `in_shift` bytes into the input, `out`
  /// starts `out_shift` bytes into the buffer. The result is valid until the next run.
  std::span<const std::byte> run(const convert_call& call, std::size_t in_shift,
                                 std::size_t out_shift, std::size_t out_bytes, std::byte filling,
                                 std::span<const block> blocks);

 private:
  void run_blocks(const convert_call& whole, std::span<const block> blocks);

  const backend* backend_;
  int threads_;
  std::span<const std::byte> input_;
  std::vector<std::byte> result_;
  device_buffer device_in_;
  device_buffer device_out_;
};

/// Fills memory on several threads.
void fill_bytes(std::span<std::byte> bytes, std::byte value, int threads);

}  // namespace samebits::backends::verification
