/* Base of the C interface: status codes, messages, version, names, views, executors, backends. */
#ifndef SAMEBITS_C_BASE_H
#define SAMEBITS_C_BASE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define SAMEBITS_C_API __attribute__((visibility("default")))
#else
#define SAMEBITS_C_API
#endif
/* Marks a function that stores the pointer passed as this parameter number and does not read the
 * memory behind the pointer. Without the mark, GCC warns about arrays that are filled later. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define SAMEBITS_C_KEEPS(parameter) __attribute__((access(none, parameter)))
#else
#define SAMEBITS_C_KEEPS(parameter)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- status and messages -------------------------------------------------------------------- */

/* Status that a function returns. Every value except SAMEBITS_OK is an error; the errors have the
 * names of the C++ exceptions. */
typedef int32_t samebits_status;
enum {
  SAMEBITS_OK = 0,
  SAMEBITS_INVALID_ARGUMENT = 1,  /* an argument was refused; nothing was written */
  SAMEBITS_UNSUPPORTED = 2,       /* not supported by this build or machine; nothing was written */
  SAMEBITS_ENVIRONMENT_ERROR = 3, /* process, build or GPU does not compute in IEEE 754 steps */
  SAMEBITS_CALL_ORDER_ERROR = 4,  /* functions of a handle were called in the wrong order */
  SAMEBITS_RANK_ERROR = 5,        /* the ranks of a run differ */
  SAMEBITS_SCALE_EXHAUSTED = 6,   /* a loss scaling policy ends the run */
  SAMEBITS_CUDA_ERROR = 7,        /* a CUDA call failed: samebits_last_cuda_error() */
  SAMEBITS_NO_MEMORY = 8,         /* host memory ran out; nothing was written */
  SAMEBITS_INTERNAL_ERROR = 9,    /* an error that no function documents: please report it */
  SAMEBITS_INCOMPLETE_WRITE = 10, /* the call failed after it had begun to write */
  SAMEBITS_CALLBACK_FAILED = 11   /* a function of the caller reported a failure */
};

/* Returns the message of the last error of the calling thread, or "" if there was none. A call that
 * succeeds keeps the message. The text is valid until the thread's next error. */
SAMEBITS_C_API const char* samebits_last_error(void);
/* Returns the cudaError_t of the last error of the calling thread; 0 unless its status was
 * SAMEBITS_CUDA_ERROR. */
SAMEBITS_C_API int32_t samebits_last_cuda_error(void);

/* --- version -------------------------------------------------------------------------------- */

/* Version of this interface. A library supports callers that were compiled with the same number.
 * The number changes only if a function or struct is removed or changes its meaning. */
#define SAMEBITS_C_INTERFACE 1

/* Returns the SAMEBITS_C_INTERFACE that the library was compiled with. */
SAMEBITS_C_API int32_t samebits_interface(void);
/* Returns the library's version as 10000 * major + 100 * minor + patch. */
SAMEBITS_C_API int32_t samebits_version(void);
/* Returns the library's version as text, such as "0.1.0". */
SAMEBITS_C_API const char* samebits_version_text(void);
/* Returns 1 if the library contains the CUDA backends, else 0. Makes no CUDA call. */
SAMEBITS_C_API int32_t samebits_has_cuda(void);

/* --- names of enumerators ------------------------------------------------------------------- */

