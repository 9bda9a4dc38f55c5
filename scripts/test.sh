#!/usr/bin/env bash
# Makes .venv, then lints, checks types and runs the tests in four passes; stops at the first
# failure. Usage: bash scripts/test.sh [--all] [pytest arguments...]
#
#   --all   also the tests marked `slow`
#
# Paths in the arguments are relative to the root of the repository.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/venv.sh"

no_slow=' and not slow'
if [ "${1:-}" = --all ]; then
    no_slow=''
    shift
fi

ensure_venv test
cd "$root"

# The pages are opened in a browser; without one those tests are skipped, and say so.
ensure_browser() {
    local log=$root/.cache/apt.log
    for name in chromium chromium-browser google-chrome chrome; do
        command -v "$name" >/dev/null 2>&1 && return
    done
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then return; fi
    printf '== install chromium\n'
    { DEBIAN_FRONTEND=noninteractive timeout 120 apt-get -qq update &&
        DEBIAN_FRONTEND=noninteractive timeout 300 apt-get -qq install -y --no-install-recommends \
            chromium fonts-dejavu-core; } >"$log" 2>&1 ||
        printf 'chromium cannot be installed here (%s): the tests that open pages are skipped\n' "$log"
}

bin=$venv/bin
cache=$root/.cache
log=$cache/pytest.log
passed=0 failed=0 skipped=0
mkdir -p "$cache/jax"
# Each entry is compiled anew once a week, so that the folder does not grow for ever.
find "$cache/jax" -type f -mtime +7 -delete

ensure_browser

export JAX_PLATFORMS=cpu JAX_NUMPY_DTYPE_PROMOTION=strict
unset JAX_ENABLE_X64 XLA_FLAGS PYTEST_ADDOPTS
# XLA keeps its threads: two workers on two cores took the same CPU time (within 3%) with one each.
with_cache=(
    JAX_COMPILATION_CACHE_DIR="$cache/jax"
    JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0
    JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
)
without_cache=(-u JAX_COMPILATION_CACHE_DIR)
two_workers=(-n 2 --dist worksteal)
only_tests=(-o testpaths=tests) # the doctests in irtjax/ run once, in the first pass

step() { # step NAME COMMAND...: runs it, says how long it took, ends the script where it fails
    local name=$1 start=$SECONDS code=0
    shift
    printf '\n== %s\n' "$name"
    "$@" || code=$?
    if [ "$code" -ne 0 ]; then
        printf '== failed: %s (exit code %d), after %d s in all\n' "$name" "$code" "$SECONDS"
        exit "$code"
    fi
    printf '== %d s: %s\n' $((SECONDS - start)) "$name"
}

counted() { # counted WORD: the number before WORD in pytest's closing line, 0 without one
    local number
    number=$(tail -n 1 "$log" | grep -oE "[0-9]+ $1" | grep -oE '[0-9]+') || number=0
    printf '%s\n' "$number"
}

run_pytest() { # run_pytest [env's arguments...] -- [pytest's arguments...]
    local code=0 environment=()
    while [ "$1" != -- ]; do
        environment+=("$1")
        shift
    done
    shift
    env "${environment[@]}" "$bin/python" -m pytest --quiet "$@" 2>&1 | tee "$log" || code=${PIPESTATUS[0]}
    passed=$((passed + $(counted passed)))
    failed=$((failed + $(counted failed) + $(counted error)))
    skipped=$((skipped + $(counted skipped)))
    [ "$code" -eq 5 ] || return "$code"
    echo '(this pass has no test)'
}

step 'ruff check' "$bin/ruff" check --cache-dir "$cache/ruff" .
step 'ruff format' "$bin/ruff" format --check --cache-dir "$cache/ruff" .
step 'import layers' "$bin/lint-imports" --no-logo --cache-dir "$cache/import-linter"
step 'mypy' "$bin/mypy" --cache-dir "$cache/mypy" irtjax
step 'pytest in float32, with doctests' run_pytest "${with_cache[@]}" -- \
    "${two_workers[@]}" -m "not devices and not compilations$no_slow" "$@"
step 'pytest in x64: oracle' run_pytest "${with_cache[@]}" JAX_ENABLE_X64=1 -- \
    "${two_workers[@]}" "${only_tests[@]}" -m "oracle and not devices and not compilations$no_slow" "$@"
step 'pytest on four virtual devices: devices' run_pytest "${with_cache[@]}" XLA_FLAGS=--xla_force_host_platform_device_count=4 -- \
    "${only_tests[@]}" -m "devices$no_slow" "$@"
step 'pytest without compilation cache: compilations' run_pytest "${without_cache[@]}" -- \
    "${only_tests[@]}" -m "compilations and not devices$no_slow" "$@"

[ $((passed + failed + skipped)) -gt 0 ] || die 'no test ran'
printf '\n== all steps passed in %d s\n' "$SECONDS"
printf 'total: %d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
