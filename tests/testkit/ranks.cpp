// Simulated ranks: threads that meet at every operation.
#include "samebits/testkit/ranks.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <thread>

#include "samebits/error.hpp"

namespace samebits::testkit {
namespace {

/// Thrown in a rank to end it after another rank ended or failed. That rank, or the meeting,
/// reports the reason.
struct rank_abandoned {};

/// Arguments of one rank of an operation.
struct arrival {
  rank_operation operation = rank_operation::all_reduce_max;
  std::span<std::uint32_t> words = {};
  std::span<const std::byte> sent = {};
  std::span<std::byte> received = {};

  [[nodiscard]] std::size_t bytes() const {
    return operation == rank_operation::all_reduce_max ? words.size_bytes() : sent.size();
  }
};

enum class rank_state : std::uint8_t { running, waiting, ended };

/// The meeting point of the ranks: the last rank to arrive performs the operation for all ranks.
class meeting {
 public:
  explicit meeting(int count)
      : arrivals_(static_cast<std::size_t>(count)),
        states_(static_cast<std::size_t>(count), rank_state::running) {}

  void take_part(int rank, const arrival& mine) {
    std::unique_lock lock(mutex_);
    if (broken_) throw rank_abandoned{};
    arrivals_[static_cast<std::size_t>(rank)] = mine;
    states_[static_cast<std::size_t>(rank)] = rank_state::waiting;
    const std::uint64_t round = calls_.size();
    if (nobody_runs()) complete();
    met_.wait(lock, [&] { return calls_.size() != round || broken_; });
    if (calls_.size() == round) throw rank_abandoned{};
  }

  void leave(int rank, bool failed) {
    const std::lock_guard lock(mutex_);
    states_[static_cast<std::size_t>(rank)] = rank_state::ended;
    if (failed) {
      break_up();
    } else if (!broken_ && nobody_runs() && somebody_waits()) {
      complete();
    }
  }

  [[nodiscard]] const std::vector<rank_call>& calls() const { return calls_; }
  /// Returns the mismatch of the ranks' calls; empty if there is none, or if a rank threw.
  [[nodiscard]] const std::string& difference() const { return difference_; }

 private:
  [[nodiscard]] bool nobody_runs() const {
    return std::find(states_.begin(), states_.end(), rank_state::running) == states_.end();
  }
  [[nodiscard]] bool somebody_waits() const {
    return std::find(states_.begin(), states_.end(), rank_state::waiting) != states_.end();
  }

  void break_up() {
    broken_ = true;
    met_.notify_all();
  }

  /// Performs the operation, or breaks up the meeting if the calls do not match. Called when no
  /// rank runs.
  void complete() {
    if (!fit_together()) {
      difference_ = description();
      break_up();
      return;
    }
    perform();
    calls_.push_back({arrivals_[0].operation, arrivals_[0].bytes()});
    std::fill(states_.begin(), states_.end(), rank_state::running);
    met_.notify_all();
  }

