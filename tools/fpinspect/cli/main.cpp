// fpinspect: maps every error to its exit code.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/text/parse.hpp"
#include "fpinspect/cli/text/value_marks.hpp"
#include "fpinspect/output/output.hpp"
#include "samebits/error.hpp"
#include "tensor_file/error.hpp"

namespace fpinspect {
namespace {

int fail(exit_code code, const std::string& message) {
  static_cast<void>(std::fputs(("fpinspect: " + message + "\n").c_str(), stderr));
  return static_cast<int>(code);
}

int run(int argc, char** argv) {
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  output out(STDOUT_FILENO);
  try {
    run_command_line(argc, argv, out);
    out.flush();
    return static_cast<int>(exit_code::ok);
  } catch (const check_failed& error) {
    return fail(exit_code::check_failed, error.what());
  } catch (const usage_error& error) {
    return fail(exit_code::command_line, error.what());
  } catch (const samebits::tensor_file::file_error& error) {
    return fail(exit_code::file, error.what());
  } catch (const closed_pipe&) {
    return static_cast<int>(exit_code::file);
  } catch (const output_error& error) {
    return fail(exit_code::file, error.what());
  } catch (const backend_error& error) {
    return fail(exit_code::backend, error.what());
  } catch (const samebits::unsupported& error) {
    return fail(exit_code::backend, unmarked_message(error.what()));
  } catch (const samebits::cuda_error& error) {
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
