package localstores

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHelperProcess_Owner is not a test of its own: it is the process that the tests below kill. It
// starts a store in the directory of STORES_DIR, prints its address and waits.
func TestHelperProcess_Owner(t *testing.T) {
	dir, store := os.Getenv("STORES_DIR"), os.Getenv("STORES_STORE")
	if store == "" {
		t.Skip("started by other tests")
	}
	var addr string
	var err error
	if store == "redis" {
		addr, _, err = StartRedis(t.Context(), dir, RedisOptions{Persist: true})
	} else {
		addr, _, err = StartPostgres(t.Context(), dir, PostgresOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("address " + addr + "\n")
	if os.Getenv("STORES_PANIC") != "" {
		panic("the owner panics")
	}
	select {}
}

// startOwner runs TestOwner in a process of its own and returns it with the address of its store.
func startOwner(t *testing.T, store, dir string, env ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperProcess_Owner$")
	cmd.Env = append(os.Environ(), append(env, "STORES_DIR="+dir, "STORES_STORE="+store)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if addr, ok := strings.CutPrefix(line, "address "); ok {
			go io.Copy(io.Discard, lines)
			return cmd, strings.TrimSpace(addr)
		}
		if err != nil {
			t.Fatalf("the owner ended: %v", err)
		}
	}
}

// awaitStopped returns when neither the server nor its watchdog holds the directory's lock.
func awaitStopped(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "server.lock"))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

func requireRedis(t *testing.T) {
	t.Helper()
	if _, err := redisBin(); err != nil {
		skipOrFail(t, err)
	}
}

// skipOrFail: absent on a laptop means skip, absent in CI means fail.
func skipOrFail(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	t.Skip(err)
}
