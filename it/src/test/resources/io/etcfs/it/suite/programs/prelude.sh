# Sourced by the programs beside it, each `PROGRAM ONE OTHER SCRATCH PROJECT`: the same new directory on two nodes (on a local filesystem: twice the same path), one on a
# local filesystem that stays from a local run to the next on the mounts, and the project's own directory.
# shellcheck shell=bash disable=SC2034
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C
ONE=$1 OTHER=$2 SCRATCH=$3 PROJECT=$4
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$SCRATCH"
trap 'echo "FAIL: line $LINENO: $BASH_COMMAND" >&2' ERR

fail() { echo "FAIL: $*" >&2; exit 1; }

same() { # WHAT EXPECTED FOUND
  [ "$2" = "$3" ] || fail "$1: expected '$2', found '$3'"
}

same_files() { # WHAT EXPECTED FOUND
  [ -s "$2" ] || fail "$1: nothing to compare with"
  diff "$2" "$3" >"$SCRATCH/difference" || { head -n 40 "$SCRATCH/difference" >&2; fail "$1: differs (< expected, > found)"; }
}

silent() { # COMMAND...; succeeds and says nothing
  local said
  said=$("$@" 2>&1) || fail "$* failed: $said"
  [ -z "$said" ] || fail "$* said: $said"
}

both() { # PID PID; waits for both, each must have succeeded
  local pid status=0
  for pid in "$@"; do wait "$pid" || status=$?; done
  [ $status -eq 0 ] || fail "one of two that ran at once failed: $status"
}

# All that archivers keep, and all that a tree can hold.
make_specimen() { # DIRECTORY
  local i d=$1
  mkdir "$d" "$d/deep" "$d/many" "$d/empty"
  for i in 0 1 2 3 4; do mkdir -p "$d/deep/$i/a/b/c/d"; echo "$i" >"$d/deep/$i/a/b/c/d/leaf"; done
  for ((i = 0; i < 300; i++)); do head -c $((i * 37)) /dev/urandom >"$d/many/file$i"; done
  head -c 7340033 /dev/urandom >"$d/large"
  truncate -s 64M "$d/sparse"
  for i in 0 3 17 40; do head -c 100000 /dev/urandom | dd of="$d/sparse" bs=1M seek=$i conv=notrunc status=none; done
  : >"$d/empty-file"
  ln "$d/large" "$d/deep/hard" && ln "$d/many/file7" "$d/many/hard7" && ln "$d/many/file7" "$d/hard7"
  ln -s large "$d/link" && ln -s ../nowhere "$d/dangling" && ln -s /etc "$d/away"
  mkfifo "$d/fifo" && mknod "$d/null" c 1 3 && mknod "$d/disk" b 7 200
  echo odd >"$d/"$'new\nline \xff\xfe "quoted" \\ *'
  echo long >"$d/$(printf 'n%.0s' {1..255})"
  chmod 4755 "$d/many/file1"; chmod 2755 "$d/many/file2"; chmod 1777 "$d/empty"; chmod 2770 "$d/many"; chmod 0 "$d/many/file3"
  chown 1234:4321 "$d/many/file4" "$d/deep" && chown -h 77:78 "$d/link"
  setfattr -n user.note -v 'a value' "$d/many/file5" && setfattr -n user.empty "$d/many/file5"
  setfattr -n trusted.note -v 0x00ff00ff "$d/many/file5" && setfattr -n security.note -v text "$d/many/file5"
  setfattr -n user.big -v "$(printf 'v%.0s' {1..3000})" "$d/many/file6" && setfattr -n user.directory -v yes "$d/empty"
  setfacl -m u:99:rw,g:98:r,m::rw "$d/many/file8" && setfacl -m u:99:rwx "$d/deep" && setfacl -d -m u:99:rwx,g:97:rx "$d/deep"
  # After all else: changes within would move these.
  touch -h -d '2001-02-03 04:05:06.123456789' "$d/link"
  touch -d '1970-01-01 00:00:01.000000001 UTC' "$d/many/file9"
  touch -d '2100-01-01 00:00:00.999999999 UTC' "$d/many/file10" "$d/empty"
}

# Everything about each file of a tree that can be compared. Directories have sizes and no link count of their own kind.
describe() { # DIRECTORY
  (
    cd "$1"
    find . -type d -printf '%P\0%y %m %U %G %T@\0\n' -o -printf '%P\0%y %m %U %G %n %s %T@ %l\0\n' | sort | tr '\0' '\t'
    find . -name null -printf 'device ' -exec stat -c '%t:%T' {} + -o -name disk -printf 'device ' -exec stat -c '%t:%T' {} +
    find . -samefile large -printf 'large %P\n' | sort
    find . -samefile hard7 -printf 'hard7 %P\n' | sort
    find . -type f -print0 | sort -z | xargs -0 sha256sum
    # Not of symbolic links.
    find . \( -type f -o -type d -o -type p \) -print0 | sort -z | xargs -0 getfattr -d -m - -e hex --
    find . \( -type f -o -type d -o -type p \) -print0 | sort -z | xargs -0 getfacl -p -n --
  )
}
