// Functions over several ranks. The ranks are an object of Python, a samebits.ranks.Communicator.
#include <cstddef>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/ranks/ranks.hpp"
#include "loss_scaler.hpp"
#include "samebits/distributed.hpp"
#include "tensor_list.hpp"

namespace samebits::python {
namespace {

// A Python object as a communicator of the library. Lives as long as one call.
class python_ranks final : public communicator {
 public:
  explicit python_ranks(nb::handle ranks) : ranks_(ranks) {
    const nb::object helper = nb::module_::import_("samebits.ranks.communicator");
    const nb::tuple fields = nb::cast<nb::tuple>(helper.attr("fields")(ranks));
    exchange_ = helper.attr("exchange");
    rank_ = nb::cast<int>(fields[0]);
    size_ = nb::cast<int>(fields[1]);
    space_ = static_cast<memory_space>(nb::cast<int>(fields[2]));
    stream_ = stream_of(fields[3]);
    if (size_ < 1) raise_invalid("ranks.size: must be >= 1, got " + std::to_string(size_));
    if (rank_ < 0 || rank_ >= size_) {
      raise_invalid("ranks.rank: must be in 0 .. size - 1, got " + std::to_string(rank_) + " of " +
                    std::to_string(size_));
    }
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] memory_space space() const override { return space_; }
  [[nodiscard]] void* stream() const override { return stream_; }

  void all_reduce_max(std::span<std::uint32_t> words) override {
    exchange("all_reduce_max", {}, std::as_writable_bytes(words));
  }
  void all_gather(std::span<const std::byte> sent, std::span<std::byte> received) override {
    exchange("all_gather", sent, received);
  }
  void all_to_all(std::span<const std::byte> sent, std::span<std::byte> received) override {
    exchange("all_to_all", sent, received);
  }

  // Calls f(), which calls the library. An exception of the communicator passes through; if the
  // library had begun to write, the exception becomes the cause of IncompleteWrite.
  template <class Function>
  void guarded(const Function& f) {
    try {
      f();
    } catch (nb::python_error& error) {
      if (!raised_) throw;
      if (!error.matches(nb::module_::import_("samebits.errors").attr("IncompleteWrite"))) {
        std::rethrow_exception(raised_);
      }
      try {
        std::rethrow_exception(raised_);
      } catch (nb::python_error& cause) {
        PyException_SetCause(error.value().ptr(), cause.value().inc_ref().ptr());
      }
      throw;
    }
  }

  // Calls the library without the GIL. A rank that ended its call alone would leave the others waiting.
  template <class Call>
  void call(const Call& call, argument_names names = {}) {
    guarded([&] { run_to_end(elements_without_release, call, names); });
  }

  // Calls convert(), which converts the arguments of a call. If it raises, the other ranks learn it by
  // the call's first message, which compares `words` words.
  template <class Convert>
  void converted_together(const char* name, std::size_t words, const Convert& convert) {
    try {
      run_to_end(0, convert);
    } catch (nb::python_error&) {
      const std::exception_ptr mine = std::current_exception();
      call([&] {
        backends::host_ranks on_host(*this);
        std::vector<std::uint32_t> compared(words);
        backends::check_together(on_host, name, compared, [&] { std::rethrow_exception(mine); });
      });
    }
  }

 private:
  // Calls an operation of the Python object; an exception is kept for guarded().
  void exchange(const char* operation, std::span<const std::byte> sent,
                std::span<std::byte> received) {
    const nb::gil_scoped_acquire acquire;
    const host_guard guard;  // restores the library's settings after the caller's code
    try {
      exchange_(ranks_, operation, reinterpret_cast<std::uintptr_t>(sent.data()), sent.size(),
                reinterpret_cast<std::uintptr_t>(received.data()), received.size());
    } catch (...) {
      raised_ = std::current_exception();
      throw std::runtime_error("ranks." + std::string(operation) + " raised an exception");
    }
  }

