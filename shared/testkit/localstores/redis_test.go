package localstores

import (
	"bufio"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestStartRedis_ServesUntilStopped(t *testing.T) {
	t.Parallel()
	requireRedis(t)
	addr, stop, err := StartRedis(t.Context(), "", RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !pingRedis(addr) {
		t.Error("it does not answer after its start")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if pingRedis(addr) {
		t.Error("it answers after its stop")
	}
}

func TestStartRedis_RestartsOnSamePortWithData(t *testing.T) {
	t.Parallel()
	requireRedis(t)
	dir := t.TempDir()
	addr, stop, err := StartRedis(t.Context(), dir, RedisOptions{Persist: true})
	if err != nil {
		t.Fatal(err)
	}
	expectRedisReply(t, addr, "SET k v", "+OK")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(addr, ":")
	number, _ := strconv.Atoi(port)
	again, stop, err := StartRedis(t.Context(), dir, RedisOptions{Port: number, Persist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if again != addr {
		t.Errorf("address %s, want %s", again, addr)
	}
	expectRedisReply(t, addr, "GET k", "$1")
}

func TestStartRedis_RejectsDirectoryInUse(t *testing.T) {
	t.Parallel()
	requireRedis(t)
	dir := t.TempDir()
	_, stop, err := StartRedis(t.Context(), dir, RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, _, err := StartRedis(t.Context(), dir, RedisOptions{}); err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("second start: %v", err)
	}
}

func TestStartRedis_FailedStartReportsServerLog(t *testing.T) {
	t.Parallel()
	requireRedis(t)
	addr, stop, err := StartRedis(t.Context(), "", RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	_, port, _ := strings.Cut(addr, ":")
	number, _ := strconv.Atoi(port)
	_, _, err = StartRedis(t.Context(), "", RedisOptions{Port: number})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("start on a taken port: %v", err)
	}
}

func TestStartRedis_EndsWithOwner(t *testing.T) {
	requireRedis(t)
	for name, env := range map[string]string{"killed": "STORES_PANIC=", "panicking": "STORES_PANIC=1"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cmd, addr := startOwner(t, "redis", dir, env)
			if name == "killed" {
				cmd.Process.Kill()
			}
			cmd.Wait()
			awaitStopped(t, dir)
			if pingRedis(addr) {
				t.Error("Redis outlived its owner")
			}
		})
	}
}

func TestStartRedis_ReplacesServerThatOutlivedWatchdog(t *testing.T) {
	t.Parallel()
	requireRedis(t)
	dir := t.TempDir()
	cmd, addr := startOwner(t, "redis", dir)
	redis := readPID(filepath.Join(dir, "redis.pid"))
	// Everything at once but the server, as an out-of-memory killer might.
	watchdog, err := syscall.Getpgid(redis)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(childPIDs(t, watchdog)) {
		if number, _ := strconv.Atoi(pid); number != redis {
			syscall.Kill(number, syscall.SIGKILL)
		}
	}
	syscall.Kill(watchdog, syscall.SIGKILL)
	cmd.Process.Kill()
	cmd.Wait()
	if !pingRedis(addr) {
		t.Fatal("Redis should have survived that")
	}
	again, stop, err := StartRedis(t.Context(), dir, RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if pingRedis(addr) && again != addr {
		t.Error("the old server still runs")
	}
	if !pingRedis(again) {
		t.Error("the new server does not answer")
	}
}

// childPIDs are the process ids below a parent.
func childPIDs(t *testing.T, parent int) string {
	t.Helper()
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(parent)).Output()
	if err != nil {
		t.Skipf("no pgrep: %v", err)
	}
	return string(out)
}

// expectRedisReply sends one inline command and wants the first line of its answer.
func expectRedisReply(t *testing.T, addr, command, want string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != want {
		t.Fatalf("%s: %q %v, want %q", command, line, err, want)
	}
}
