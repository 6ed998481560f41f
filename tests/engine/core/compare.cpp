// Batches of problems on a target against a judge.
#include "engine/core/compare.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "engine/core/text.hpp"

namespace samebits::support {
namespace {

constexpr std::size_t border = 256;  // bytes, as cudaMalloc aligns

/// The memory of a batch, one buffer after another, each from a border on.
class arena {
 public:
  explicit arena(const std::vector<buffers>& cases) {
    for (const buffers& all : cases) {
      std::vector<std::size_t> at;
      for (const case_buffer& b : all) {
        at.push_back(size_);
        if (b.over >= 0) continue;
        size_ += (b.memory.bytes().size() + border - 1) / border * border;
      }
      offsets_.push_back(std::move(at));
    }
    block_.assign(size_ + border, strided_buffer::guard);
    for_each_of(cases.size(), [&](std::size_t i) {
      for (std::size_t k = 0; k < cases[i].size(); ++k) {
        if (cases[i][k].over >= 0) continue;
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
  [[nodiscard]] call_site site(const array_target& target, std::size_t i, buffers& of_case,
                               std::byte* base, memory_space space) const {
    call_site all{target, std::vector<matrix_view>(of_case.size())};
    for (std::size_t k = 0; k < of_case.size(); ++k) {
      case_buffer& b = of_case[k];
      matrix_view v = b.memory.view();
      if (b.over >= 0) all.shared.push_back({k, static_cast<std::size_t>(b.over), v.format});
      if (b.absent || b.over >= 0) continue;
      v.data = base + offsets_[i][k] + (static_cast<std::byte*>(v.data) - b.memory.bytes().data());
      v.space = space;
      all.views[k] = v;
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

}  // namespace

void for_each_of(std::size_t count, const std::function<void(std::size_t)>& f) {
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

buffers problem::memory() const {
  buffers all = what->memory();
  for (const patch& p : codes) {
    strided_buffer& memory = all[p.buffer].memory;
    for (std::int64_t i = p.first; i < p.first + p.count; ++i) {
      memory.store(memory.layout().at(i), p.code);
    }
  }
  if (fill == strided_buffer::guard) return all;
  for (case_buffer& b : all) b.memory.fill(fill, b.use == buffer_use::result);
  return all;
}

comparison compare(std::span<const problem> problems, array_target& target,
                   const array_target& judge) {
  const std::size_t count = problems.size();
  std::vector<buffers> memory(count);
  for_each_of(count, [&](std::size_t i) { memory[i] = problems[i].memory(); });
  arena got(memory);
  arena expected(got);
  std::vector<returned_values> of_target(count), of_judge(count);
  for_each_of(count, [&](std::size_t i) {
    of_judge[i] =
        judge.run(*problems[i].what,
                  expected.site(judge, i, memory[i], expected.memory().data(), memory_space::host));
  });
  comparison result;
  for (const buffers& all : memory) {
    for (const case_buffer& b : all) {
      result.elements +=
          static_cast<std::uint64_t>(b.memory.layout().rows * b.memory.layout().cols);
    }
  }
  std::size_t calling = 0;
  try {
    target.over(got.memory(), [&](std::byte* base) {
      for (; calling < count; ++calling) {
        of_target[calling] =
            target.run(*problems[calling].what,
                       got.site(target, calling, memory[calling], base, target.space()));
      }
      calling = 0;
    });
  } catch (const std::exception& e) {
    result.failing = calling;
    result.text = std::string("threw ") + e.what();
    return result;
  }
  if (of_target == of_judge && got.holds_the_bytes_of(expected)) return result;
  for (std::size_t i = 0; i < count && result.text.empty(); ++i) {
    result.failing = i;
    for (std::size_t k = 0; k < memory[i].size() && result.text.empty(); ++k) {
      case_buffer& b = memory[i][k];
      if (b.over >= 0) continue;
      result.text = buffer_difference(b, got.taken(i, k, b.memory), expected.taken(i, k, b.memory));
    }
    if (result.text.empty()) result.text = difference_of_returned(of_target[i], of_judge[i]);
  }
  if (result.text.empty()) result.text = "wrote between the buffers of the batch";
  return result;
}

}  // namespace samebits::support