/* Enumerations of this interface whose values have names. */
typedef int32_t samebits_enumeration;
enum {
  SAMEBITS_ENUM_STATUS = 0,
  SAMEBITS_ENUM_MEMORY = 1,
  SAMEBITS_ENUM_FORMAT = 2,
  SAMEBITS_ENUM_SPECIALS = 3,
  SAMEBITS_ENUM_NUMBER_CLASS = 4,
  SAMEBITS_ENUM_ROUNDING = 5,
  SAMEBITS_ENUM_OVERFLOW = 6,
  SAMEBITS_ENUM_NAN_POLICY = 7,
  SAMEBITS_ENUM_TEXT_STYLE = 8,
  SAMEBITS_ENUM_OPERATION = 9,
  SAMEBITS_ENUM_ACCUMULATION = 10,
  SAMEBITS_ENUM_SUM_ORDER = 11,
  SAMEBITS_ENUM_SCALE_RULE = 12,
  SAMEBITS_ENUM_NONFINITE = 13,
  SAMEBITS_ENUM_SCALE_OVERFLOW = 14,
  SAMEBITS_ENUM_SCALE_SOURCE = 15,
  SAMEBITS_ENUM_RECIPE_EVIDENCE = 16,
  SAMEBITS_ENUM_SCALE_LAYOUT = 17,
  SAMEBITS_ENUM_SCALE_PADDING = 18,
  SAMEBITS_ENUM_UNPACKABLE = 19,
  SAMEBITS_ENUM_HISTORY_CHOICE = 20,
  SAMEBITS_ENUM_ZERO_STEP = 21,
  SAMEBITS_ENUM_INSPECT_COUNTS = 22,
  SAMEBITS_ENUM_SCALING_POLICY = 23,
  SAMEBITS_ENUM_STEP_CAUSE = 24,
  SAMEBITS_ENUM_SCALE_CHANGE = 25,
  SAMEBITS_ENUM_ACCUMULATOR_KIND = 26,
  SAMEBITS_ENUM_FP32_ORDER = 27,
  SAMEBITS_ENUM_SCALE_ORDER = 28,
  SAMEBITS_ENUM_ADDEND = 29,
  SAMEBITS_ENUM_TENSOR_UNIT = 30,
  SAMEBITS_ENUM_EVIDENCE = 31,
  SAMEBITS_ENUM_VERIFY_EXTENT = 32,
  SAMEBITS_ENUM_AUTOCAST_RULE = 33,
  SAMEBITS_ENUM_TRAINING_PRECISION = 34,
  SAMEBITS_ENUM_FUNCTION = 35,
  SAMEBITS_ENUM_FUNCTION_RULE = 36,
  SAMEBITS_ENUM_UPDATE_RULE = 37,
  SAMEBITS_ENUM_UPDATE_PROFILE = 38,
  SAMEBITS_ENUM_STORED_FORMAT = 39,
  SAMEBITS_ENUM_LOW_PART = 40,
  SAMEBITS_ENUM_STREAM_PURPOSE = 41,
  SAMEBITS_ENUM_ROTARY_ANGLE = 42
};

/* Returns the name of an enumerator, such as "nearest_even" for (SAMEBITS_ENUM_ROUNDING, 0), or
 * null if there is none. The values of an enumeration are 0, 1, ... without gaps. The names are
 * those of the C++ enumerators, of command lines and of error messages. */
SAMEBITS_C_API const char* samebits_enum_name(samebits_enumeration enumeration, int32_t value);
/* Finds the enumerator with a name.
 *
 * @param name  for SAMEBITS_ENUM_FORMAT also the format's names in other libraries, such as
 *   "bfloat16" and "torch.float8_e4m3fn"
 * @param value  receives the enumerator
 * @returns SAMEBITS_INVALID_ARGUMENT, with a message that lists the names, if there is none. */
SAMEBITS_C_API samebits_status samebits_enum_find(samebits_enumeration enumeration,
                                                  const char* name, int32_t* value);

/* --- views ---------------------------------------------------------------------------------- */

/* Memory of a view. */
typedef int32_t samebits_memory;
enum {
  SAMEBITS_MEMORY_HOST = 0,  /* for CPU backends */
  SAMEBITS_MEMORY_DEVICE = 1 /* for CUDA backends */
};

/* A matrix [rows, cols] of codes of one format.
 *
 * Element (r, c) lies (r * row_stride + c * col_stride) elements behind `data`. No alignment is
 * required. Strides are >= 0. A stride of 0 repeats elements and is allowed only for inputs. A size
 * may be 0; then `data` may be null. Functions never write through a view that is an input. */
