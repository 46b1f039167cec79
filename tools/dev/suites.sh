# Public suites that `./dev test it` runs: built once, in pinned versions, into the cache. Sourced by ./dev.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

PJDFSTEST_VERSION=0.2.2
FSX_VERSION=0.3.2
RUST_MIN=1.85

# Exports ETCFS_SUITE_..., each the path of a suite's program. Without a compiler for it a suite is left out, and its tests are skipped.
need_suites() {
  if can_build_crates; then
    ETCFS_SUITE_PJDFSTEST=$(need_crate pjdfstest $PJDFSTEST_VERSION) || die "pjdfstest could not be built; see above"
    ETCFS_SUITE_FSX=$(need_crate fsx $FSX_VERSION) || die "fsx could not be built; see above"
    export ETCFS_SUITE_PJDFSTEST ETCFS_SUITE_FSX
  fi
  if can_build_posixtest; then
    ETCFS_SUITE_POSIXTEST=$(need_posixtest) || die "posixtest could not be built; see above"
    export ETCFS_SUITE_POSIXTEST
  fi
}

# --- programs that people run, for test programs ----------------------------------------------------------------------

check_programs() { # NAME...; prints them with commas
  local name scripts=$ROOT/it/src/test/resources/io/etcfs/it/suite/programs
  for name in "$@"; do
    [ "$name" != prelude ] && [ -r "$scripts/$name.sh" ] || usage_error "no program '$name': $(cd "$scripts" && printf '%s\n' *.sh | grep -v '^prelude' | sed 's/\.sh$//' | paste -sd' ')"
  done
  (IFS=,; echo "$*")
}

need_programs() {
  need_commands git:git mvn:maven npm:npm node:nodejs rsync:rsync tar:tar setfattr:attr setfacl:acl python3:python3 stress-ng:stress-ng unzip:unzip setpriv:util-linux
  [ -n "$(find /usr/lib/postgresql -name initdb -print -quit 2>/dev/null)" ] && [ -n "$(find /usr/lib/postgresql -name pgbench -print -quit)" ] || install_packages postgresql
}

# --- suites that take longer, for test suites -------------------------------------------------------------------------

need_long_suites() { # exports ETCFS_SUITE_PYTHON, and ETCFS_SUITE_GO if there is a Go
  need_commands python3:python3
  need_python_suite
  if ETCFS_SUITE_GO=$(command -v go); then export ETCFS_SUITE_GO; else say "no go: Go's own tests are skipped (install Go 1.23 or newer to have them)"; fi
}

# Debian's Python, since its tests are a package of their own; another one may come first in the path.
need_python_suite() {
  ETCFS_SUITE_PYTHON=$(readlink -f /usr/bin/python3) && [ -x "$ETCFS_SUITE_PYTHON" ] || die "no /usr/bin/python3"
  export ETCFS_SUITE_PYTHON
  if ! "$ETCFS_SUITE_PYTHON" -c 'import test.test_os' 2>/dev/null; then install_packages "lib$(basename "$ETCFS_SUITE_PYTHON")-testsuite"; fi
}

# --- pjdfstest in C and shell: its sources are not ours to pass on ----------------------------------------------------

# What its configure finds under Linux with glibc.
PJD_DEFINES=(-D_GNU_SOURCE -DHAVE_SYS_SYSMACROS_H -DHAVE_FACCESSAT -DHAVE_FCHMODAT -DHAVE_FCHOWNAT -DHAVE_FSTATAT -DHAVE_LINKAT -DHAVE_MKDIRAT -DHAVE_MKFIFOAT -DHAVE_MKNODAT
  -DHAVE_OPENAT -DHAVE_POSIX_FALLOCATE -DHAVE_READLINKAT -DHAVE_RENAMEAT -DHAVE_SYMLINKAT -DHAVE_UNLINKAT -DHAVE_UTIMENSAT -DHAVE_STRUCT_STAT_ST_ATIM -DHAVE_STRUCT_STAT_ST_CTIM
  -DHAVE_STRUCT_STAT_ST_MTIM)

check_pjd_sources() {
  [ -n "${PJDFSTEST:-}" ] || usage_error "test pjd needs the sources of pjdfstest: git clone https://github.com/pjd/pjdfstest DIR, then PJDFSTEST=DIR ./dev test pjd"
  [ -r "$PJDFSTEST/pjdfstest.c" ] && [ -d "$PJDFSTEST/tests" ] || usage_error "PJDFSTEST '$PJDFSTEST' has no pjdfstest.c and tests/"
}

