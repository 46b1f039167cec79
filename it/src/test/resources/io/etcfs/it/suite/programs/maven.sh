# Maven: this project's core, built by both nodes at once, each in a tree of its own; what the other changes is built again, and no more.
. "$(dirname "$0")/prelude.sh"

copy() { # DIRECTORY
  mkdir "$1"
  (cd "$PROJECT" && tar --exclude=target -cf - pom.xml */pom.xml core/src) | tar -C "$1" -xf -
}
build() { # DIRECTORY LOG
  local code=0
  mvn -B -o -Dstyle.color=never -f "$1/pom.xml" -pl core -Dmaven.test.skip=true package >"$2" 2>&1 </dev/null || code=$?
  # Maven's word, and its exit code, which must agree.
  if [ $code -eq 0 ] && grep -q 'BUILD SUCCESS' "$2"; then return 0; fi
  { echo "exit code $code"; tail -n 30 "$2"; } >&2
  return 1
}
classes() { # DIRECTORY
  (cd "$1/core/target/classes" && find . -type f -print0 | sort -z | xargs -0 sha256sum)
}

copy "$ONE/a" & a=$!
copy "$OTHER/b" & b=$!
both $a $b
silent diff -r "$OTHER/a" "$ONE/b"
echo "both build"
build "$ONE/a" "$SCRATCH/maven-a" & a=$!
build "$OTHER/b" "$SCRATCH/maven-b" & b=$!
both $a $b
if [ ! -e maven-expected ]; then classes "$ONE/a" >maven-expected; fi
[ "$(wc -l <maven-expected)" -gt 100 ] || fail "only $(wc -l <maven-expected) classes"
classes "$OTHER/a" >maven-found && same_files "classes of one" maven-expected maven-found
classes "$ONE/b" >maven-found && same_files "classes of the other" maven-expected maven-found
for at in "$OTHER/a" "$ONE/b"; do silent unzip -tqq "$at"/core/target/etcfs-core-*.jar; done

echo "nothing to do, then one change made by the other"
build "$ONE/a" "$SCRATCH/maven-again"
grep -q 'Nothing to compile' maven-again || fail "compiled again: $(grep -i compil maven-again)"
changed=$(find "$OTHER/a/core/src/main" -name '*.java' ! -name '*-info.java' | sort | sed -n 1p)
printf '\n// Changed on the other node.\n' >>"$changed"
build "$ONE/a" "$SCRATCH/maven-again"
grep -q 'Recompiling the module because of' maven-again || fail "not compiled again: $(grep -i compil maven-again)"
classes "$OTHER/a" >maven-found && same_files "classes after the change" maven-expected maven-found
printf 'no Java\n' >>"$changed"
if build "$OTHER/a" "$SCRATCH/maven-broken" 2>/dev/null; then fail "what is no Java is built"; fi
grep -q 'COMPILATION ERROR' maven-broken || fail "not refused for its source: $(tail -n 5 maven-broken)"
