# The JDK, Maven, and the build. Sourced by ./dev.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

JDK_MAJOR=25

jdk_major_of() { # HOME; prints the major version of a full JDK
  local version
  [ -x "$1/bin/javac" ] && [ -r "$1/release" ] || return 1
  version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$1/release")
  [ -n "$version" ] && printf '%s\n' "$version"
}

jdk_candidates() {
  local file java
  [ -z "${JAVA_HOME:-}" ] || printf '%s\n' "$JAVA_HOME"
  for file in "${HOME:-/root}/.m2/toolchains.xml" /etc/maven/toolchains.xml; do
    # The toolchains file that Maven ships is an example in a comment; its homes don't exist and fall out.
    [ ! -r "$file" ] || sed -n 's:.*<jdkHome>[[:space:]]*\([^<]*[^<[:space:]]\)[[:space:]]*</jdkHome>.*:\1:p' "$file"
  done
  printf '%s\n' /usr/lib/jvm/* /usr/lib64/jvm/* /usr/java/* /opt/java/*
  if java=$(command -v javac); then dirname "$(dirname "$(readlink -f "$java")")"; fi
}

# The first JDK 25, else the first newer one.
find_jdk() {
  local home major newer=
  while IFS= read -r home; do
    major=$(jdk_major_of "$home") || continue
    if [ "$major" -eq $JDK_MAJOR ]; then printf '%s\n' "$home"; return; fi
    if [ "$major" -gt $JDK_MAJOR ] && [ -z "$newer" ]; then newer=$home; fi
  done < <(jdk_candidates)
  [ -n "$newer" ] && printf '%s\n' "$newer"
}

need_jdk() { # sets and exports JAVA_HOME
  local home package=openjdk-$JDK_MAJOR-jdk-headless
  if ! home=$(find_jdk); then
    if command -v apt-cache >/dev/null && [ -n "$(apt-cache madison "$package" 2>/dev/null)" ]; then
      install_packages "$package"
      home=$(find_jdk) || die "$package is installed, but no JDK $JDK_MAJOR was found in /usr/lib/jvm"
    else
      die "no JDK $JDK_MAJOR: looked at JAVA_HOME (${JAVA_HOME:-not set}), the Maven toolchains file and /usr/lib/jvm;" \
        "install one, for example Temurin from https://adoptium.net, and set JAVA_HOME to it"
    fi
  fi
  export JAVA_HOME=$home
}

run_maven() {
  need_commands mvn:maven
  # Maven 3.8 itself uses calls that JDK 25 warns about.
  MAVEN_OPTS="--enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow ${MAVEN_OPTS:-}" \
    mvn -B -Dstyle.color=never -f "$ROOT/pom.xml" "$@"
}

# Directories count too: a file that was removed changes only the time of its directory.
is_built() {
  [ -e "$DIST/.stamp" ] && [ -x "$DIST/bin/etcfs" ] && [ -x "$DIST/bin/etcfsctl" ] &&
    [ -z "$(find "$ROOT/pom.xml" "$ROOT"/*/pom.xml "$ROOT"/*/src -newer "$DIST/.stamp" -not -path '*/src/test*' -print -quit)" ]
}

build() {
  need_jdk
  if [ -n "${ETCFS_DEV_NO_BUILD:-}" ]; then
    [ -x "$DIST/bin/etcfs" ] || die "ETCFS_DEV_NO_BUILD is set, but there is no build in $DIST; ./dev build makes one"
    return
  fi
  if is_built; then return; fi
  mkdir -p "$ROOT/cli/target"
  # Two instances may build at once; the second finds the work done.
  (
    flock 8
    if is_built; then exit 0; fi
    say "building"
    started=$(mktemp "$ROOT/cli/target/stamp.XXXXXX")
    rm -f "$AOT_CACHE"
    run_maven -q -pl cli,aws -am -Dmaven.test.skip=true package >&2 8>&- || { rm -f "$started"; exit 1; }
    [ -x "$DIST/bin/etcfs" ] && [ -x "$DIST/bin/etcfsctl" ] ||
      { rm -f "$started"; say "the build made no $DIST/bin/etcfs and etcfsctl"; exit 1; }
    train 8>&-
    mv "$started" "$DIST/.stamp"
  ) 8>"$ROOT/cli/target/.build-lock" || die "the build failed; see above"
}
