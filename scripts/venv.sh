# shellcheck shell=bash
# Sourced by the other scripts: `ensure_venv` makes .venv at the root of the repository with irtjax
# in it, and does nothing when it is there and up to date.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=$root/.venv

die() {
    printf 'error: %s\n' "$1" >&2
    exit 1
}

# Prints the first Python 3.11 or newer that can make a virtual environment; $PYTHON goes first.
find_python() {
    local name found=''
    for name in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.14 python3.12 python3.11 python; do
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue
        found=${found:-$name}
        if "$name" -c 'import ensurepip, venv' >/dev/null 2>&1; then
            printf '%s\n' "$name"
            return
        fi
    done
    [ -z "$found" ] || die "$found has no venv module; install it (Debian, Ubuntu: apt-get install python3-venv), or name another Python with PYTHON=..."
    die "no Python 3.11 or newer was found; install one, or name it with PYTHON=/path/to/python3"
}

# What an installation depends on: what pyproject.toml asks for, and where the checkout lies, since
# an editable install and the first lines of .venv/bin/* hold absolute paths.
installation_key() {
    printf '%s\n' "$root"
    cksum <"$root/pyproject.toml"
}

is_installed() { # is_installed EXTRA
    [ -x "$venv/bin/python" ] && [ "$(cat "$venv/.installed-$1" 2>/dev/null)" = "$(installation_key)" ]
}

# Whether .venv works and was not copied here from another folder.
is_usable() {
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 || return 1
    [ ! -e "$venv/.root" ] || [ "$(cat "$venv/.root")" = "$root" ]
}

# ensure_venv EXTRA: EXTRA is "test", or empty for what a user needs. `.installed-EXTRA` is written
# last, so that an installation that was cut short is done again.
ensure_venv() {
    local extra=$1 python start=$SECONDS
    if is_installed test || { [ -z "$extra" ] && is_installed ''; }; then return; fi

    printf '== set up %s\n' "$venv"
    if ! is_usable; then
        python=$(find_python) || exit 1
        "$python" -m venv --clear "$venv"
        printf '%s\n' "$root" >"$venv/.root"
    fi
    rm -f "$venv"/.installed-*
    # -qq: errors only; --quiet still prints a line for each package on some machines.
    (cd "$root" && "$venv/bin/python" -m pip install -qq --disable-pip-version-check -e ".${extra:+[$extra]}") ||
        die "the installation failed; the reason stands above"
    installation_key >"$venv/.installed-$extra"
    printf '== set up in %d s: %s\n' $((SECONDS - start)) "$("$venv/bin/python" --version)"
}
