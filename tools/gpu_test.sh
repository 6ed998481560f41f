#!/usr/bin/env bash
# Proves and measures the CUDA backends on this machine's GPU; fails where there is none.
#
#   tools/gpu_test.sh [--quick] [--only REGEX] [--build DIR] [--out FILE]
#
#   --quick      without the exhaustive comparison (all 2^32 codes by every rule: minutes of CPU time)
#   --only REGEX the parts whose names match: all of it takes an hour, 40 minutes with --quick. For example
#                '^(memcheck|racecheck)_' alone: every device test at its smallest size, 17 minutes
#   --build DIR  programs already built there; default: set up, configure and build the cuda preset
#   --out FILE   where the summary goes; default build/gpu_test.md
#
# The Python parts need torch, pytest, hypothesis and nanobind-backend in python3, and the extension in
# the build (-DSAMEBITS_PYTHON=ON with that python3); otherwise one line says what is missing.
#
# In order: device tests (conformance, properties, self-test, 2^30 quantized elements), the scales of all
# amaxes (of every 509th with --quick), examples, fpinspect verify, also of tensor cores and of all results
# of rule exact, the Python tests on CUDA tensors, every device test once more under compute-sanitizer
# (memcheck, racecheck, initcheck), and benchmarks beside a device copy and PyTorch. The last line of the
# summary, printed too, is the run's line for the table of docs/results/README.md; docs/testing.md says
# how to commit it.
set -euo pipefail
cd "$(dirname "$0")/.."

quick=0 only="" build="" out=build/gpu_test.md
while (($#)); do
  case $1 in
    --quick) quick=1 ;;
    --only) only=$2; shift ;;
    --build) build=$2; shift ;;
    --out) out=$2; shift ;;
    *) echo "gpu_test.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift
done

if ! gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1) ||
    [[ -z "$gpu" ]]; then
  echo "gpu_test.sh: no NVIDIA GPU: nvidia-smi finds none" >&2
  exit 1
fi

if [[ -z "$build" ]]; then
  tools/setup.sh test
  cmake --preset cuda
  cmake --build --preset cuda
  build=build/cuda
fi

mkdir -p "$(dirname "$out")"
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# part NAME COMMAND...: runs it, keeps its output in $logs/NAME, writes one line of the summary.
part() {
  local name=$1 begin=$SECONDS verdict=passed
  shift
  [[ $name =~ $only ]] || return 0
  echo "== $name: $*" >&2
  if ! "$@" > "$logs/$name" 2>&1; then
    verdict=FAILED
    touch "$logs/failed"
    tail -n 40 "$logs/$name" >&2
  fi
  printf '| %s | %s | %s | %d s |\n' "$name" "$verdict" "$(results_of "$logs/$name")" \
    $((SECONDS - begin)) >> "$logs/table"
}

# part_beside NAME COMMAND...: a part in the background, at most four of them at once.
part_beside() {
  while (($(jobs -rp | wc -l) >= 4)); do
    wait -n || true
  done
  part "$@" &
}

# The results of a program's output: GoogleTest's count, verify's sums, the sanitizer's errors.
results_of() {
  awk '
    /^\[  PASSED  \]/ { tests += $4 }
    /^ERROR SUMMARY|^=+ ERROR SUMMARY|^=+ RACECHECK SUMMARY/ {
      sub(/^=+ /, ""); summary = tolower($0)
    }
    / results compared, / { sums = $0 }
    /^[0-9]+ passed.* in [0-9.]+s/ { pytests = $0; sub(/ in .*/, "", pytests) }
    /: compared [0-9]+, differing [0-9]+/ {  # lines of all_scales and device_scales_test
      split($0, n, /: compared |, differing |, the first/); scales += n[2]; wrong += n[3]
    }
    END {
      text = tests ? tests " tests" : ""
      if (pytests) text = text (text ? ", " : "") pytests
    if (summary) text = text (text ? ", " : "") summary
      if (scales) text = text (text ? ", " : "") sprintf("%.0f scales, %d differ", scales, wrong)
      if (sums) text = text (text ? ", " : "") sums
      print text
    }' "$1"
}

tests=("$build"/tests/device/device_*_test)
[[ -x "${tests[0]}" ]] || { echo "gpu_test.sh: no device tests in $build" >&2; exit 1; }
for test in "${tests[@]}"; do
  cases=()  # of each operation of device_property_test
  ((quick)) && [[ $test == */device_property_test ]] && cases=(env RC_PARAMS=max_success=5000)
  part "$(basename "$test")" "${cases[@]}" "$test"
done

((quick)) || part all_scales env SAMEBITS_AMAX_STRIDE=1 "$build/tests/device/device_scales_test"

for example in "$build"/examples/example_*cuda*; do
  [[ ! -x "$example" ]] || part "$(basename "$example")" "$example"
done

fpinspect=$build/tools/fpinspect/fpinspect
verify=("$fpinspect" verify --threads 0)
((quick)) || verify+=(--exhaustive)
for backend in cuda-native cuda-emulated; do
  part "verify_$backend" "${verify[@]}" --backend "$backend"
done

part verify_tensor_cores "$fpinspect" verify --tensor-cores --cases 2048
part verify_function_units "$fpinspect" verify --function-units
part verify_exact_functions "$fpinspect" verify --exact-functions

