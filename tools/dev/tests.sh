# `./dev test`. Sourced by ./dev.
# shellcheck shell=bash disable=SC2034,SC2015,SC2016

test_command() {
  local tier=${1:-all} models=fast programs='' status=0
  case $tier:${2:-} in
    spec:all) models=all; shift ;;
    exercise:*) shift; long_test exercise exercise "$@"; return ;;
    fsx:*) shift; long_test fsx fsx "$@"; return ;;
    fuzz:*) shift; long_test fuzz faults "$@"; return ;;
    fences:*) shift; many_fences "$@"; return ;;
    steps:*) shift; all_steps "$@"; return ;;
    vm:*) [ $# -le 2 ] || usage_error "test vm takes one of scsi, nvme, nodes, got '$3' as well"; test_vm "${2:-scsi}"; return ;;
    programs:*) shift $(($# > 0)); programs=$(check_programs "$@"); set -- ;;
  esac
  [ $# -le 1 ] || usage_error "test takes one tier, got '$2' as well"
  case $tier in
    all|unit|sim|it|spec) ;;
    suites|programs) ;;
    pjd) check_pjd_sources ;;
    *)   usage_error "unknown tier '$tier': unit, sim, spec, it, or none for these; suites, pjd, programs, vm, exercise, fsx, fuzz, fences, steps" ;;
  esac
  remove_reports
  case $tier in
    # Two modules at a time: most of them wait most of the time.
    all)  with_models test_modules "$tier" -T 2 || status=1 ;;
    unit) test_modules "$tier" -T 2 -pl '!it' || status=1 ;;
    sim)  test_modules "$tier" -pl testkit -am '-Dtest=io.etcfs.testkit.sim.**' -Dsurefire.failIfNoSpecifiedTests=false || status=1 ;;
    it)   test_modules "$tier" -pl it -am '-Dtest=io.etcfs.it.**' -Dsurefire.failIfNoSpecifiedTests=false || status=1 ;;
    # Tests that the other tiers leave out, by their tag (it/pom.xml).
    suites|pjd|programs)
      test_modules "$tier" -pl it -am "-Dgroups=$tier" -DexcludedGroups= "-Detcfs.it.programs=$programs" -Detcfs.it.deviceSize=8G '-Dtest=io.etcfs.it.**' -Dsurefire.failIfNoSpecifiedTests=false || status=1 ;;
  esac
  [ "$tier" != spec ] || check_models $models
  summarize_tests || status=1
  return $status
}

# The models of the fast kind beside that, giving way to it; what they say comes after it.
with_models() { # COMMAND...
  local log models status=0
  need_jdk
  need_tlc
  log=$(mktemp)
  (renice -n 19 "$BASHPID" >/dev/null; check_models fast) >"$log" 2>&1 &
  models=$!
  trap 'kill '"$models"' 2>/dev/null || true' EXIT
  "$@" || status=1
  wait "$models" || status=1
  trap - EXIT
  cat "$log"
  rm -f "$log"
  return $status
}

