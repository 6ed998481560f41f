// Loss scaling in the caller's memory through the C interface.
#include "backends/loss_scaler/resident.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/c_api/arguments/arguments.hpp"
#include "backends/c_api/arguments/guarded.hpp"
#include "backends/c_api/arguments/handles.hpp"
#include "backends/c_api/arguments/options.hpp"
#include "backends/loss_scaler/report_ring.hpp"
#include "samebits/c/resident_scaler.h"
#include "samebits/error.hpp"

struct samebits_gradients {
  samebits::backends::gradient_list list;
};

namespace samebits::c_api {

samebits_step_report report_of(const step_report& r) {
  return {.step = r.step,
          .applied_steps = r.applied_steps,
          .scale = r.scale,
          .norm = r.norm,
          .first_bad = r.first_bad,
          .bad_rank = r.bad_rank,
          .grad_mul = r.grad_mul,
          .amax_bits = r.amax_bits,
          .exponent = r.exponent,
          .applied = static_cast<uint8_t>(r.applied),
          .stop = static_cast<uint8_t>(r.stop),
          .cause = static_cast<uint8_t>(r.cause),
          .change = static_cast<uint8_t>(r.change)};
}

}  // namespace samebits::c_api

namespace api = samebits::c_api;

namespace {

namespace numerics = samebits::numerics;

// The structs hold the same bits in C and in C++, so that kernels write them.
static_assert(sizeof(samebits_scaler_words) == sizeof(numerics::scaler_words));
static_assert(offsetof(samebits_scaler_words, bad_loss) ==
              offsetof(numerics::scaler_words, bad_loss));
static_assert(sizeof(samebits_gradient_report) == sizeof(numerics::gradient_report));
static_assert(offsetof(samebits_gradient_report, first_bad) ==
              offsetof(numerics::gradient_report, first_bad));
static_assert(offsetof(samebits_gradient_report, found_inf) ==
              offsetof(numerics::gradient_report, found_inf));
static_assert(offsetof(samebits_gradient_report, factor) ==
              offsetof(numerics::gradient_report, factor));
static_assert(offsetof(samebits_gradient_report, writes) ==
              offsetof(numerics::gradient_report, writes));
static_assert(SAMEBITS_REPORT_SLOT_BYTES == sizeof(numerics::report_slot));

const samebits::backends::gradient_list& list_of(const samebits_gradients* gradients) {
  return api::required(gradients, "gradients").list;
}

const samebits::loss_scaler& scaler_of(const samebits_loss_scaler* scaler, const char* which) {
  return api::required(scaler, which).scaler;
}

void check_size(std::size_t given, std::size_t expected) {
  if (given == expected) return;
  throw samebits::invalid_argument("size: must be " + std::to_string(expected) + ", got " +
                                   std::to_string(given));
}

/// The C++ struct at the address of a C struct, which may lie in device memory.
numerics::scaler_words* words_at(samebits_scaler_words* words) {
  return reinterpret_cast<numerics::scaler_words*>(&api::required(words, "words"));
}
const numerics::scaler_words* words_at(const samebits_scaler_words* words) {
  return reinterpret_cast<const numerics::scaler_words*>(&api::required(words, "words"));
}

/// A policy's state in the caller's memory. Throws invalid_argument for null.
std::byte* state_at(void* state) {
  api::check_array(state, 1, "state");
  return static_cast<std::byte*>(state);
}
const std::byte* state_at(const void* state) {
  api::check_array(state, 1, "state");
  return static_cast<const std::byte*>(state);
}

numerics::unscale_rule rule_of(const samebits_unscale_options* options) {
  const samebits_unscale_options o = api::read(options, "options");
  if (!(o.max_norm >= 0)) {
    throw samebits::invalid_argument("options.max_norm: must be a number >= 0");
  }
  return {.max_norm = std::bit_cast<std::uint64_t>(o.max_norm) &
                      ~numerics::binary<std::uint64_t>::sign_bit,  // -0 becomes 0
          .first = o.first,
          .rewrites = o.rewrites != 0,
          .only_clips = o.only_clips != 0,
          .skips_overflow = o.skips_overflow != 0};
}

}  // namespace

samebits_status samebits_gradients_create(const samebits_list_tensor* tensors, size_t count,
                                          samebits_gradients** gradients) {
  return api::guarded([&] {
    samebits_gradients*& out = api::required(gradients, "gradients");
    out = new samebits_gradients{
        samebits::backends::gradient_list(api::list_tensors_of(tensors, count))};
  });
}

void samebits_gradients_destroy(samebits_gradients* gradients) { delete gradients; }

