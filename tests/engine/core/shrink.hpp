// Simpler problems than a failing one: first simpler cases, then simpler codes of given buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/problem.hpp"

namespace samebits::support {

/// A problem, and where the search for simpler ones goes on: simpler cases; zeros in ranges of
/// elements, which halve; one element after another.
struct shrinking_problem {
  problem what;
  enum class stage : std::uint8_t { cases, zeros, elements } at = stage::cases;
  std::size_t buffer = 0;
  std::int64_t length = 0;  ///< of ranges; 0: all of the buffer
  std::int64_t element = 0;
};

/// The simpler problems, one after another. Each change that fails is made once: the search of a
/// simpler problem goes on where it was found.
class simpler_problems {
 public:
  explicit simpler_problems(shrinking_problem from) : now_(std::move(from)) {}
  std::optional<shrinking_problem> next();

 private:
  std::optional<shrinking_problem> next_case();
  std::optional<shrinking_problem> next_zeros();
  std::optional<shrinking_problem> next_element();
  void enter(shrinking_problem::stage stage);
  bool next_buffer();
  [[nodiscard]] std::uint64_t code(std::int64_t element) const;
  [[nodiscard]] std::int64_t elements() const;

  shrinking_problem now_;
  std::size_t candidate_ = 0;
  buffers memory_;
  std::vector<std::uint64_t> simpler_;
};

/// The codes of given buffers: all of a small one, else those that are not 0.
std::string codes_text(const problem& p);

}  // namespace samebits::support
