// Errors of the C interface: the status of each exception, and the message of each thread.
#include "samebits/error.hpp"

#include <cstdint>
#include <exception>
#include <new>
#include <string>

#include "backends/c_api/arguments/guarded.hpp"
#include "backends/threads/interruption.hpp"

namespace samebits::c_api {
namespace {

/// The last error of a thread. `text` is empty if the message could not be stored.
struct last_error {
  std::string text;
  const char* message = "";
  std::int32_t cuda = 0;
};

// Read by samebits_last_error().
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
thread_local last_error last;

samebits_status record(samebits_status status, const std::string& message, int cuda = 0) noexcept {
  last.cuda = cuda;
  try {
    last.text = message;
    last.message = last.text.c_str();
  } catch (...) {
    last.message = "out of memory while an error was reported";
  }
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

samebits_status record_current() {
  try {
    throw;
  } catch (const invalid_argument& e) {
    return record(SAMEBITS_INVALID_ARGUMENT, e.what());
  } catch (const unsupported& e) {
    return record(SAMEBITS_UNSUPPORTED, e.what());
  } catch (const environment_error& e) {
    return record(SAMEBITS_ENVIRONMENT_ERROR, e.what());
  } catch (const call_order_error& e) {
    return record(SAMEBITS_CALL_ORDER_ERROR, e.what());
  } catch (const rank_error& e) {
    return record(SAMEBITS_RANK_ERROR, e.what());
  } catch (const scale_exhausted& e) {
    return record(SAMEBITS_SCALE_EXHAUSTED, e.what());
  } catch (const cuda_error& e) {
    return record(SAMEBITS_CUDA_ERROR, e.what(), e.code());
  } catch (const incomplete_write& e) {
    return record(SAMEBITS_INCOMPLETE_WRITE, text_of(e));
  } catch (const callback_failed& e) {
    return record(SAMEBITS_CALLBACK_FAILED, e.what());
  } catch (const backends::interrupted& e) {
    return record(SAMEBITS_CALLBACK_FAILED, e.what());
  } catch (const std::bad_alloc&) {
    return record(SAMEBITS_NO_MEMORY, "out of memory");
  } catch (const std::exception& e) {
    return record(SAMEBITS_INTERNAL_ERROR, "internal error: " + text_of(e));
  } catch (...) {
    return record(SAMEBITS_INTERNAL_ERROR, "internal error: an exception of an unknown type");
  }
}

}  // namespace

samebits_status record_error() noexcept {
  try {
    return record_current();
  } catch (...) {  // copying the message may throw std::bad_alloc
    last.cuda = 0;
    last.message = "out of memory while an error was reported";
    return SAMEBITS_NO_MEMORY;
  }
}

}  // namespace samebits::c_api

const char* samebits_last_error() { return samebits::c_api::last.message; }

int32_t samebits_last_cuda_error() { return samebits::c_api::last.cuda; }
