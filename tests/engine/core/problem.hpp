// Problems: calls of the library with their memory, which an executor must make as a judge does.
//
// The property of every operation: a call by the executor leaves the bytes, and returns the values,
// that the judge leaves and returns. Guards and gaps are among the bytes. The judge is the reference
// backend, the definition in numerics/, or the oracle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/choices.hpp"
#include "engine/core/fields.hpp"
#include "engine/core/strided_buffer.hpp"
#include "engine/core/target.hpp"

namespace samebits::support {

/// Whether the case sets the elements of a buffer, and may a simpler case have other elements.
enum class buffer_use : std::uint8_t {
  given,   ///< operands, which shrink
  fixed,   ///< operands that stay as they are
  result,  ///< set by the call alone
};

/// Memory of a case.
struct case_buffer {
  std::string name;
  buffer_use use = buffer_use::result;
  strided_buffer memory;
  bool absent = false;  ///< an argument that the call does not have: its view has no memory
  int over = -1;        ///< an earlier buffer, whose view it is, as elements of the format of `memory`
};
using buffers = std::vector<case_buffer>;

/// A random case of an operation.
class any_case {
 public:
  virtual ~any_case() = default;

  [[nodiscard]] virtual buffers memory() const = 0;
  [[nodiscard]] virtual returned_values call(const call_site& site) const = 0;
  [[nodiscard]] virtual std::string text() const = 0;
  /// The simpler case of a number; null behind the last.
  [[nodiscard]] virtual std::shared_ptr<const any_case> simpler(std::size_t number) const = 0;
};

/// An operation: how its cases are drawn, what their memory is, and the call. All three are called by
/// several threads at once. describe() lists the fields of a case (engine/core/fields.hpp).
template <class Case>
struct operation_of {
  std::function<Case(const word_source&)> draw;
  buffers (*memory)(const Case&);
  std::function<returned_values(const Case&, const call_site&)> call;
};

/// Draws a case, and what nearly all cases have: 0 to 4 threads, the seed of the elements.
template <class Case>
Case draw_case(const operation_of<Case>& parts, const word_source& next) {
  Case c = parts.draw(next);
  if constexpr (requires { c.threads; }) c.threads = static_cast<int>(below(5, next));
  if constexpr (requires { c.content; }) c.content = next();
  return c;
}

template <class Case>
class typed_case final : public any_case {
 public:
  typed_case(Case value, std::shared_ptr<const operation_of<Case>> parts)
      : value_(std::move(value)), parts_(std::move(parts)) {}

  [[nodiscard]] const Case& value() const { return value_; }
  [[nodiscard]] buffers memory() const override { return parts_->memory(value_); }
  [[nodiscard]] returned_values call(const call_site& site) const override {
    return parts_->call(value_, site.resolved());
  }
  [[nodiscard]] std::string text() const override {
    case_fields fields;
    Case c = value_;
    describe_case(c, fields);
    return fields.text();
  }
  [[nodiscard]] std::shared_ptr<const any_case> simpler(std::size_t number) const override {
    case_fields fields(number);
    Case c = value_;
    describe_case(c, fields);
    return fields.changed() ? std::make_shared<typed_case>(std::move(c), parts_) : nullptr;
  }

 private:
  Case value_;
  std::shared_ptr<const operation_of<Case>> parts_;
};

/// An operation whose type of cases is erased.
struct array_operation {
  std::string name;
  std::size_t batch = 1024;  ///< cases that are copied to the target together
  /// Draws the case of a number, which only lists of cases read.
  std::function<std::shared_ptr<const any_case>(std::uint64_t number, const word_source&)> draw;
  std::uint64_t listed = 0;                        ///< the number of cases, if they are a list
  std::shared_ptr<const array_target> judge = {};  ///< of hosts; none: the reference backend
};

template <class Case>
array_operation make_operation(std::string name, operation_of<Case> parts,
                               std::size_t batch = 1024) {
  const auto shared = std::make_shared<const operation_of<Case>>(std::move(parts));
  return {std::move(name), batch, [shared](std::uint64_t, const word_source& next) {
            return std::make_shared<typed_case<Case>>(draw_case(*shared, next), shared);
          }};
}

/// An operation whose cases are those of a list.
template <class Case>
array_operation listed_operation(std::string name, operation_of<Case> parts,
                                 std::vector<Case> cases, std::size_t batch = 1024) {
  const auto shared = std::make_shared<const operation_of<Case>>(std::move(parts));
  const std::uint64_t count = cases.size();
  return {std::move(name), batch,
          [shared, cases = std::move(cases)](std::uint64_t number, const word_source&) {
            return std::make_shared<typed_case<Case>>(cases[number % cases.size()], shared);
          },
          count};
}

/// The same code for elements [first, first + count) of a buffer, in row-major order.
struct patch {
  std::size_t buffer;
  std::int64_t first, count;
  std::uint64_t code;
};

/// A case, other codes for some of its elements, and the byte that its memory holds elsewhere.
struct problem {
  std::shared_ptr<const any_case> what;
  std::vector<patch> codes = {};
  std::byte fill = strided_buffer::guard;
  std::uint64_t seed = 0;  ///< from which the case was drawn

  [[nodiscard]] buffers memory() const;
};

/// A target on host memory that makes other calls than the library's one: the oracle's, the
/// definition's, or calls that must leave the same.
template <class Case>
class function_target final : public array_target {
 public:
  using function = std::function<returned_values(const Case&, const call_site&)>;
  function_target(std::string name, function run) : name_(std::move(name)), run_(std::move(run)) {}

  [[nodiscard]] std::string_view backend() const override { return name_; }
  [[nodiscard]] returned_values run(const any_case& c, const call_site& site) const override {
    return run_(dynamic_cast<const typed_case<Case>&>(c).value(), site.resolved());
  }

 private:
  std::string name_;
  function run_;
};

/// An operation that a function judges on hosts.
template <class Case>
array_operation judged(std::string judge,
                       returned_values (*expected)(const Case&, const call_site&),
                       array_operation op) {
  op.judge = std::make_shared<function_target<Case>>(std::move(judge), expected);
  return op;
}

}  // namespace samebits::support
