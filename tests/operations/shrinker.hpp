// Shrinker: makes a failing case small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "operations/operation.hpp"
#include "support/generators.hpp"

namespace samebits::support {

/// Makes a failing case small: first its shape and options, then the codes of its given buffers.
class shrinker {
 public:
  using buffers = std::vector<case_buffer>;
  using fault_function = std::function<std::string(const random_case&, const buffers&)>;

  /// @param fault_of  says what fails in a case with this memory; empty if nothing does
  shrinker(fault_function fault_of, std::unique_ptr<random_case> failing, std::string fault)
      : fault_of_(std::move(fault_of)), case_(std::move(failing)), fault_(std::move(fault)) {
    while (auto next = case_->simpler([&](const random_case& c) { return fails(c, c.memory()); })) {
      case_ = std::move(next);
    }
    memory_ = case_->memory();
    for (std::size_t k = 0; k < memory_.size(); ++k) {
      if (memory_[k].use != buffer_use::given) continue;
      clear(k, 0, elements(k));
      simplify(k);
    }
  }

  [[nodiscard]] const std::string& fault() const { return fault_; }
  [[nodiscard]] std::unique_ptr<random_case> smallest() { return std::move(case_); }

  /// The codes of given buffers: all of a small one, else those that are not 0.
  [[nodiscard]] std::string codes() {
    constexpr std::size_t maximum = 24;
    std::ostringstream text;
    for (std::size_t k = 0; k < memory_.size(); ++k) {
      if (memory_[k].use != buffer_use::given) continue;
      const matrix_view v = memory_[k].memory.view();
      const std::size_t count = elements(k);
      text << "\n    " << memory_[k].name << " [" << v.rows << ", " << v.cols << "] " << std::hex
           << std::uppercase;
      std::size_t shown = 0;
      for (std::size_t i = 0; i < count && shown < maximum; ++i) {
        if (count > maximum && code(k, i) == 0) continue;
        if (count > maximum) text << std::dec << "#" << i << "=" << std::hex;
        text << "0x" << code(k, i) << " ";
        ++shown;
      }
      text << std::dec << (count > maximum ? "else 0" : "")
           << (shown == maximum ? " or not shown" : "");
    }
    return text.str();
  }

 private:
  bool fails(const random_case& c, const buffers& memory) {
    if (runs_-- <= 0) return false;
    std::string fault = fault_of_(c, memory);
    if (fault.empty()) return false;
    fault_ = std::move(fault);
    return true;
  }

  [[nodiscard]] std::size_t elements(std::size_t k) {
    const matrix_view v = memory_[k].memory.view();
    return static_cast<std::size_t>(v.rows * v.cols);
  }
  [[nodiscard]] std::int64_t offset_of(std::size_t k, std::size_t i) {
    const matrix_view v = memory_[k].memory.view();
    const auto at = static_cast<std::int64_t>(i);
    return at / v.cols * v.row_stride + at % v.cols * v.col_stride;
  }
  [[nodiscard]] std::uint64_t code(std::size_t k, std::size_t i) {
    return memory_[k].memory.load(offset_of(k, i));
  }

  /// Zeros in elements [begin, end), or in as many of them as fail on.
  void clear(std::size_t k, std::size_t begin, std::size_t end) {
    bool zeros = true;
    buffers other = memory_;
    for (std::size_t i = begin; i < end; ++i) {
      zeros = zeros && code(k, i) == 0;
      other[k].memory.store(offset_of(k, i), 0);
    }
    if (zeros) return;
    if (fails(*case_, other)) {
      memory_ = std::move(other);
    } else if (end - begin > 1) {
      clear(k, begin, (begin + end) / 2);
      clear(k, (begin + end) / 2, end);
    }
  }

  void simplify(std::size_t k) {
    const format_id format = memory_[k].memory.view().format;
    for (std::size_t i = 0; i < elements(k) && runs_ > 0; ++i) {
      for (bool simpler = code(k, i) != 0; simpler;) {
        simpler = false;
        for (const std::uint64_t candidate : simpler_codes(format, code(k, i))) {
          buffers other = memory_;
          other[k].memory.store(offset_of(k, i), candidate);
          if (!fails(*case_, other)) continue;
          memory_ = std::move(other);
          simpler = true;
          break;
        }
      }
    }
  }

  fault_function fault_of_;
  std::unique_ptr<random_case> case_;
  std::string fault_;
  buffers memory_;
  int runs_ = 4000;
};

}  // namespace samebits::support
