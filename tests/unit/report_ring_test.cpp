// The ring of reports: every report once and in order, losses counted, and never a mixture of two,
// wherever writer and reader interrupt each other.
#include "numerics/loss_scale/report_ring.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "backends/loss_scaler/report_ring.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace {

/// A report in which every word depends on its number.
step_report report_number(std::uint64_t k) {
  step_report r;
  r.step = k;
  r.applied_steps = k * 3 + 1;
  r.scale = static_cast<double>(k + 7);
  r.norm = static_cast<double>(k) * 0.5;
  r.first_bad = static_cast<std::int64_t>(k) - 3;
  r.bad_rank = static_cast<std::int64_t>(k % 8);
  r.grad_mul = static_cast<float>(k % 1000);
  r.amax_bits = static_cast<std::uint32_t>(k);
  r.exponent = static_cast<std::int32_t>(k % 30);
  r.applied = k % 2 == 0;
  r.cause = static_cast<step_cause>(k % 6);
  return r;
}

bool same(const step_report& a, const step_report& b) {
  return a.step == b.step && a.applied_steps == b.applied_steps && a.scale == b.scale &&
         a.norm == b.norm && a.first_bad == b.first_bad && a.bad_rank == b.bad_rank &&
         a.grad_mul == b.grad_mul && a.amax_bits == b.amax_bits && a.exponent == b.exponent &&
         a.applied == b.applied && a.stop == b.stop && a.cause == b.cause && a.change == b.change;
}

TEST(ReportRing, GivesEveryReportOnceOrCountsIt) {
  std::mt19937 random(1);
  for (const std::size_t capacity : {1u, 2u, 3u, 8u, 16u, 100u}) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{12345}}) {
      std::vector<numerics::report_slot> ring(capacity);
      backends::report_reader reader(ring, first);
      std::uint64_t written = first;
      std::uint64_t read = first;  // as it should be: the next number
      std::uint64_t lost = 0;
      for (int i = 0; i < 5000; ++i) {
        for (std::size_t n = random() % (2 * capacity + 1); n > 0; --n) {
          backends::put_report(ring, report_number(written++));
        }
        for (std::size_t n = random() % (2 * capacity + 1); n > 0; --n) {
          if (written - read > capacity) {
            lost += written - capacity - read;
            read = written - capacity;
          }
          const auto got = reader.poll();
          ASSERT_EQ(got.has_value(), read < written);
          if (got) {
            ASSERT_TRUE(same(*got, report_number(read))) << got->step << " for " << read;
            ++read;
          }
          ASSERT_EQ(reader.lost(), lost);
          ASSERT_EQ(reader.next(), read);
        }
      }
      EXPECT_GT(lost, 0u);
    }
  }
}

/// Memory in which the other side comes in before any access.
struct interrupted_words {
  static inline int accesses = 0;
  static inline std::function<void(int)> before_access;
  static void interrupt() {
    const int number = accesses++;
    if (before_access) before_access(number);
  }
  static std::uint64_t load(const std::uint64_t& word) {
    interrupt();
    return word;
  }
  static void store(std::uint64_t& word, std::uint64_t value) {
    interrupt();
    word = value;
  }
  static void fence() {}
};

TEST(ReportRing, EachSideTouchesTheTicketTwiceAndEveryWordOnce) {
  std::vector<numerics::report_slot> ring(2);
  constexpr int accesses = static_cast<int>(sizeof(step_report) / sizeof(std::uint64_t)) + 2;
  interrupted_words::before_access = nullptr;
  interrupted_words::accesses = 0;
  numerics::put_report<interrupted_words>(ring.data(), ring.size(), report_number(0));
  EXPECT_EQ(interrupted_words::accesses, accesses);
  std::uint64_t next = 0;
  step_report got;
  interrupted_words::accesses = 0;
  EXPECT_EQ(numerics::take_report<interrupted_words>(ring.data(), ring.size(), next, got),
            numerics::report_found::here);
  EXPECT_EQ(interrupted_words::accesses, accesses);
}

