// Errors of the C interface: the status of each exception, and the message of each thread.
#include "backends/c_api/error.hpp"

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "samebits/c/samebits.h"
#include "samebits/error.hpp"

namespace samebits::c_api {
namespace {

/// The last error of a thread. `text` is empty if the message could not be stored.
struct last_error {
  std::string text;
  const char* message = "";
};

// Read by samebits_last_error().
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local last_error last;

int record(int status, const std::string& message) {
  last.text = message;
  last.message = last.text.c_str();
  return status;
}

/// Returns the message of an exception, followed by the messages of the exceptions nested in it.
std::string text_of(const std::exception& error) {
  std::string text = error.what();
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& cause) {
    text += ": " + text_of(cause);
  } catch (...) {
    text += ": an exception of an unknown type";
  }
  return text;
}

/// Returns the message without the C++ struct that holds the argument: C has other ones.
std::string without_holder(std::string_view message) {
  for (const std::string_view holder : {"where.", "options.", "outputs."}) {
    if (message.starts_with(holder)) message.remove_prefix(holder.size());
  }
  return std::string(message);
}

int record_current() {
  try {
    throw;
  } catch (const invalid_argument& e) {
    return record(SAMEBITS_INVALID_ARGUMENT, without_holder(e.what()));
  } catch (const unsupported& e) {
    return record(SAMEBITS_UNSUPPORTED, e.what());
  } catch (const environment_error& e) {
    return record(SAMEBITS_ENVIRONMENT_ERROR, e.what());
  } catch (const call_order_error& e) {
    return record(SAMEBITS_CALL_ORDER_ERROR, e.what());
  } catch (const scale_exhausted& e) {
    return record(SAMEBITS_SCALE_EXHAUSTED, e.what());
  } catch (const cuda_error& e) {
    return record(SAMEBITS_CUDA_ERROR, e.what());
  } catch (const incomplete_write& e) {
    return record(SAMEBITS_INCOMPLETE_WRITE, text_of(e));
  } catch (const std::bad_alloc&) {
    return record(SAMEBITS_NO_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return record(SAMEBITS_INTERNAL_ERROR, "internal error: " + text_of(e));
  } catch (...) {
    return record(SAMEBITS_INTERNAL_ERROR, "internal error: an exception of an unknown type");
  }
}

}  // namespace

int record_error() noexcept {
  try {
    return record_current();
  } catch (...) {  // copying the message may throw std::bad_alloc
    last.message = "out of memory while an error was reported";
    return SAMEBITS_NO_MEMORY;
  }
}

}  // namespace samebits::c_api

const char* samebits_last_error() { return samebits::c_api::last.message; }
