// Chooses the backend of a call whose arguments are checked (view_checks.hpp), and runs the call.
#pragma once

#include <concepts>

#include "backends/api/view_checks.hpp"
#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/refuse.hpp"

namespace samebits::backends {

/// The memory of a call, and whether it has any: an empty list has none to check.
struct call_space {
  memory_space space;
  bool is_empty = false;

  // NOLINTNEXTLINE(google-explicit-constructor): most calls have memory
  call_space(memory_space of, bool empty = false) : space(of), is_empty(empty) {}
};

/// The backend of a call. has(backend) says whether a backend can compute the call. `lacks`: parts of the
/// error message, what the backend does not have: "has no reductions".
/// @throws unsupported  if the backend that the executor names cannot
template <class Has, class... Parts>
requires std::predicate<Has, const backend&>
const backend& backend_for(const Has& has, const call_space& of, const executor& where,
                           const Parts&... lacks) {
  check_threads(where);
  const backend& chosen = resolve(where, of.space, has);
  if (!of.is_empty) check_memory(chosen, of.space);
  require<unsupported>(has(chosen), "backend '", chosen.name, "' ", lacks...);
  return chosen;
}
/// The backend that has an operation for a call.
template <class Call, class... Parts>
const backend& backend_for(operation_entry<Call> backend::*operation, const Call& call,
                           const call_space& of, const executor& where, const Parts&... lacks) {
  return backend_for([&](const backend& b) { return (b.*operation).has(call); }, of, where,
                     lacks...);
}

/// Runs a call on its backend, unless the view of a result, `out`, is empty.
template <class Call, class... Parts>
void run_call(operation_entry<Call> backend::*operation, const Call& call,
              const const_matrix_view& out, const executor& where, const Parts&... lacks) {
  const backend& chosen = backend_for(operation, call, out.space, where, lacks...);
  if (!is_empty(out)) (chosen.*operation).run(call, where);
}

}  // namespace samebits::backends