typedef struct samebits_view {
  void* data;
  int64_t rows;
  int64_t cols;
  int64_t row_stride; /* in elements */
  int64_t col_stride; /* in elements */
  int32_t format;     /* samebits_format */
  int32_t memory;     /* samebits_memory */
} samebits_view;

/* Returns a view of a dense matrix [rows, cols] in host memory. Checks nothing.
 *
 * @param format  samebits_format
 * @param data  the first element; the library writes to it only if the view is an output */
SAMEBITS_C_API samebits_view samebits_dense_view(int32_t format, const void* data, int64_t rows,
                                                 int64_t cols) SAMEBITS_C_KEEPS(2);

/* --- option structs -------------------------------------------------------------------------- */

/* Every option struct begins with struct_size, the size of the struct in the caller's version. A
 * null pointer to an option struct means the defaults. Later versions of the library append fields:
 * - The fields that a shorter struct of an older caller lacks have their defaults.
 * - A longer struct of a newer caller is refused if a byte that the library does not know is not 0.
 * Structs without struct_size never change.
 *
 * SAMEBITS_..._INIT initializes a struct with its defaults:
 *
 *   samebits_convert_options options = SAMEBITS_CONVERT_OPTIONS_INIT;
 *   options.overflow = SAMEBITS_OVERFLOW_SATURATE;
 *
 * Languages without C macros set struct_size and pass the struct to samebits_..._init(), which
 * writes the defaults into as many bytes as struct_size says. */

/* Backend, threads and stream of a call. Every executor returns the same bits; only speed
 * differs. */
typedef struct samebits_executor {
  uint32_t struct_size;
  int32_t threads;     /* CPU threads, >= 1; 0: one per hardware thread. Host backends only */
  const char* backend; /* a name of samebits_list_backends(); null or "": the default */
  void* stream;        /* cudaStream_t; null: the default stream. Device backends only */
} samebits_executor;
#define SAMEBITS_EXECUTOR_INIT \
  { (uint32_t)sizeof(samebits_executor), 1, NULL, NULL }
SAMEBITS_C_API samebits_status samebits_executor_init(samebits_executor* executor);

/* --- interruption ------------------------------------------------------------------------------ */

/* Returns 0, or another number if the call is to end. */
typedef int32_t (*samebits_interrupt_function)(void);

/* Sets a function that host calls of this thread ask, at most ten times a second, whether to end: for
 * example because the user pressed Ctrl-C. Such a call returns SAMEBITS_CALLBACK_FAILED, and its
 * outputs may be partly written. All later calls of the thread end too, until this function is
 * called again.
 *
 * @param check  called on the thread that made the call; null, the default: calls run to their end
 * @returns the function that was set before */
SAMEBITS_C_API samebits_interrupt_function
samebits_set_interrupt_check(samebits_interrupt_function check);

/* --- backends -------------------------------------------------------------------------------- */

/* Description of one backend. */
typedef struct samebits_backend {
  const char* name;
  const char* description;
  const char* why_unsupported; /* the reason in a few words; "" if supported */
  int32_t memory;              /* samebits_memory of the views that the backend works on */
  int32_t supported;           /* 1: this machine can run the backend */
  int32_t is_default;          /* 1: used for views of its memory when a call names no backend */
  int32_t reserved;            /* 0 */
} samebits_backend;

/* Receives one backend. The description and its texts are valid until the function returns. */
typedef void (*samebits_backend_function)(void* user, const samebits_backend* backend);

/* Calls `each` for every backend that the library contains.
 *
 * @param user  passed to `each` */
SAMEBITS_C_API samebits_status samebits_list_backends(samebits_backend_function each, void* user);

/* Checks that this machine can run a backend.
 *
 * @param backend  name of the backend
 * @returns SAMEBITS_INVALID_ARGUMENT for an unknown name, SAMEBITS_UNSUPPORTED for a backend that
 *   this machine cannot run; the messages list the names */
SAMEBITS_C_API samebits_status samebits_find_backend(const char* backend);

#ifdef __cplusplus
}
#endif
#endif
