// Batches of cases on a target against the reference.
#include "operations/check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>

#include "operations/shrinker.hpp"
#include "samebits/testkit/ranks.hpp"
#include "support/conversion_case.hpp"
#include "support/effort.hpp"
#include "support/generators.hpp"

namespace samebits::support {
namespace {

constexpr std::size_t border = 256;  // bytes, as cudaMalloc aligns

/// Calls f(i) for [0, count) on all processors; throws what one of them threw.
template <class Function>
void for_each_of(std::size_t count, const Function& f) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr thrown;
  std::mutex throwing;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) f(i);
    } catch (...) {
      const std::scoped_lock lock(throwing);
      if (!thrown) thrown = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> workers;
    const std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
    for (std::size_t i = 1; i < std::min(threads, count); ++i) workers.emplace_back(work);
    work();
  }
  if (thrown) std::rethrow_exception(thrown);
}

class host_memory final : public array_target {
 public:
  explicit host_memory(std::string backend) : backend_(std::move(backend)) {}

  [[nodiscard]] std::string_view backend() const override { return backend_; }
  [[nodiscard]] memory_space space() const override { return memory_space::host; }
  [[nodiscard]] executor where(int threads) const override { return {backend_, threads, nullptr}; }
  void over(std::span<std::byte> memory, const std::function<void(std::byte*)>& work) override {
    work(memory.data());
  }
  void copy(const matrix_view& to, const matrix_view& from) const override {
    std::memcpy(to.data, from.data, spanned_bytes(to));
  }
  void simulate_ranks(int count, const std::function<void(communicator&)>& body) const override {
    testkit::simulate_ranks(count, body);
  }

 private:
  std::string backend_;
};

using buffers = std::vector<case_buffer>;

/// The memory of a batch, one buffer after another, each from a border on.
class arena {
 public:
  explicit arena(const std::vector<buffers>& cases) {
    for (const buffers& all : cases) {
      std::vector<std::size_t> at;
      for (const case_buffer& b : all) {
        at.push_back(size_);
        size_ += (b.memory.bytes().size() + border - 1) / border * border;
      }
      offsets_.push_back(std::move(at));
    }
    block_.assign(size_ + border, strided_buffer::guard);
    for_each_of(cases.size(), [&](std::size_t i) {
      for (std::size_t k = 0; k < cases[i].size(); ++k) {
        const std::vector<std::byte>& bytes = cases[i][k].memory.bytes();
        std::copy(bytes.begin(), bytes.end(), data() + offsets_[i][k]);
      }
    });
  }
  arena(const arena& other)
      : offsets_(other.offsets_), block_(other.size_ + border), size_(other.size_) {
    std::copy(other.data(), other.data() + size_, data());
  }
  arena& operator=(const arena&) = delete;

  [[nodiscard]] std::span<std::byte> memory() { return {data(), size_}; }
  [[nodiscard]] bool holds_the_bytes_of(const arena& other) const {
    return std::memcmp(data(), other.data(), size_) == 0;
  }
  /// The buffers of a case as views of a copy of the memory at `base`.
  [[nodiscard]] std::vector<matrix_view> views(std::size_t i, buffers& of_case, std::byte* base,
                                               memory_space space) const {
    std::vector<matrix_view> all;
    for (std::size_t k = 0; k < of_case.size(); ++k) {
      strided_buffer& memory = of_case[k].memory;
      matrix_view v = memory.view();
      v.data = base + offsets_[i][k] + (static_cast<std::byte*>(v.data) - memory.bytes().data());
      v.space = space;
      all.push_back(v);
    }
    return all;
  }
  /// A buffer as it lies here.
  [[nodiscard]] strided_buffer taken(std::size_t i, std::size_t k, strided_buffer like) const {
    const std::byte* const first = data() + offsets_[i][k];
    std::copy(first, first + like.bytes().size(), like.bytes().begin());
    return like;
  }

