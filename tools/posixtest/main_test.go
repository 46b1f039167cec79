// The suite posixtest of go-fuse, each of its tests in a directory of its own below $POSIXTEST_DIR.
package posixtest

import (
	"os"
	"sort"
	"testing"

	"github.com/hanwen/go-fuse/v2/posixtest"
)

func TestPosix(t *testing.T) {
	dir := os.Getenv("POSIXTEST_DIR")
	if dir == "" {
		t.Fatal("POSIXTEST_DIR is not set")
	}
	var names []string
	for name := range posixtest.All {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			own, err := os.MkdirTemp(dir, name)
			if err != nil {
				t.Fatal(err)
			}
			posixtest.All[name](t, own)
		})
	}
}