  [[nodiscard]] bool fit_together() const {
    const arrival& first = arrivals_[0];
    for (std::size_t r = 0; r < arrivals_.size(); ++r) {
      if (states_[r] == rank_state::ended || arrivals_[r].operation != first.operation ||
          arrivals_[r].bytes() != first.bytes()) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] std::string description() const {
    std::string text =
        "the ranks' calls differ at operation " + std::to_string(calls_.size()) + ":";
    for (std::size_t r = 0; r < arrivals_.size(); ++r) {
      const arrival& a = arrivals_[r];
      text += (r == 0 ? " rank " : ", rank ") + std::to_string(r) + " ";
      text += states_[r] == rank_state::ended
                  ? "has returned"
                  : std::string(name(a.operation)) + " of " + std::to_string(a.bytes()) + " bytes";
    }
    return text;
  }

  void perform() {
    switch (arrivals_[0].operation) {
      case rank_operation::all_reduce_max: reduce(); break;
      case rank_operation::all_gather: gather(); break;
      case rank_operation::all_to_all: exchange(); break;
    }
  }

  void reduce() {
    const std::span<std::uint32_t> all = arrivals_[0].words;
    for (const arrival& a : arrivals_) {
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = std::max(all[i], a.words[i]);
    }
    for (const arrival& a : arrivals_) std::copy(all.begin(), all.end(), a.words.begin());
  }

  void gather() {
    for (const arrival& to : arrivals_) {
      auto at = to.received.begin();
      for (const arrival& from : arrivals_) at = std::copy(from.sent.begin(), from.sent.end(), at);
    }
  }

  void exchange() {
    const std::size_t block = arrivals_[0].sent.size() / arrivals_.size();
    for (std::size_t to = 0; to < arrivals_.size(); ++to) {
      for (std::size_t from = 0; from < arrivals_.size(); ++from) {
        const auto sent = arrivals_[from].sent.subspan(to * block, block);
        std::copy(sent.begin(), sent.end(),
                  arrivals_[to].received.subspan(from * block, block).begin());
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable met_;
  std::vector<arrival> arrivals_;
  std::vector<rank_state> states_;
  std::vector<rank_call> calls_;
  bool broken_ = false;
  std::string difference_;
};

class simulated_rank final : public communicator {
 public:
  simulated_rank(meeting& m, int rank, int size) : meeting_(m), rank_(rank), size_(size) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  void all_reduce_max(std::span<std::uint32_t> words) override {
    meeting_.take_part(rank_, {.operation = rank_operation::all_reduce_max, .words = words});
  }
  void all_gather(std::span<const std::byte> sent, std::span<std::byte> received) override {
    if (received.size() != sent.size() * static_cast<std::size_t>(size_)) {
      throw invalid_argument("received: must have " + std::to_string(size_) + " times the " +
                             std::to_string(sent.size()) + " bytes of sent, has " +
                             std::to_string(received.size()));
    }
    meeting_.take_part(
        rank_, {.operation = rank_operation::all_gather, .sent = sent, .received = received});
  }
  void all_to_all(std::span<const std::byte> sent, std::span<std::byte> received) override {
    if (received.size() != sent.size()) {
      throw invalid_argument("received: must have the " + std::to_string(sent.size()) +
                             " bytes of sent, has " + std::to_string(received.size()));
    }
    if (sent.size() % static_cast<std::size_t>(size_) != 0) {
      throw invalid_argument("sent: its " + std::to_string(sent.size()) + " bytes are not " +
                             std::to_string(size_) + " equal blocks");
    }
    meeting_.take_part(
        rank_, {.operation = rank_operation::all_to_all, .sent = sent, .received = received});
  }

 private:
  meeting& meeting_;
  int rank_;
  int size_;
};

}  // namespace

std::vector<rank_call> simulate_ranks(int count, const std::function<void(communicator&)>& body) {
  if (count < 1 || count > 1024) {
    throw invalid_argument("count: must be in 1..1024, got " + std::to_string(count));
  }
  meeting m(count);
  std::vector<std::exception_ptr> thrown(static_cast<std::size_t>(count));
  const auto run = [&](int rank) {
    std::exception_ptr& mine = thrown[static_cast<std::size_t>(rank)];
    try {
      simulated_rank self(m, rank, count);
      body(self);
    } catch (const rank_abandoned&) {
      // another rank or the meeting reports the reason
    } catch (...) {
      mine = std::current_exception();
    }
    m.leave(rank, mine != nullptr);
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < count; ++rank) {
      try {
        threads.emplace_back(run, rank);
      } catch (const std::system_error&) {  // no more threads: the other ranks must not wait
        thrown[static_cast<std::size_t>(rank)] = std::current_exception();
        m.leave(rank, true);
      }
    }
  }
  for (const std::exception_ptr& e : thrown) {
    if (e) std::rethrow_exception(e);
  }
  if (!m.difference().empty()) throw rank_calls_differ(m.difference());
  return m.calls();
}

}  // namespace samebits::testkit