 private:
  [[nodiscard]] std::byte* data() {
    return block_.data() + (border - reinterpret_cast<std::uintptr_t>(block_.data()) % border);
  }
  [[nodiscard]] const std::byte* data() const { return const_cast<arena*>(this)->data(); }

  std::vector<std::vector<std::size_t>> offsets_;  ///< of each case's buffers
  std::vector<std::byte> block_;
  std::size_t size_ = 0;
};

/// Element [row, col] of a buffer in words.
std::string position_text(const case_buffer& b, std::int64_t row, std::int64_t col) {
  return b.name + " [" + std::to_string(row) + ", " + std::to_string(col) + "]";
}

/// Empty, or the first element that differs.
std::string buffer_difference(case_buffer& b, const strided_buffer& got,
                              const strided_buffer& expected) {
  if (got.bytes() == expected.bytes()) return {};
  const matrix_view v = b.memory.view();
  for (std::int64_t row = 0; row < v.rows; ++row) {
    for (std::int64_t col = 0; col < v.cols; ++col) {
      if (got.at(row, col) == expected.at(row, col)) continue;
      return position_text(b, row, col) + "\n  got      " + code_text(v.format, got.at(row, col)) +
             "\n  expected " + code_text(v.format, expected.at(row, col));
    }
  }
  const auto at = std::mismatch(got.bytes().begin(), got.bytes().end(), expected.bytes().begin());
  const auto byte = at.first - got.bytes().begin() -
                    (static_cast<const std::byte*>(v.data) - b.memory.bytes().data());
  return "wrote outside " + b.name + ": byte " + std::to_string(byte) + " from its first element";
}

std::string difference_of_returned(const returned_values& got, const returned_values& expected) {
  if (got.size() != expected.size()) {
    return "returned " + std::to_string(got.size()) + " returned values, expected " +
           std::to_string(expected.size());
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i]) continue;
    const auto text = [](std::uint64_t value) {
      return std::to_string(value) + " or " + code_text(format_id::fp64, value);
    };
    return std::string("returned ") + expected[i].what + ", value " + std::to_string(i) +
           "\n  got      " + text(got[i].value) + "\n  expected " + text(expected[i].value);
  }
  return {};
}

/// What a batch showed.
struct outcome {
  std::string text = {};  ///< empty if nothing differs
  std::size_t failing = 0;
  std::uint64_t elements = 0;
};

class checker {
 public:
  checker(array_target& target) : target_(target), reference_(host_target("reference")) {}

  /// Runs cases over the given memory.
  outcome run(const std::vector<const random_case*>& cases, std::vector<buffers>& memory) {
    arena got(memory);
    arena expected(got);
    std::vector<returned_values> of_target(cases.size()), of_reference(cases.size());
    for_each_of(cases.size(), [&](std::size_t i) {
      of_reference[i] =
          cases[i]->call({*reference_, expected.views(i, memory[i], expected.memory().data(),
                                                      memory_space::host)});
    });
    outcome result;
    for (const buffers& all : memory) {
      for (const case_buffer& b : all) result.elements += elements_of(b);
    }
    std::size_t calling = 0;
    try {
      target_.over(got.memory(), [&](std::byte* base) {
        for (; calling < cases.size(); ++calling) {
          of_target[calling] = cases[calling]->call(
              {target_, got.views(calling, memory[calling], base, target_.space())});
        }
        calling = 0;
      });
    } catch (const std::exception& e) {
      result.failing = calling;
      result.text = std::string("threw ") + e.what();
      return result;
    }
    if (of_target == of_reference && got.holds_the_bytes_of(expected)) return result;
    for (std::size_t i = 0; i < cases.size() && result.text.empty(); ++i) {
      result.failing = i;
      for (std::size_t k = 0; k < memory[i].size() && result.text.empty(); ++k) {
        case_buffer& b = memory[i][k];
        result.text =
            buffer_difference(b, got.taken(i, k, b.memory), expected.taken(i, k, b.memory));
      }
      if (result.text.empty()) result.text = difference_of_returned(of_target[i], of_reference[i]);
    }
    if (result.text.empty()) result.text = "wrote between the buffers of the batch";
    return result;
  }

