# stress-ng: its stressors of files, a directory on each node, with its own checks. STRESS_SECONDS: how long in all.
. "$(dirname "$0")/prelude.sh"
# Not: those about pipes, sockets and files outside of the directory that they are given, and fiemap, which no FUSE filesystem answers.
wanted=(access chdir chmod chown copy-file dentry dir dirdeep dirmany dup fallocate fcntl file-ioctl filename flock fpunch fsize fstat getdent hdd inode-flags io iomix lease link
  locka lockf lockofd mknod mmapfork msync open readahead rename revio seek sendfile symlink sync-file touch utime xattr)
known=$(stress-ng --stressors)
stressors=()
for s in "${wanted[@]}"; do [[ " $known " != *" $s "* ]] || stressors+=("$s"); done
[ ${#stressors[@]} -ge 35 ] || fail "stress-ng knows only ${stressors[*]}"
each=$((${STRESS_SECONDS:-60} / ${#stressors[@]}))
[ $each -ge 1 ] || each=1

stress() { # NODE NAME
  mkdir "$1/$2"
  {
    printf '%s\n' "run sequential" "timeout ${each}s" verify "temp-path $1/$2" "hdd-bytes 32M" "iomix-bytes 32M" "copy-file-bytes 128M" "fallocate-bytes 32M" "readahead-bytes 32M" "seek-size 32M" \
      "sync-file-bytes 32M"
    printf '%s 1\n' "${stressors[@]}"
  } >"$SCRATCH/stress-$2.job"
  stress-ng --job "$SCRATCH/stress-$2.job" >"$SCRATCH/stress-$2" 2>&1 </dev/null
}
stress "$ONE" one & a=$!
stress "$OTHER" other & b=$!
for pid in $a $b; do wait "$pid" || echo "exit code $?"; done
echo "${#stressors[@]} stressors, $each s each"
{ grep -hE 'fail|error|skipp' stress-one stress-other || true; } | sed 's/\[[0-9]*\]//' | sort | uniq -c
for log in stress-one stress-other; do
  grep -q 'successful run completed' "$log" || fail "$(tail -n 20 "$log")"
done
same "left over" "" "$(find "$ONE" -mindepth 2)"