TEST(ReportRing, AReaderThatIsInterruptedNeverMixes) {
  constexpr std::uint64_t capacity = 3;
  int found[3] = {};
  for (int at = 0; at < 12; ++at) {                     // before which access of the reader
    for (std::uint64_t had = 0; had < 5; ++had) {       // reports before
      for (std::uint64_t more = 0; more < 8; ++more) {  // reports that come in
        std::vector<numerics::report_slot> ring(capacity);
        for (std::uint64_t k = 0; k < had; ++k) backends::put_report(ring, report_number(k));
        interrupted_words::accesses = 0;
        interrupted_words::before_access = [&](int number) {
          if (number != at) return;
          for (std::uint64_t k = had; k < had + more; ++k)
            backends::put_report(ring, report_number(k));
        };
        std::uint64_t next = 0;
        step_report got;
        const auto result =
            numerics::take_report<interrupted_words>(ring.data(), capacity, next, got);
        ++found[static_cast<int>(result)];
        if (result == numerics::report_found::here) {
          EXPECT_TRUE(same(got, report_number(0))) << at << " " << had << " " << more;
          EXPECT_EQ(next, 1u);
        } else if (result == numerics::report_found::overwritten) {
          EXPECT_GT(next, 0u);
          EXPECT_LE(next, had + more);
        } else {
          EXPECT_EQ(next, 0u);
        }
      }
    }
  }
  for (const int n : found) EXPECT_GT(n, 0);
  interrupted_words::before_access = nullptr;
}

TEST(ReportRing, AWriterThatIsInterruptedShowsNothingHalf) {
  constexpr std::uint64_t capacity = 2;
  const int accesses = static_cast<int>(sizeof(numerics::report_slot) / sizeof(std::uint64_t)) + 1;
  for (int at = 0; at < accesses; ++at) {
    for (std::uint64_t had = 0; had < 6; ++had) {
      std::vector<numerics::report_slot> ring(capacity);
      for (std::uint64_t k = 0; k < had; ++k) backends::put_report(ring, report_number(k));
      interrupted_words::accesses = 0;
      bool looked = false;
      interrupted_words::before_access = [&](int number) {
        if (number != at) return;
        looked = true;
        // Report `had` is on its way: it is not there, and those that are, are whole.
        backends::report_reader reader(ring);
        std::uint64_t expected = had < capacity ? 0 : had - capacity + (at > 0 ? 1 : 0);
        while (const auto got = reader.poll()) {
          EXPECT_TRUE(same(*got, report_number(expected))) << at << " " << had;
          ++expected;
        }
        EXPECT_EQ(expected, had);
      };
      numerics::put_report<interrupted_words>(ring.data(), capacity, report_number(had));
      EXPECT_TRUE(looked);
    }
  }
  interrupted_words::before_access = nullptr;
}

TEST(ReportRing, AWriterAndAReaderAtOnce) {
  constexpr std::uint64_t reports = 300'000;
  for (const std::size_t capacity : {1u, 4u, 64u}) {
    std::vector<numerics::report_slot> ring(capacity);
    backends::report_reader reader(ring);
    std::jthread writer([&] {
      for (std::uint64_t k = 0; k < reports; ++k) backends::put_report(ring, report_number(k));
    });
    std::uint64_t read = 0;
    std::uint64_t last = 0;
    while (reader.next() < reports) {
      const auto got = reader.poll();
      if (!got) {
        std::this_thread::yield();
        continue;
      }
      ASSERT_TRUE(same(*got, report_number(got->step)));
      ASSERT_TRUE(read == 0 || got->step > last);
      last = got->step;
      ++read;
    }
    EXPECT_EQ(read + reader.lost(), reports);
    EXPECT_EQ(last, reports - 1);
  }
}

TEST(ReportRing, RefusesNoSlots) {
  EXPECT_THROW(backends::report_reader({}), invalid_argument);
  EXPECT_THROW(backends::put_report({}, step_report{}), invalid_argument);
}

}  // namespace
}  // namespace samebits
