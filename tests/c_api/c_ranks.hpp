// A communicator of C++ as one of the C interface.
#pragma once

#include <cstddef>
#include <cstdint>

#include "samebits/c/ranks.h"
#include "samebits/communicator.hpp"

namespace samebits::in_c {

/// A communicator of C++ as one of C. `fail` is the operation, counted from 0, that fails.
class c_ranks {
 public:
  explicit c_ranks(communicator& ranks, int fail = -1) : ranks_(ranks), fail_(fail) {
    c.rank = ranks.rank();
    c.size = ranks.size();
    c.memory = static_cast<int32_t>(ranks.space());
    c.stream = ranks.stream();
    c.user = this;
    c.all_reduce_max = [](void* user, uint32_t* words, size_t count) {
      return self(user).call([&](communicator& r) { r.all_reduce_max({words, count}); });
    };
    c.all_gather = [](void* user, const void* sent, size_t bytes, void* received, size_t room) {
      return self(user).call([&](communicator& r) {
        r.all_gather({static_cast<const std::byte*>(sent), bytes},
                     {static_cast<std::byte*>(received), room});
      });
    };
    c.all_to_all = [](void* user, const void* sent, size_t bytes, void* received, size_t room) {
      return self(user).call([&](communicator& r) {
        r.all_to_all({static_cast<const std::byte*>(sent), bytes},
                     {static_cast<std::byte*>(received), room});
      });
    };
  }

  samebits_communicator c = SAMEBITS_COMMUNICATOR_INIT;

 private:
  static c_ranks& self(void* user) { return *static_cast<c_ranks*>(user); }

  template <class Operation>
  int32_t call(const Operation& operation) {
    if (calls_++ == fail_) return 17;
    operation(ranks_);
    return 0;
  }

  communicator& ranks_;
  int fail_;
  int calls_ = 0;
};

}  // namespace samebits::in_c
