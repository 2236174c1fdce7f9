# Sourced by scripts/test and scripts/demo: finds a Python, makes a virtual environment, installs the project into it.
#
#   project_environment EXTRAS
#
# sets PYTHON_IN_VENV. The environment is $VENV if given, else .venv in the project, else (when the project cannot be
# written to, or .venv belongs to another user) a folder of the project's own under the user's cache. It is made and
# installed again only when pyproject.toml, the constraints, the extras or the Python changed.

ROOT=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd -P)
CONSTRAINTS=$ROOT/requirements/constraints.txt

say() { printf '%s\n' "$*" >&2; }

# Whether this command is a Python of at least 3.11 that can make virtual environments.
suitable_python() {
    command -v "$1" >/dev/null 2>&1 &&
        "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3.13 python3.12 python3.11 python3; do
        if suitable_python "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

need_python() {
    find_python && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        say "No Python 3.11 or newer that can make virtual environments; installing Debian's."
        debian_packages python3 python3-venv >&2 && find_python && return
    fi
    say "This needs Python 3.11 or newer with its venv module (Debian and Ubuntu: apt install python3 python3-venv)."
    say "Where it is not on PATH, name it: PYTHON=/path/to/python3.12 $0"
    return 1
}

debian_packages() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q </dev/null && apt-get install -q -y --no-install-recommends "$@" </dev/null
}

# Where the environment goes.
choose_venv() {
    if [ -n "${VENV:-}" ]; then
        mkdir -p -- "$VENV" && (cd -- "$VENV" && pwd -P)
    elif [ -w "$ROOT" ] && { [ ! -e "$ROOT/.venv" ] || [ -O "$ROOT/.venv" ]; }; then
        printf '%s\n' "$ROOT/.venv"
    else
        local key
        key=$(printf '%s' "$ROOT" | sha256sum | cut -c1-12)
        printf '%s\n' "${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/symbi-recover/venv-$key"
    fi
}

project_environment() {
    local extras=$1 python venv target wanted
    python=$(need_python) || return
    venv=$(choose_venv) || return
    mkdir -p -- "$venv" || return
    if command -v flock >/dev/null 2>&1; then
        exec 9>"$venv/.lock"
        flock 9 # two runs at once take turns
    fi
    PYTHON_IN_VENV=$venv/bin/python
    target=$ROOT${extras:+[$extras]}
    wanted=$(
        { "$python" -VV && cat -- "$ROOT/pyproject.toml" "$CONSTRAINTS" && printf '%s\n' "$target" "$venv"; } |
            sha256sum
    ) || return
    if ! "$PYTHON_IN_VENV" -c 'import symbi_recover' >/dev/null 2>&1 ||
        [ "$(cat -- "$venv/.installed-$extras" 2>/dev/null)" != "$wanted" ]; then
        say "Installing $target into $venv ..."
        if ! "$PYTHON_IN_VENV" -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            if [ ! -e "$venv/pyvenv.cfg" ] && [ -n "$(ls -A -- "$venv" | grep -vx .lock)" ]; then
                rm -f -- "$venv/.lock"
                say "$venv is neither empty nor a virtual environment, so it is left alone. Choose another: VENV=DIR $0"
                return 1
            fi
            "$python" -m venv --clear "$venv" || return
        fi
        # By a relative path, because pip splits this variable at blanks; as a variable, to hold for the build as well.
        if ! (cd -- "$ROOT" && PIP_CONSTRAINT=requirements/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
            exec "$PYTHON_IN_VENV" -m pip install --quiet --editable ".${extras:+[$extras]}" </dev/null); then
            say "The Python packages could not be installed; pip's own words are above. They are listed in"
            say "pyproject.toml, and the versions in requirements/constraints.txt. Nothing was run."
            return 1
        fi
        printf '%s\n' "$wanted" >"$venv/.installed-$extras"
    fi
    exec 9>&- # not to be inherited by what runs next
}