samebits_status samebits_gradients_sizes(const samebits_gradients* gradients, size_t* tables,
                                         size_t* workspace) {
  return api::guarded([&] {
    const samebits::backends::gradient_list& list = list_of(gradients);
    size_t& tables_bytes = api::required(tables, "tables");
    api::required(workspace, "workspace") = list.workspace_bytes();
    tables_bytes = list.tables_bytes();
  });
}

samebits_status samebits_gradients_write_tables(const samebits_gradients* gradients, void* tables,
                                                size_t size) {
  return api::guarded([&] {
    const samebits::backends::gradient_list& list = list_of(gradients);
    check_size(size, list.tables_bytes());
    api::check_array(static_cast<std::byte*>(tables), size, "tables");
    list.write_tables(static_cast<std::byte*>(tables));
  });
}

samebits_status samebits_gradients_unscale(const samebits_gradients* gradients, const void* tables,
                                           void* workspace, const samebits_scaler_words* words,
                                           samebits_gradient_report* report,
                                           const samebits_unscale_options* options,
                                           const samebits_executor* where) {
  return api::guarded([&] {
    const samebits::backends::gradient_list& list = list_of(gradients);
    const bool on_device = list.space() == samebits::memory_space::device;
    const samebits::backends::unscale_memory memory = {
        static_cast<const std::byte*>(tables), static_cast<std::byte*>(workspace), words_at(words),
        reinterpret_cast<numerics::gradient_report*>(&api::required(report, "report"))};
    if (on_device) {
      api::check_array(memory.tables, 1, "tables");
      api::check_array(memory.workspace, 1, "workspace");
    }
    samebits::backends::unscale(list, rule_of(options), memory, api::where(where));
  });
}

samebits_status samebits_resident_size(const samebits_loss_scaler* scaler, size_t* bytes) {
  return api::guarded([&] {
    api::required(bytes, "bytes") =
        samebits::backends::resident_bytes(scaler_of(scaler, "scaler").settings());
  });
}

samebits_status samebits_resident_store(const samebits_loss_scaler* scaler, void* state,
                                        size_t size, samebits_scaler_words* words) {
  return api::guarded([&] {
    const samebits::loss_scaler& from = scaler_of(scaler, "scaler");
    std::byte* const to = state_at(state);
    check_size(size, samebits::backends::resident_bytes(from.settings()));
    samebits::backends::store_resident(from, to, words_at(words));
  });
}

samebits_status samebits_resident_load(samebits_loss_scaler* scaler, const void* state,
                                       size_t size) {
  return api::guarded([&] {
    samebits::loss_scaler& into = api::required(scaler, "scaler").scaler;
    const std::byte* const from = state_at(state);
    check_size(size, samebits::backends::resident_bytes(into.settings()));
    into = samebits::backends::load_resident(into.settings(), from);
  });
}

samebits_status samebits_resident_update(const samebits_loss_scaler* settings, int32_t memory,
                                         void* state, samebits_scaler_words* words,
                                         const samebits_gradient_report* reports, size_t count,
                                         void* ring, uint64_t capacity, void* stream) {
  return api::guarded([&] {
    const samebits::loss_scaler& scaler = scaler_of(settings, "settings");
    const auto space = api::enumerator<samebits::memory_space>(memory, "memory");
    api::check_array(reports, count, "reports");
    const samebits::backends::update_memory at = {
        static_cast<std::byte*>(state),
        words_at(words),
        reinterpret_cast<const numerics::gradient_report*>(reports),
        count,
        static_cast<numerics::report_slot*>(ring),
        capacity};
    api::check_array(at.state, 1, "state");
    api::check_array(at.ring, 1, "ring");
    if (count == 0) throw samebits::invalid_argument("count: must be 1 or more");
    samebits::backends::update(scaler.settings(), space, at, stream);
  });
}

samebits_status samebits_report_ring_poll(const void* ring, uint64_t capacity, uint64_t* next,
                                          uint64_t* lost, samebits_step_report* report,
                                          int32_t* arrived) {
  return api::guarded([&] {
    const auto* const slots = static_cast<const numerics::report_slot*>(ring);
    api::check_array(slots, 1, "ring");
    uint64_t& wanted = api::required(next, "next");
    uint64_t& missed = api::required(lost, "lost");
    samebits_step_report& out = api::required(report, "report");
    int32_t& found = api::required(arrived, "arrived");
    samebits::backends::report_reader reader(std::span(slots, capacity), wanted);
    const auto read = reader.poll();
    found = read ? 1 : 0;
    if (read) out = api::report_of(*read);
    wanted = reader.next();
    missed += reader.lost();
  });
}