# Python: samebits on CUDA tensors of torch. A skipped test is a failure, unless it needs two GPUs.
package=$(realpath "$build/python/package")
python_needs="import torch, pytest, hypothesis, nanobind_backend, samebits; assert torch.cuda.is_available()"
has_python=0
if missing=$(PYTHONPATH=$package python3 -c "$python_needs" 2>&1); then
  has_python=1
  for test in python/tests/torch_tests/test_*.py; do
    part "python_$(basename "$test" .py)" env PYTHONPATH="$package" SAMEBITS_REQUIRE_TORCH=1 \
      SAMEBITS_REQUIRE_GPU=1 python3 -m pytest -q -p no:cacheprovider --rootdir python "$test"
  done
else
  echo "== Python parts left out: ${missing##*$'\n'}" >&2
fi

# Every device test under each tool, four at a time; see docs/testing.md. Races are looked for in this
# project's kernels: the cublaslt programs run the vendor's alone. Tests that cause an error of the CUDA
# runtime on purpose check its code themselves, so memcheck does not count them.
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
export SAMEBITS_TEST_EFFORT=smallest
for tool in memcheck racecheck initcheck; do
  sanitized=("$sanitizer" --tool "$tool" --error-exitcode 1)
  [[ $tool != memcheck ]] || sanitized+=(--report-api-errors no)
  for test in "${tests[@]}"; do
    name=$(basename "$test")
    [[ $tool != racecheck || $name != device_cublaslt* ]] || continue
    part_beside "${tool}_$name" "${sanitized[@]}" "$test"
  done
  part_beside "${tool}_tensor_cores" "${sanitized[@]}" "$fpinspect" verify --tensor-cores --cases 16
  wait
done
unset SAMEBITS_TEST_EFFORT

bench=(env PYTHONPATH="$package" python3 tools/bench/bench.py --device cuda
       --library "$build/tools/bench/libsamebits_bench_calls.so")
speeds=(conversions quantization arithmetic functions calls lists scalers optimizers rows losses fused)
if ((has_python)); then
  for speed in "${speeds[@]}"; do
    cols=8192
    [[ $speed != losses ]] || cols=50304
    part "bench_$speed" "${bench[@]}" "$speed" --cols "$cols"
  done
fi

# result_line: the run as one line of the table in docs/results/README.md. Counts the results of verify and
# the scales of all amaxes, or of every 509th; the parts under the sanitizers repeat smaller ones.
result_line() {
  local cuda commit
  cuda=$({ nvcc --version || /usr/local/cuda/bin/nvcc --version; } 2>/dev/null |
    sed -n 's/.*release \([0-9.]*\).*/\1/p' | head -1)
  commit=${SAMEBITS_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}
  awk -F ' *[|] *' -v date="$(date -u +%Y-%m-%d)" -v commit="$commit" -v gpu="$gpu" \
      -v cuda="${cuda:-unknown}" -v quick="$quick" -v only="$only" '
    { parts++ }
    $3 != "passed" { failed = failed (failed ? ", " : "") "`" $2 "`" }
    ($2 ~ /^(verify_|all_scales)/ || quick && $2 == "device_scales_test") && match($4, /[0-9]+ results compared, [0-9]+|[0-9]+ scales, [0-9]+/) {
      split(substr($4, RSTART, RLENGTH), n, / [a-z ]+, /)
      name = $2
      sub(/^verify_/, "", name)
      compared = compared (compared ? "; " : "") n[1] " `" name "`"
      differ += n[2]
    }
    END {
      split(gpu, card, ", ")
      options = (quick ? " --quick" : "") (only ? " --only " only : "")
      gsub(/[|]/, "\\|", options)
      printf "| %s | %s | %s | %s / %s | `gpu_test.sh%s`, %d parts | %s | %s | %s |\n", date, commit,
        card[1], card[2], cuda, options, parts, compared ? compared : "-", compared ? sprintf("%.0f", differ) : "-",
        failed ? "failed: " failed : "all parts passed"
    }' "$logs/table"
}

[[ -f "$logs/table" ]] || { echo "gpu_test.sh: no part matches '$only'" >&2; exit 2; }
{
  echo "# GPU test: $gpu"
  echo
  echo "$(date -u +%Y-%m-%d), commit ${SAMEBITS_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}, $(nproc) CPU cores$( ((quick)) && echo ", quick")${only:+, parts \`$only\`}."
  echo
  echo "| part | verdict | results | time |"
  echo "|---|---|---|---|"
  cat "$logs/table"
  for backend in cuda-native cuda-emulated; do
    [[ -f "$logs/verify_$backend" ]] || continue
    echo
    echo "## fpinspect verify, $backend"
    echo
    echo '```'
    cat "$logs/verify_$backend"
    echo '```'
  done
  echo
  echo "## Speed"
  echo
  for speed in "${speeds[@]}"; do
    [[ -f "$logs/bench_$speed" ]] || continue
    grep -h '^|' "$logs/bench_$speed" || true
    echo
  done
  echo "## Line for docs/results/README.md"
  echo
  result_line
} > "$out"
echo "summary: $out" >&2
tail -n 1 "$out"
[[ ! -f "$logs/failed" ]]
