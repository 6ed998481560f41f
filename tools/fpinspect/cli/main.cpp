// fpinspect: maps every error to its exit code.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/files.hpp"
#include "samebits/error.hpp"
#include "tensor_file/files/mapped_file.hpp"
#include "tensor_file/files/staged_file.hpp"

namespace fpinspect {
namespace {

int fail(exit_code code, const std::string& message) {
  static_cast<void>(std::fputs(("fpinspect: " + message + "\n").c_str(), stderr));
  return static_cast<int>(code);
}

/// Ends the program as the signal does by default, but leaves no unfinished output behind.
void end_by(int signal) {
  tensor_file::remove_unfinished_file();
  static_cast<void>(std::signal(signal, SIG_DFL));
  static_cast<void>(std::raise(signal));
}

/// SIGBUS: a page of a mapped file cannot be read.
void end_by_bad_page(int signal, siginfo_t* info, void*) {
  const char* const name = tensor_file::mapped_name(info->si_addr);
  if (name == nullptr) return end_by(signal);
  static std::atomic_flag told;
  while (told.test_and_set()) ::pause();  // another thread ends the program
  for (const char* part : {"fpinspect: ", name,
                           ": cannot be read to its end: the file was shortened meanwhile, or its "
                           "disk failed\n"}) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, part, std::strlen(part));
  }
  tensor_file::remove_unfinished_file();
  ::_exit(static_cast<int>(exit_code::file));
}

void handle_signals() {
  // Failed writes then return EPIPE and EFBIG.
  for (const int ignored : {SIGPIPE, SIGXFSZ}) static_cast<void>(std::signal(ignored, SIG_IGN));
  for (const int ending : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU}) {
    // A shell's background job, or a job under nohup, ignores some of these signals.
    if (std::signal(ending, end_by) == SIG_IGN) static_cast<void>(std::signal(ending, SIG_IGN));
  }
  struct sigaction on_bad_page {};
  on_bad_page.sa_flags = SA_SIGINFO;
  on_bad_page.sa_sigaction = end_by_bad_page;
  ::sigaction(SIGBUS, &on_bad_page, nullptr);
}

int run(int argc, char** argv) {
  handle_signals();
  output out(STDOUT_FILENO);
  try {
    try {
      run_command_line(argc, argv, out);
    } catch (const check_failed&) {
      out.flush();
      throw;
    }
    require_whole_inputs();
    out.flush();
    return static_cast<int>(exit_code::ok);
  } catch (const closed_pipe& error) {
    return static_cast<int>(error.code);
  } catch (const tool_error& error) {
    return fail(error.code, error.what());
  } catch (const file_error& error) {
    return fail(exit_code::file, error.what());
  } catch (const unsupported& error) {
    return fail(exit_code::backend, unmarked_message(error.what()));
  } catch (const cuda_error& error) {
    return fail(exit_code::backend, unmarked_message(error.what()));
  } catch (const std::bad_alloc&) {
    return fail(exit_code::file, "not enough memory");
  } catch (const std::exception& error) {
    return fail(exit_code::file, unmarked_message(error.what()));
  }
}

}  // namespace
}  // namespace fpinspect

int main(int argc, char** argv) { return fpinspect::run(argc, argv); }
