// The search for simpler problems, and their texts.
#include "engine/core/shrink.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "engine/inputs/families.hpp"

namespace samebits::support {
namespace {

std::int64_t elements_of(const case_buffer& b) {
  return b.memory.layout().rows * b.memory.layout().cols;
}

std::uint64_t code_of(const case_buffer& b, std::int64_t element) {
  return b.memory.load(b.memory.layout().at(element));
}

class search {
 public:
  search(problem failing, const std::function<attempt(const problem&)>& attempt_of)
      : now_(std::move(failing)), attempt_of_(attempt_of) {}

  problem smallest() {
    take_simpler_cases();
    memory_ = now_.memory();
    for (std::size_t b = 0; b < memory_.size(); ++b) {
      if (memory_[b].use == buffer_use::given) set_zeros(b);
    }
    for (std::size_t b = 0; b < memory_.size(); ++b) {
      if (memory_[b].use == buffer_use::given) take_simpler_codes(b);
    }
    return now_;
  }

 private:
  void take_simpler_cases() {
    for (std::size_t number = 0; goes_on_;) {
      problem simpler = now_;
      simpler.what = now_.what->simpler(number++);
      if (!simpler.what) return;
      if (succeeds(simpler)) number = 0;
    }
  }
  void set_zeros(std::size_t buffer) {
    const std::int64_t elements = elements_of(memory_[buffer]);
    for (std::int64_t length = elements; length > 0; length /= 2) {
      for (std::int64_t first = 0; first < elements && goes_on_; first += length) {
        const std::int64_t count = std::min(length, elements - first);
        bool zeros = true;
        for (std::int64_t i = first; i < first + count; ++i) {
          zeros = zeros && code_of(memory_[buffer], i) == 0;
        }
        if (!zeros) set({buffer, first, count, 0});
      }
    }
  }
  void take_simpler_codes(std::size_t buffer) {
    const std::int64_t elements = elements_of(memory_[buffer]);
    for (std::int64_t i = 0; i < elements && goes_on_; ++i) {
      for (bool found = true; found && goes_on_;) {
        found = false;
        for (const std::uint64_t code :
             simpler_codes(memory_[buffer].memory.format(), code_of(memory_[buffer], i))) {
          found = goes_on_ && set({buffer, i, 1, code});
          if (found) break;
        }
      }
    }
  }

  bool set(const patch& codes) {
    problem simpler = now_;
    simpler.codes.push_back(codes);
    if (!succeeds(simpler)) return false;
    memory_ = now_.memory();
    return true;
  }
  bool succeeds(const problem& simpler) {
    const attempt made = attempt_of_(simpler);
    goes_on_ = made.goes_on;
    if (made.fails) now_ = simpler;
    return made.fails;
  }

  problem now_;
  const std::function<attempt(const problem&)>& attempt_of_;
  buffers memory_;
  bool goes_on_ = true;
};

}  // namespace

problem shrunk(problem failing, const std::function<attempt(const problem&)>& attempt_of) {
  return search(std::move(failing), attempt_of).smallest();
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
