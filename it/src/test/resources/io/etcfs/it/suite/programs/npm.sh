# npm ci: the same packages installed by both nodes at once; then one's tree by the other again.
. "$(dirname "$0")/prelude.sh"
export npm_config_cache=$SCRATCH/npm-cache npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false HOME=$SCRATCH

install() { # DIRECTORY
  mkdir -p "$1" && cp "$HERE/npm-package.json" "$1/package.json" && cp "$HERE/npm-package-lock.json" "$1/package-lock.json" &&
    (cd "$1" && npm ci >"$SCRATCH/npm-$$-$BASHPID" 2>&1) || { cat "$SCRATCH/npm-$$-$BASHPID" >&2; return 1; }
}
whole() { # DIRECTORY
  (cd "$1" && npm ls --all >/dev/null && node -e 'const app = require("express")(); app.get("/", () => {}); console.log(typeof require("rimraf").rimraf)')
}

[ -d npm-expected ] || install "$SCRATCH/npm-expected"
[ "$(find npm-expected/node_modules -type f | wc -l)" -gt 500 ] || fail "npm installed next to nothing"
install "$ONE/a" & a=$!
install "$OTHER/b" & b=$!
both $a $b
silent diff -r --no-dereference npm-expected "$OTHER/a"
silent diff -r --no-dereference npm-expected "$ONE/b"
same "it runs" function "$(whole "$OTHER/a")"
same "it runs" function "$(whole "$ONE/b")"
same "links to programs" "$(cd npm-expected/node_modules/.bin && find . -printf '%f %l\n' | sort)" "$(cd "$OTHER/a/node_modules/.bin" && find . -printf '%f %l\n' | sort)"

echo "installed again, by the other node"
install "$OTHER/a"
silent diff -r --no-dereference npm-expected "$ONE/a"
same "it runs" function "$(whole "$ONE/a")"
