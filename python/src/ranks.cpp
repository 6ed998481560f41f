// Functions over several ranks. The ranks are an object of Python, a samebits.ranks.Communicator.
#include <algorithm>
#include <exception>
#include <vector>

#include "loss_scaler.hpp"

namespace samebits::python {
namespace {

// A Python object as a communicator of the library. Lives as long as one call.
class python_ranks {
 public:
  explicit python_ranks(nb::handle ranks) : ranks_(ranks) {
    const nb::object helper = nb::module_::import_("samebits.ranks.communicator");
    const nb::tuple fields = nb::cast<nb::tuple>(helper.attr("fields")(ranks));
    exchange_ = helper.attr("exchange");
    c_.rank = nb::cast<std::int32_t>(fields[0]);
    c_.size = nb::cast<std::int32_t>(fields[1]);
    c_.memory = nb::cast<std::int32_t>(fields[2]);
    c_.stream = stream_of(fields[3]);
    c_.user = this;
    c_.all_reduce_max = [](void* user, std::uint32_t* words, std::size_t count) {
      return self(user).exchange("all_reduce_max", nullptr, 0, words, count * sizeof *words);
    };
    c_.all_gather = [](void* user, const void* sent, std::size_t bytes, void* received,
                       std::size_t room) {
      return self(user).exchange("all_gather", sent, bytes, received, room);
    };
    c_.all_to_all = [](void* user, const void* sent, std::size_t bytes, void* received,
                       std::size_t room) {
      return self(user).exchange("all_to_all", sent, bytes, received, room);
    };
  }
  python_ranks(const python_ranks&) = delete;
  python_ranks& operator=(const python_ranks&) = delete;

  [[nodiscard]] const samebits_communicator* get() const { return &c_; }
  [[nodiscard]] int size() const { return c_.size; }
  [[nodiscard]] void* stream() const { return c_.stream; }

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
  void call(const Call& call) {
    guarded([&] { c::run_to_end(elements_without_release, [&] { return call(&c_); }); });
  }

  // Returns convert(), the arguments of a call. If convert() raises, `refused` makes the call with
  // arguments that the library refuses, so that the other ranks do not wait.
  template <class Convert, class Refused>
  auto converted_together(const Convert& convert, const Refused& refused) {
    try {
      return convert();
    } catch (...) {
      const std::exception_ptr mine = std::current_exception();
      {
        const nb::gil_scoped_release release;
        const host_guard guard;
        refused(&c_);
      }
      if (raised_) std::rethrow_exception(raised_);
      std::rethrow_exception(mine);
    }
  }

 private:
  static python_ranks& self(void* user) { return *static_cast<python_ranks*>(user); }

  // Calls an operation of the Python object; an exception is kept for guarded().
  std::int32_t exchange(const char* operation, const void* sent, std::size_t sent_bytes,
                        void* received, std::size_t received_bytes) {
    const nb::gil_scoped_acquire acquire;
    const host_guard guard;  // restores the library's settings after the caller's code
    try {
      exchange_(ranks_, operation, reinterpret_cast<std::uintptr_t>(sent), sent_bytes,
                reinterpret_cast<std::uintptr_t>(received), received_bytes);
      return 0;
    } catch (...) {
      raised_ = std::current_exception();
      return 1;
    }
  }

  nb::handle ranks_;
  nb::object exchange_;
  samebits_communicator c_ = SAMEBITS_COMMUNICATOR_INIT;
  std::exception_ptr raised_;
};

nb::tuple agree(scaler& s, nb::handle ranks, const char* optimizer) {
  python_ranks with(ranks);
  samebits_rank_observation all = {};
  with.guarded([&] {
    s.locked([&](samebits_loss_scaler* l) {
      return samebits_loss_scaler_agree(l, with.get(), optimizer, &all);
    });
  });
  return nb::make_tuple(all.nonfinite != 0, all.loss_nonfinite != 0, all.unscaled_nonfinite != 0,
                        all.amax_bits, all.first_bad, all.bad_rank);
}

// The arrays of a call and their views.
struct views {
  std::vector<array> arrays;
  std::vector<samebits_view> each;

