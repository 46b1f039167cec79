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

# In the environment, which keeps the command line short; in a defined order, as the cache below is good for one order only.
class_path() {
  local LC_ALL=C jar path=
  for jar in "$HOME_DIR"/lib/*.jar; do path+=:$jar; done
  printf '%s\n' "${path#:}"
}

# A part of lib that only some commands need: at the end, so that the cache below stays good for what comes before.
add_to_class_path() { # DIRECTORY IN lib
  local LC_ALL=C jar
  for jar in "$HOME_DIR/lib/$1"/*.jar; do
    if [ -e "$jar" ]; then CLASSPATH+=:$jar; fi
  done
}

CLASSPATH=$(class_path)
export CLASSPATH

# Netty and protobuf still use sun.misc.Unsafe, which Java would report on standard error.
JAVA_COMMON=(
  --enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow
  -XX:-UsePerfData -XX:+UseCompactObjectHeaders
)
# Classes loaded and linked, and what was learnt of methods, by a training run. Java takes the file if it comes from the same Java, these very jars and the same
# kind of object headers; else it would complain, and goes on without.
AOT_CACHE=$HOME_DIR/lib/etcfs.aot
if [ -z "${ETCFS_AOT_TRAINING:-}" ] && [ -r "$AOT_CACHE" ]; then
  JAVA_COMMON+=(-XX:AOTCache="$AOT_CACHE" '-Xlog:aot*=off,cds*=off')
fi
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
