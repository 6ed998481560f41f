// Targets: where the calls of a problem are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/backend.hpp"
#include "samebits/communicator.hpp"
#include "samebits/view.hpp"

namespace samebits::support {

class any_case;
class array_target;

/// A number that a call returned.
struct returned_value {
  const char* what;
  std::uint64_t value;

  friend bool operator==(const returned_value& a, const returned_value& b) {
    return a.value == b.value;
  }
};
using returned_values = std::vector<returned_value>;

/// Bytes from the first element of a view to behind the last.
inline std::size_t spanned_bytes(const const_matrix_view& v) {
  if (v.rows == 0 || v.cols == 0) return 0;
  const std::int64_t last = (v.rows - 1) * v.row_stride + (v.cols - 1) * v.col_stride;
  return static_cast<std::size_t>((last + 1) * storage_bytes(v.format));
}

/// An element of a view on host memory.
std::uint64_t code_at(const const_matrix_view& v, std::int64_t row, std::int64_t col);
void put_code(const matrix_view& v, std::int64_t row, std::int64_t col, std::uint64_t code);
/// Calls f(row, col) for each element of a view in row-major order.
template <class Function>
void for_each_element(const const_matrix_view& v, const Function& f) {
  for (std::int64_t row = 0; row < v.rows; ++row) {
    for (std::int64_t col = 0; col < v.cols; ++col) f(row, col);
  }
}

/// Rows and columns of a view.
matrix_view block_of(matrix_view v, std::int64_t row, std::int64_t rows, std::int64_t col,
                     std::int64_t cols);

/// What the call of a case works with: its buffers in their order, as views of the target's memory.
struct call_site {
  /// A view without memory of its own: that of another view, as elements of a format.
  struct shared_memory {
    std::size_t view, of;
    format_id format;
  };

  const array_target& target;
  std::vector<matrix_view> views;
  std::vector<shared_memory> shared = {};

  /// The site with the views that share memory.
  [[nodiscard]] call_site resolved() const;

  [[nodiscard]] bool on_device() const;
  /// The first element of a buffer, as a pointer for calls that take no views.
  template <class T>
  [[nodiscard]] T* pointer(std::size_t buffer) const {
    return static_cast<T*>(views[buffer].data);
  }
};

/// Where calls are made: by default on host memory.
class array_target {
 public:
  virtual ~array_target() = default;

  [[nodiscard]] virtual std::string_view backend() const = 0;
  [[nodiscard]] virtual memory_space space() const { return memory_space::host; }
  /// An executor of the backend; `threads` counts on the host only.
  [[nodiscard]] virtual executor where(int threads) const { return {backend(), threads, nullptr}; }
  /// Makes calls that may return before their work is done. A target that makes their work happen
  /// later keeps `calls`, and with them the lists that they hold.
  virtual void enqueue(const std::function<void()>& calls) const { calls(); }
  /// Makes the call of a case.
  [[nodiscard]] virtual returned_values run(const any_case& c, const call_site& site) const;
  /// Calls work(base) with a copy of the memory at `base`, a 256-byte border; when the work is
  /// done, copies it back. The copies are the memory itself on the host.
  virtual void over(std::span<std::byte> memory, const std::function<void(std::byte*)>& work) {
    work(memory.data());
  }
  /// Copies what a view spans to a view of the same layout, in the order of the calls.
  virtual void copy(const matrix_view& to, const matrix_view& from) const;
  /// Runs body(ranks) for each of `count` ranks that work on this memory.
  virtual void simulate_ranks(int count, const std::function<void(communicator&)>& body) const;
};

inline bool call_site::on_device() const { return target.space() == memory_space::device; }

/// A host backend.
std::unique_ptr<array_target> host_target(std::string backend);

}  // namespace samebits::support