  views(nb::list gradients, nb::list names, void* stream) {
    arrays.reserve(nb::len(gradients));
    for (std::size_t i = 0; i < nb::len(gradients); ++i) {
      const std::string label = "gradients[" + nb::cast<std::string>(nb::str(names[i])) + "]";
      arrays.push_back(array_of(gradients[i],
                                {.name = label.c_str(), .needs = access::write, .stream = stream}));
      each.push_back(c::view_of({&arrays.back(), label.c_str()}));
    }
  }
};

void reduce_gradients(nb::handle ranks, nb::list gradients, nb::list names, int communication,
                      int scale_rule, int rounding, nb::handle random, double factor,
                      std::int64_t elements_at_once, nb::handle backend) {
  python_ranks with(ranks);
  samebits_gradient_reduction how = SAMEBITS_GRADIENT_REDUCTION_INIT;
  const views all = with.converted_together(
      [&] {
        how.communication = communication;
        how.rule = scale_rule;
        how.rounding = rounding;
        how.random = c::random_of(random);
        how.elements_at_once = elements_at_once;
        how.backend = text_of(backend, "backend").data();
        const host_guard guard;
        how.factor = static_cast<float>(factor);
        return views(gradients, names, with.stream());
      },
      [](const samebits_communicator* c) {
        return samebits_reduce_gradients(c, nullptr, 1, nullptr);
      });
  const auto of_torch = [](const array& a) { return a.library != nullptr; };
  if (std::ranges::any_of(all.arrays, of_torch)) mark_written(gradients);
  with.call([&](const samebits_communicator* c) {
    return samebits_reduce_gradients(c, all.each.data(), all.each.size(), &how);
  });
}

// Owns the parts of a sum.
class tree_parts {
 public:
  tree_parts() = default;
  tree_parts(tree_parts&&) = default;
  tree_parts& operator=(tree_parts&&) = delete;
  ~tree_parts() {
    for (samebits_tree_part* part : parts_) samebits_tree_part_destroy(part);
  }

  // Adds the part that begins at `first`: subtrees, a list of (chunks, sum of squares), then the
  // squares of `rest`, an array of fp32.
  void add(std::uint64_t first, nb::handle subtrees, nb::handle rest) {
    parts_.push_back(nullptr);
    samebits_tree_part*& part = parts_.back();
    c::check(samebits_tree_part_create(first, &part));
    const host_guard guard;
    for (nb::handle subtree : subtrees) {
      c::check(samebits_tree_part_add_subtree(part, nb::cast<std::uint64_t>(subtree[0]),
                                              nb::cast<double>(subtree[1])));
    }
    const array a = array_of(rest, {.name = "rest"});
    const samebits_view view = c::view_of({&a, "rest"});
    c::check(samebits_tree_part_add_squares(part, &view));
  }
  [[nodiscard]] const samebits_tree_part* const* data() const { return parts_.data(); }
  [[nodiscard]] std::size_t size() const { return parts_.size(); }

 private:
  std::vector<samebits_tree_part*> parts_;
};

// Returns (total, sums of tensors) of parts, a list of (first, subtrees, rest).
nb::tuple sum_shards(nb::handle ranks, nb::list parts) {
  python_ranks with(ranks);
  const tree_parts all = with.converted_together(
      [&] {
        tree_parts made;
        for (nb::handle p : parts) made.add(nb::cast<std::uint64_t>(p[0]), p[1], p[2]);
        return made;
      },
      [](const samebits_communicator* c) {
        return samebits_sum_shards(c, nullptr, 1, nullptr, nullptr);
      });
  std::vector<double> sums(all.size());
  double total = 0;
  with.call([&](const samebits_communicator* c) {
    return samebits_sum_shards(c, all.data(), all.size(), sums.data(), &total);
  });
  nb::list each;
  for (const double sum : sums) each.append(sum);
  return nb::make_tuple(total, each);
}

nb::float_ clip_factor(double norm, double max_norm) {
  const host_guard guard;  // a subnormal factor stays one as a Python number
  float factor = 1;
  c::check(samebits_clip_factor(norm, max_norm, &factor));
  return nb::float_(factor);
}

nb::bytes gather(nb::handle ranks, nb::bytes message) {
  python_ranks with(ranks);
  if (with.size() < 1) raise_invalid("ranks: a size of 1 or more is expected");
  std::vector<char> received(message.size() * static_cast<std::size_t>(with.size()));
  with.call([&](const samebits_communicator* c) {
    return samebits_gather_messages(c, message.c_str(), message.size(), received.data());
  });
  return nb::bytes(received.data(), received.size());
}

}  // namespace

void bind_ranks(nb::module_& m) {
  using nb::arg;
  m.def("agree", &agree, arg("scaler"), arg("ranks"), arg("optimizer"),
        "Combines a scaler's observation with those of all ranks; returns (nonfinite, "
        "loss_nonfinite, unscaled_nonfinite, amax bits, first bad tensor, bad rank).");
  m.def("reduce_gradients", &reduce_gradients, arg("ranks"), arg("gradients"), arg("names"),
        arg("communication"), arg("scale_rule"), arg("rounding"), arg("random").none(),
        arg("factor"), arg("elements_at_once"), arg("backend").none(),
        "Replaces gradients by their sum over all ranks.");
  m.def("sum_shards", &sum_shards, arg("ranks"), arg("parts"),
        "Returns the sum of squares of all tensors and of each tensor.");
  m.def("clip_factor", &clip_factor, arg("norm"), arg("max_norm"),
        "Returns the factor that brings a norm down to max_norm.");
  m.def("gather", &gather, arg("ranks"), arg("message"),
        "Returns the messages of all ranks, one after another.");
}

}  // namespace samebits::python
