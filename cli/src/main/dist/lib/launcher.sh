# What bin/etcfs and bin/etcfsctl share. They set HOME_DIR, the directory of this installation.
# shellcheck shell=bash

JAVA_MAJOR=25

# The major version of the Java at a home, from the file that every JDK and JRE has.
java_major_of() { # HOME
  local version
  [ -x "$1/bin/java" ] && [ -r "$1/release" ] || return 1
  version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$1/release")
  [ -n "$version" ] && printf '%s\n' "$version"
}

# ETCFS_JAVA names the program and is taken as it is; everything else must be new enough.
find_java() {
  local home major java
  if [ -n "${ETCFS_JAVA:-}" ]; then printf '%s\n' "$ETCFS_JAVA"; return; fi
  java=$(command -v java) && java=$(readlink -f "$java") && java=${java%/bin/java} || java=
  for home in "$HOME_DIR/runtime" "${JAVA_HOME:-}" /usr/lib/jvm/*"$JAVA_MAJOR"* "$java"; do
    [ -n "$home" ] && major=$(java_major_of "$home") && [ "$major" -ge "$JAVA_MAJOR" ] || continue
    printf '%s\n' "$home/bin/java"
    return
  done
  return 1
}

# Netty and protobuf still use sun.misc.Unsafe, which Java would report on standard error.
JAVA_COMMON=(
  --enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow
  -XX:-UsePerfData -Xshare:auto
)
JAVA_SHORT=("${JAVA_COMMON[@]}" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx256m)

need_java() { # PROGRAM EXIT_CODE; sets JAVA
  if ! JAVA=$(find_java); then
    printf '%s: no Java %s found: set ETCFS_JAVA to a java program or JAVA_HOME to its home\n' "$1" "$JAVA_MAJOR" >&2
    exit "$2"
  fi
  if ! [ -x "$JAVA" ]; then
    printf '%s: ETCFS_JAVA=%s is not a program: set it to a java %s program\n' "$1" "$JAVA" "$JAVA_MAJOR" >&2
    exit "$2"
  fi
}