  nb::handle ranks_;
  nb::object exchange_;
  int rank_ = 0;
  int size_ = 1;
  memory_space space_ = memory_space::host;
  void* stream_ = nullptr;
  std::exception_ptr raised_;
};

nb::tuple agree(scaler& s, nb::handle ranks, nb::handle optimizer) {
  const std::string name = name_of(optimizer);
  python_ranks with(ranks);
  rank_observation all;
  with.guarded([&] { all = s.locked([&](loss_scaler& l) { return l.agree(with, name); }); });
  const auto found = [](auto position) {
    return position < 0 ? nb::none() : nb::object(nb::int_(position));
  };
  return nb::make_tuple(all.seen.nonfinite, all.seen.loss_nonfinite, all.seen.unscaled_nonfinite,
                        all.seen.amax, found(all.first_bad), found(all.bad_rank));
}

void reduce_gradients(nb::handle ranks, nb::handle gradients, nb::handle options,
                      nb::handle backend) {
  python_ranks with(ranks);
  gradient_reduction how;
  nb::list given;
  std::vector<array> arrays;
  std::vector<matrix_view> views;
  with.converted_together("reduce_gradients()", 2, [&] {
    how = options_of<gradient_reduction>(options);
    how.backend = text_of(backend, "backend");
    const nb::object named = nb::module_::import_("samebits.list_arguments").attr("named");
    const nb::object listed = named(gradients, "gradients");
    given = nb::cast<nb::list>(listed[0]);
    arrays.reserve(nb::len(given));
    views.reserve(nb::len(given));
    for (std::size_t i = 0; i < nb::len(given); ++i) {
      const argument what = {.needs = access::write, .stream = with.stream()};
      views.push_back(
          tensor_of(given[i], listed[1][i], "gradients", what, arrays.emplace_back()).view);
    }
  });
  mark_written(given, arrays);
  with.call([&] { samebits::reduce_gradients(with, views, how); });
}

// Returns (total, sums of tensors) of parts, a list of (first, subtrees, rest): the part that begins
// at `first`; a list of (chunks, sum of squares); then the squares of `rest`, an array of fp32.
nb::tuple sum_shards(nb::handle ranks, nb::list parts) {
  python_ranks with(ranks);
  std::vector<tree_part> all;
  with.converted_together("sum_shards()", 3, [&] {
    for (nb::handle p : parts) {
      tree_part& part = all.emplace_back(nb::cast<std::uint64_t>(p[0]));
      for (nb::handle subtree : nb::handle(p[1])) {
        part.add_subtree(nb::cast<std::uint64_t>(subtree[0]), nb::cast<double>(subtree[1]));
      }
      const array a = array_of(p[2], {.name = "rest"});
      part.add_squares(view_of({&a, "rest"}));
    }
  });
  sharded_sums sums;
  with.call([&] { sums = samebits::sum_shards(with, all); });
  return nb::make_tuple(sums.total, list_of(sums.of_tensors));
}

nb::float_ clip_factor(double norm, nb::handle max_norm) {
  const double most = number_of(max_norm, "max_norm");
  const host_guard guard;  // a subnormal factor stays one as a Python number
  float factor = 1;
  run_to_end(0, [&] { factor = samebits::clip_factor(norm, most); });
  return nb::float_(factor);
}

nb::bytes gather(nb::handle ranks, nb::bytes message) {
  python_ranks with(ranks);
  const auto sent = std::as_bytes(std::span(message.c_str(), message.size()));
  std::vector<std::byte> received(message.size() * static_cast<std::size_t>(with.size()));
  if (!sent.empty()) with.call([&] { backends::host_ranks(with).all_gather(sent, received); });
  return nb::bytes(received.data(), received.size());
}

}  // namespace

void bind_ranks(nb::module_& m) {
  def(m, "agree", &agree,
      "Combines a scaler's observation with those of all ranks; returns the fields of "
      "samebits.ranks.RankObservation.");
  def(m, "reduce_gradients", &reduce_gradients, "Replaces gradients by their sum over all ranks.");
  def(m, "sum_shards", &sum_shards,
      "Returns the sum of squares of all tensors and of each tensor.");
  def(m, "clip_factor", &clip_factor, "Returns the factor that brings a norm down to max_norm.");
  def(m, "gather", &gather, "Returns the messages of all ranks, one after another.");
}

}  // namespace samebits::python
