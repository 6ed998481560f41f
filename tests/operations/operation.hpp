// Array operations under test: a property that holds for an operation on every executor, of host
// and device memory.
//
// The property: a call by the executor leaves the bytes, and returns the returned values, that the
// same call by the reference backend leaves and returns. Guards and gaps are among the bytes.
#pragma once

#include <rapidcheck.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "samebits/backend.hpp"
#include "samebits/communicator.hpp"
#include "samebits/view.hpp"
#include "support/strided_buffer.hpp"

namespace samebits::support {

/// Whether the case sets the elements of a buffer, or only the call does.
enum class buffer_use : std::uint8_t { given, result };

/// Memory of a case.
struct case_buffer {
  std::string name;
  buffer_use use = buffer_use::result;
  strided_buffer memory;
};

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

/// Where the calls of an executor are made.
class array_target {
 public:
  virtual ~array_target() = default;

  [[nodiscard]] virtual std::string_view backend() const = 0;
  [[nodiscard]] virtual memory_space space() const = 0;
  /// An executor of the backend; `threads` counts on the host only.
  [[nodiscard]] virtual executor where(int threads) const = 0;
  /// Calls work(base) with a copy of the memory at `base`, a 256-byte border; when the work is
  /// done, copies it back. The copies are the memory itself on the host.
  virtual void over(std::span<std::byte> memory, const std::function<void(std::byte*)>& work) = 0;
  /// Copies what a view spans to a view of the same layout, in the order of the calls.
  virtual void copy(const matrix_view& to, const matrix_view& from) const = 0;
  /// Runs body(ranks) for each of `count` ranks that work on this memory.
  virtual void simulate_ranks(int count, const std::function<void(communicator&)>& body) const = 0;
};

/// A host backend.
std::unique_ptr<array_target> host_target(std::string backend);

/// What the call of a case works with: its buffers in their order, as views of the target's memory.
struct call_site {
  const array_target& target;
  std::vector<matrix_view> views;

  [[nodiscard]] bool on_device() const { return target.space() == memory_space::device; }
  /// The first element of a buffer, as a pointer for calls that take no views.
  template <class T>
  [[nodiscard]] T* pointer(std::size_t buffer) const {
    return static_cast<T*>(views[buffer].data);
  }
};

/// A random case of an operation.
class random_case {
 public:
  virtual ~random_case() = default;

  [[nodiscard]] virtual std::vector<case_buffer> memory() const = 0;
  [[nodiscard]] virtual returned_values call(const call_site& site) const = 0;
  [[nodiscard]] virtual std::string text() const = 0;
  /// The first simpler case that fails; null if none does.
  [[nodiscard]] virtual std::unique_ptr<random_case> simpler(
      const std::function<bool(const random_case&)>& fails) const = 0;
};

struct array_operation {
  std::string name;
  std::size_t batch = 1024;  ///< cases that are copied to the target together
  std::function<std::unique_ptr<random_case>(std::uint64_t seed)> draw;
};

namespace detail {

template <class Case>
struct operation_parts {
  std::vector<case_buffer> (*memory)(const Case&);
  std::function<returned_values(const Case&, const call_site&)> call;
};

template <class Case>
class typed_case final : public random_case {
 public:
  typed_case(rc::Shrinkable<Case> shrinkable, std::shared_ptr<const operation_parts<Case>> parts)
      : shrinkable_(std::move(shrinkable)), value_(shrinkable_.value()), parts_(std::move(parts)) {}

  [[nodiscard]] std::vector<case_buffer> memory() const override { return parts_->memory(value_); }
  [[nodiscard]] returned_values call(const call_site& site) const override {
    return parts_->call(value_, site);
  }
  [[nodiscard]] std::string text() const override {
    std::ostringstream words;
    words << value_;
    return words.str();
  }
  [[nodiscard]] std::unique_ptr<random_case> simpler(
      const std::function<bool(const random_case&)>& fails) const override {
    rc::Seq<rc::Shrinkable<Case>> candidates = shrinkable_.shrinks();
    while (auto candidate = candidates.next()) {
      auto other = std::make_unique<typed_case>(std::move(*candidate), parts_);
      if (fails(*other)) return other;
    }
    return nullptr;
  }

 private:
  rc::Shrinkable<Case> shrinkable_;
  Case value_;
  std::shared_ptr<const operation_parts<Case>> parts_;
};

}  // namespace detail

/// An operation from the generator of its cases, the memory of a case, and the call. A case has an
/// operator<<. All three are called by several threads at once.
template <class Case>
array_operation make_operation(std::string name, rc::Gen<Case> cases,
                               std::vector<case_buffer> (*memory)(const Case&),
                               std::function<returned_values(const Case&, const call_site&)> call,
                               std::size_t batch = 1024) {
  const auto parts = std::make_shared<const detail::operation_parts<Case>>(
      detail::operation_parts<Case>{memory, std::move(call)});
  return {std::move(name), batch, [cases = std::move(cases), parts](std::uint64_t seed) {
            return std::make_unique<detail::typed_case<Case>>(cases(rc::Random(seed)), parts);
          }};
}

}  // namespace samebits::support