need_pjd() { # exports ETCFS_SUITE_PJD, a directory outside the sources: pjdfstest and tests/
  local sum
  need_commands cc:gcc openssl:openssl awk:gawk
  sum=$({ find "$PJDFSTEST/pjdfstest.c" "$PJDFSTEST/tests" -type f -print0 | sort -z | xargs -0 cat; declare -f build_pjd; echo "${PJD_DEFINES[@]}"; } | sha256sum)
  ETCFS_SUITE_PJD=$CACHE/pjdfstest-c-${sum:0:16}
  mkdir -p "$CACHE"
  ( flock 8; [ -d "$ETCFS_SUITE_PJD" ] || build_pjd "$PJDFSTEST" "$ETCFS_SUITE_PJD" ) 8>"$CACHE/.pjd-lock" || die "pjdfstest could not be built; see above"
  export ETCFS_SUITE_PJD
}

build_pjd() { # SOURCES DIRECTORY
  local part=$2.part
  say "building pjdfstest once, into $2"
  rm -rf "$part"
  mkdir -p "$part/include" && : >"$part/include/config.h" && cp -r "$1/tests" "$part/tests" &&
    # The same assertions everywhere: its scripts leave some out on filesystems whose names they don't know.
    printf 'os=Linux\nGREP=grep\nfs=EXT4\n' >"$part/tests/conf" &&
    cc -O1 "${PJD_DEFINES[@]}" -I"$part/include" -o "$part/pjdfstest" "$1/pjdfstest.c" >&2 && mv "$part" "$2"
}

# --- an EC2 to test against -------------------------------------------------------------------------------------------

MOTO_VERSION=5.2.5

# Exports ETCFS_MOTO. Without a network the tests that need it are skipped.
need_moto() {
  local root=$CACHE/moto-$MOTO_VERSION
  need_commands python3:python3
  mkdir -p "$CACHE"
  (
    flock 8
    if [ -e "$root/complete" ]; then exit 0; fi
    say "installing moto $MOTO_VERSION once, into $root"
    rm -rf "$root"
    { python3 -m venv "$root" 2>/dev/null || { install_packages python3-venv && python3 -m venv "$root"; }; } >&2 &&
      "$root/bin/pip" install -q "moto[server]==$MOTO_VERSION" >&2 </dev/null 8>&- && touch "$root/complete"
  ) 8>"$CACHE/.moto-lock" || { say "no moto: tests against EC2's API are skipped"; return 0; }
  export ETCFS_MOTO=$root/bin/moto_server
}

# --- crates and Go ----------------------------------------------------------------------------------------------------

can_build_posixtest() {
  command -v go >/dev/null || { say "no go: posixtest of go-fuse is skipped (install Go 1.23 or newer to have it)"; return 1; }
}

# Named after its sources: another version is another program.
need_posixtest() { # prints the path of the program
  local sum program
  sum=$(cat "$ROOT"/tools/posixtest/* | sha256sum)
  program=$CACHE/posixtest-${sum:0:16}
  mkdir -p "$CACHE"
  (
    flock 8
    if [ -x "$program" ]; then exit 0; fi
    say "building posixtest once, into $program"
    cd "$ROOT/tools/posixtest"
    CGO_ENABLED=0 GOFLAGS=-mod=readonly go test -c -o "$program.part" . >&2 </dev/null 8>&- && mv "$program.part" "$program"
  ) 8>"$CACHE/.posixtest-lock" || return 1
  printf '%s\n' "$program"
}

can_build_crates() {
  local version
  command -v cargo >/dev/null && version=$(cargo --version 2>/dev/null) ||
    { say "no cargo: pjdfstest and fsx are skipped (install Rust $RUST_MIN or newer to have them)"; return 1; }
  version=${version#cargo }
  version=${version%% *}
  [ "$(printf '%s\n' $RUST_MIN "$version" | sort -V | head -n 1)" = $RUST_MIN ] ||
    { say "cargo $version is too old: pjdfstest and fsx are skipped (Rust $RUST_MIN or newer builds them)"; return 1; }
  command -v cc >/dev/null || need_commands cc:gcc
}

need_crate() { # NAME VERSION; prints the path of its program
  local root=$CACHE/crates program=$CACHE/crates/$1-$2/bin/$1
  mkdir -p "$root"
  (
    flock 8
    if [ -x "$program" ]; then exit 0; fi
    say "building $1 $2 once, into $root/$1-$2"
    cargo install --quiet --locked --root "$root/$1-$2" --target-dir "$root/$1-$2/build" --version "$2" "$1" >&2 </dev/null 8>&- &&
      rm -rf "$root/$1-$2/build"
  ) 8>"$root/.lock" || return 1
  printf '%s\n' "$program"
}