  /// Empty, or what is wrong with a case alone.
  std::string fault_of(const random_case& c, buffers memory) {
    std::vector<buffers> all;
    all.push_back(std::move(memory));
    return run({&c}, all).text;
  }

 private:
  static std::uint64_t elements_of(const case_buffer& b) {
    const matrix_view v = const_cast<case_buffer&>(b).memory.view();
    return static_cast<std::uint64_t>(v.rows * v.cols);
  }

  array_target& target_;
  std::unique_ptr<array_target> reference_;
};

void describe(check_report& report, const array_operation& op, array_target& target, checker& check,
              const check_effort& effort, std::uint64_t number, const std::string& in_batch) {
  const std::string on = op.name + " on " + std::string(target.backend()) + ": ";
  const std::string seed = std::to_string(effort.seed + number);
  std::unique_ptr<random_case> failing = op.draw(effort.seed + number);
  std::string alone = check.fault_of(*failing, failing->memory());
  if (alone.empty()) {
    report.failure = on + in_batch + "\n  in a batch only, not alone: " + failing->text() +
                     "\n  repeat with: RC_PARAMS=\"seed=" + std::to_string(effort.seed) +
                     " max_success=" + std::to_string(effort.cases) + "\"";
    report.smallest = std::move(failing);
    return;
  }
  shrinker small(
      [&](const random_case& c, const buffers& memory) { return check.fault_of(c, memory); },
      std::move(failing), std::move(alone));
  const std::string codes = small.codes();
  const std::string fault = small.fault();
  report.smallest = small.smallest();
  report.failure = on + fault + "\n  smallest failing case: " + report.smallest->text() + codes +
                   "\n  repeat with: RC_PARAMS=\"seed=" + seed + " max_success=1\"";
}

}  // namespace

std::unique_ptr<array_target> host_target(std::string backend) {
  return std::make_unique<host_memory>(std::move(backend));
}

check_report check_operation(const array_operation& op, array_target& target,
                             const check_effort& effort) {
  check_report report;
  checker check(target);
  while (report.cases < effort.cases) {
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(op.batch, effort.cases - report.cases));
    std::vector<std::unique_ptr<random_case>> random_cases(count);
    std::vector<buffers> memory(count);
    for_each_of(count, [&](std::size_t i) {
      random_cases[i] = op.draw(effort.seed + report.cases + i);
      memory[i] = random_cases[i]->memory();
    });
    std::vector<const random_case*> cases;
    for (const auto& c : random_cases) cases.push_back(c.get());
    const outcome found = check.run(cases, memory);
    report.elements += found.elements;
    if (!found.text.empty()) {
      describe(report, op, target, check, effort, report.cases + found.failing, found.text);
      report.cases += found.failing + 1;
      break;
    }
    report.cases += count;
  }
  return report;
}

void expect_as_reference(const array_operation& op, array_target& target, int cases,
                         const char* file, int line) {
  const rc::detail::TestParams params = rc::detail::configuration().testParams;
  const bool told = params.maxSuccess != rc::detail::TestParams{}.maxSuccess;
  check_effort effort{static_cast<std::uint64_t>(cases) / effort_divisor, params.seed};
  if (told) effort.cases = static_cast<std::uint64_t>(params.maxSuccess);
  const auto begin = std::chrono::steady_clock::now();
  const check_report report = check_operation(op, target, effort);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << op.name << " on " << target.backend() << ": " << report.cases << " cases, "
            << report.elements << " elements compared with the reference, " << took.count()
            << " s\n";
  if (report.failure.empty()) return;
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  ADD_FAILURE_AT(file, line) << report.failure << " and --gtest_filter=" << test->test_suite_name()
                             << "." << test->name();
}

}  // namespace samebits::support
