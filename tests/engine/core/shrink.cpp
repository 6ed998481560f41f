// The search for simpler problems, and their texts.
#include "engine/core/shrink.hpp"

#include <algorithm>
#include <sstream>

#include "engine/inputs/families.hpp"

namespace samebits::support {
namespace {

using stage = shrinking_problem::stage;

std::int64_t elements_of(const case_buffer& b) {
  return b.memory.layout().rows * b.memory.layout().cols;
}

std::uint64_t code_of(const case_buffer& b, std::int64_t element) {
  return b.memory.load(b.memory.layout().at(element));
}

}  // namespace

std::int64_t simpler_problems::elements() const { return elements_of(memory_[now_.buffer]); }
std::uint64_t simpler_problems::code(std::int64_t element) const {
  return code_of(memory_[now_.buffer], element);
}

void simpler_problems::enter(stage next) {
  now_.at = next;
  now_.buffer = 0;
  now_.length = now_.element = 0;
  candidate_ = 0;
}

/// Goes on to the next given buffer with elements; false behind the last.
bool simpler_problems::next_buffer() {
  if (memory_.empty()) memory_ = now_.what.memory();
  while (now_.buffer < memory_.size() &&
         (memory_[now_.buffer].use != buffer_use::given || elements() == 0)) {
    ++now_.buffer;
  }
  return now_.buffer < memory_.size();
}

std::optional<shrinking_problem> simpler_problems::next() {
  if (now_.at == stage::cases) {
    if (auto found = next_case()) return found;
    enter(stage::zeros);
  }
  if (now_.at == stage::zeros) {
    if (auto found = next_zeros()) return found;
    enter(stage::elements);
  }
  return next_element();
}

std::optional<shrinking_problem> simpler_problems::next_case() {
  shrinking_problem simpler = now_;
  simpler.what.what = now_.what.what->simpler(candidate_++);
  if (!simpler.what.what) return std::nullopt;
  return simpler;
}

std::optional<shrinking_problem> simpler_problems::next_zeros() {
  for (; next_buffer(); ++now_.buffer, now_.length = now_.element = 0) {
    if (now_.length == 0) now_.length = elements();
    for (; now_.length > 0; now_.length /= 2, now_.element = 0) {
      while (now_.element < elements()) {
        const std::int64_t first = now_.element;
        const std::int64_t count = std::min(now_.length, elements() - first);
        now_.element += count;
        bool zeros = true;
        for (std::int64_t i = first; i < first + count; ++i) zeros = zeros && code(i) == 0;
        if (zeros) continue;
        shrinking_problem simpler = now_;
        simpler.what.codes.push_back({now_.buffer, first, count, 0});
        return simpler;
      }
    }
  }
  return std::nullopt;
}

std::optional<shrinking_problem> simpler_problems::next_element() {
  for (; next_buffer(); ++now_.buffer, now_.element = 0) {
    for (; now_.element < elements(); ++now_.element, candidate_ = 0, simpler_.clear()) {
      if (simpler_.empty()) {
        const format_id format = memory_[now_.buffer].memory.format();
        candidate_ = 0;
        simpler_ = simpler_codes(format, code(now_.element));
      }
      if (candidate_ == simpler_.size()) continue;
      shrinking_problem simpler = now_;
      simpler.what.codes.push_back({now_.buffer, now_.element, 1, simpler_[candidate_++]});
      return simpler;
    }
  }
  return std::nullopt;
}

std::string codes_text(const problem& p) {
  constexpr std::int64_t maximum = 24;
  std::ostringstream text;
  for (const case_buffer& b : p.memory()) {
    if (b.use != buffer_use::given) continue;
    const array_layout& layout = b.memory.layout();
    const std::int64_t count = elements_of(b);
    text << "\n    " << b.name << " [" << layout.rows << ", " << layout.cols << "] " << std::hex
         << std::uppercase;
    std::int64_t shown = 0;
    for (std::int64_t i = 0; i < count && shown < maximum; ++i) {
      if (count > maximum && code_of(b, i) == 0) continue;
      if (count > maximum) text << std::dec << "#" << i << "=" << std::hex;
      text << "0x" << code_of(b, i) << " ";
      ++shown;
    }
    text << std::dec << (count > maximum ? "else 0" : "")
         << (shown == maximum ? " or not shown" : "");
  }
  return text.str();
}

}  // namespace samebits::support