# Tests of one package of `it` for as long as one likes.
long_test() { # NAME PACKAGE [SECONDS] [SEED]
  local name=$1 package=$2 seconds=${3:-60} seed=${4:-$RANDOM} fenced=false tests="io.etcfs.it.$2.**"
  [ $# -le 4 ] || usage_error "test $name takes seconds and a seed, got '$5' as well"
  [[ $seconds =~ ^[1-9][0-9]{0,5}$ ]] || usage_error "test $name: '$seconds' is not a number of seconds"
  [[ $seed =~ ^[0-9]{1,15}$ ]] || usage_error "test $name: '$seed' is not a seed"
  say "seed $seed"
  # DEV_DEVICE=iscsi: with reservations.
  [ "${DEV_DEVICE:-loop}" = loop ] || fenced=true
  [ "$name" != fsx ] || tests='io.etcfs.it.suite.FsxTest#forSomeTime'
  test_of_it "$name" "$tests" "-Detcfs.it.$package.seconds=$seconds" "-Detcfs.it.$package.seed=$seed" "-Detcfs.it.$package.fenced=$fenced"
}

# Crashes and leaves in turn: each of the first is fenced once, none of the others.
many_fences() { # [ROUNDS]
  [ $# -le 1 ] || usage_error "test fences takes a number of rounds, got '$2' as well"
  [[ ${1:-100} =~ ^[1-9][0-9]{0,3}$ ]] || usage_error "test fences: '$1' is not a number of rounds"
  test_of_it fences 'io.etcfs.it.fence.FencedNodesTest#eachCrashIsFencedOnceAndNoLeaveIs' "-Detcfs.it.fence.rounds=${1:-100}"
}

# Killed at each message of a leave, a claim and a fence.
all_steps() { # [EVERY]
  [ $# -le 1 ] || usage_error "test steps takes a number, got '$2' as well"
  [[ ${1:-1} =~ ^[1-9][0-9]{0,2}$ ]] || usage_error "test steps: '$1' is not a number of messages"
  test_of_it steps io.etcfs.it.membership.StepsTest "-Detcfs.it.steps.every=${1:-1}"
}

test_of_it() { # NAME TESTS MAVEN_ARGS...
  local name=$1 tests=$2 status=0; shift 2
  remove_reports
  test_modules "$name" -pl it -am "-Dtest=$tests" -Dsurefire.failIfNoSpecifiedTests=false "$@" || status=1
  summarize_tests || status=1
  return $status
}

remove_reports() { find "$ROOT" -path '*/target/*' \( -path '*/surefire-reports/*' -o -path '*/failsafe-reports/*' \) -type f -delete; }

test_modules() { # TIER MAVEN_ARGS...
  local tier=$1 log status=0; shift
  need_jdk
  # The store's own tests run against a real etcd, too.
  need_etcd
  export ETCFS_ETCD=$ETCD
  case $tier in all|unit) need_moto ;; esac
  if [ "$tier" != unit ] && [ "$tier" != sim ]; then
    need_root
    case $tier in
      pjd) need_pjd ;;
      suites) need_long_suites ;;
      programs) need_programs ;;
      *)
        need_commands fio:fio rsync:rsync strace:strace bc:bc setfattr:attr flock:util-linux ps:procps git:git make:make \
          losetup:mount python3:python3 tar:tar mkfs.ext4:e2fsprogs ping_pong:ctdb tgtd:tgt nbdkit:nbdkit nbdfuse:libnbd-bin
        need_libiscsi
        need_suites ;;
    esac
    build
    # The tests must use what was built before them, also if someone saves a file meanwhile.
    export ETCFS_DEV_NO_BUILD=1
  fi
  log=$(mktemp)
  # Failures are counted below; Maven goes on, so that one broken module does not hide the others.
  run_maven "$@" -Dmaven.test.failure.ignore=true test 2>&1 </dev/null |
    sed -u 's/\x1b\[[0-9;]*m//g' | tee "$log" || status=$?
  # With that switch a test JVM that died is only a line in the log.
  if grep -Eq 'The forked VM terminated|error in the fork|There was a timeout|Crashed tests:' "$log"; then
    say "a test JVM died or timed out"
    status=1
  fi
  rm -f "$log"
  return $status
}

# Seeds of the simulator, from the shell.
simulate() { # FROM COUNT [FAULT...] | story SEED [FAULT...]
  case ${1:-} in
    -h|--help) echo "usage: ./dev simulate FROM COUNT [FAULT...], or ./dev simulate story SEED [FAULT...]"; return ;;
    '') usage_error "simulate takes the first seed and how many, or 'story' and a seed" ;;
  esac
  need_jdk
  local classes=$ROOT/testkit/target/simulate.classpath
  run_maven -q -pl testkit -am -Dmaven.test.skip=true -Dmdep.outputFile="$classes" package dependency:build-classpath >&2 </dev/null
  printf 'handlers=\n' >"$ROOT/testkit/target/quiet.properties"
  exec "$JAVA_HOME/bin/java" --add-opens java.base/java.lang=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow -Djdk.trackAllThreads=false \
    -Djava.util.logging.config.file="$ROOT/testkit/target/quiet.properties" -XX:+UseSerialGC \
    -cp "$ROOT/testkit/target/classes:$(cat "$classes")" io.etcfs.testkit.sim.Simulate "$@"
}

# Surefire's count line again for each module, then their sum.
summarize_tests() {
  find "$ROOT" -path '*/target/*-reports/TEST-*.xml' -exec grep -H -m 1 '<testsuite ' {} + 2>/dev/null |
    awk -v root="$ROOT/" '
      function attribute(line, name) { return match(line, " " name "=\"[0-9]+\"") ? substr(line, RSTART + length(name) + 3) + 0 : 0 }
      {
        module = substr($0, length(root) + 1); sub("/target/.*", "", module)
        modules[module]
        r[module] += attribute($0, "tests"); f[module] += attribute($0, "failures")
        e[module] += attribute($0, "errors"); s[module] += attribute($0, "skipped")
      }
      function counts(r, f, e, s) { return sprintf("Tests run: %d, Failures: %d, Errors: %d, Skipped: %d", r, f, e, s) }
      END {
        for (m in modules) { print m ": " counts(r[m], f[m], e[m], s[m]) | "sort"; R += r[m]; F += f[m]; E += e[m]; S += s[m] }
        close("sort")
        print counts(R, F, E, S)
        exit (F + E > 0 || R - S <= 0)
      }'
}
