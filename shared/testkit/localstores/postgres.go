package localstores

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// PostgresOptions are the choices of a private Postgres.
type PostgresOptions struct {
	// Durable has what is committed on the disk, as the platform's has. Else it survives any crash of the server, not one
	// of the machine.
	Durable bool
}

// StartPostgres runs a Postgres of its own on 127.0.0.1 and returns the URL of its empty database "postgres", owned
// by a superuser without a password, when it accepts connections. Its files are in dir, which is made and
// initialised when missing; with dir "" they are in a temporary one that goes when the server does. The second start
// in a directory takes about half a second. ctx bounds the start only. The server ends with stop or with this
// process, however that ends.
//
// Postgres refuses to run as root. Then it runs as the owner of dir, or, when that is root too, as nobody. When that
// user cannot reach dir, because a directory above it is root's alone, the cluster is kept under the system's temporary
// directory instead, at the same place each time.
func StartPostgres(ctx context.Context, dir string, o PostgresOptions) (url string, stop func() error, err error) {
	bin, err := PostgresBin()
	if err != nil {
		return "", nil, err
	}
	for attempt := 1; ; attempt++ {
		url, stop, err = startPostgres(ctx, bin, dir, o)
		if err == nil {
			return url, stop, nil
		}
		if attempt == maxPortAttempts || ctx.Err() != nil || !strings.Contains(err.Error(), "could not bind") {
			return "", nil, fmt.Errorf("stores: start postgres: %w", err)
		}
	}
}

func startPostgres(ctx context.Context, bin, dir string, o PostgresOptions) (_ string, _ func() error, err error) {
	dir, temporary, err := workDir(dir, "postgres")
	if err != nil {
		return "", nil, err
	}
	as, err := unprivilegedUser(dir)
	if errors.Is(err, errUnreachable) && !temporary {
		name := fmt.Sprintf("bff-consumer-postgres-%x", sha256.Sum256([]byte(dir)))
		if dir, _, err = workDir(filepath.Join(os.TempDir(), name[:40]), ""); err == nil {
			as, err = unprivilegedUser(dir)
		}
	}
	if err != nil {
		return "", nil, err
	}
	data := filepath.Join(dir, "data")
	if err := initCluster(ctx, bin, data, as); err != nil {
		if temporary {
			os.RemoveAll(dir)
		}
		return "", nil, err
	}
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	signal := "INT" // fast: rolls back, checkpoints, ends
	if temporary {
		signal = "QUIT" // immediate: there is nothing to keep
	}
	pidFile := filepath.Join(data, "postmaster.pid")
	argv := []string{filepath.Join(bin, "postgres"), "-D", data}
	settings := []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(port),
		"unix_socket_directories=", // Debian's default belongs to its own user
		"max_connections=200", "shared_buffers=64MB",
		"timezone=UTC", "log_timezone=UTC",
	}
	if !o.Durable {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off")
	}
	for _, setting := range settings {
		argv = append(argv, "-c", setting)
	}
	c, err := startProcess(ctx, program{
		argv: argv, dir: dir, removeDir: temporary, pidFile: pidFile, stopSignal: signal, credential: as,
		ready: func() bool { return postgresReady(pidFile) },
	})
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port), c.stop, nil
}

// initCluster makes a cluster in data unless there is one. A cluster appears whole or not at all: an interrupted
// initdb leaves a directory of another name, which the next one replaces.
func initCluster(ctx context.Context, bin, data string, as *syscall.Credential) error {
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	half := data + ".new"
	if err := os.RemoveAll(half); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", half, "-U", "postgres",
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	cmd.Dir = "/"               // our own may be closed to the other user
	cmd.WaitDelay = stopTimeout // what initdb started has its output too
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s: %w\n%s", half, err, out)
	}
	return os.Rename(half, data)
}

// postgresReady reads the last line of the pid file, as pg_ctl does: it says "ready" once recovery is over.
func postgresReady(pidFile string) bool {
	text, err := os.ReadFile(pidFile)
	lines := strings.Split(string(text), "\n")
	return err == nil && len(lines) > 7 && strings.HasPrefix(lines[7], "ready")
}

// unprivilegedUser says whom Postgres runs as: nil, ourselves, unless we are root. It hands dir to that user and makes
// sure that the way to it is open.
func unprivilegedUser(dir string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	owner := info.Sys().(*syscall.Stat_t)
	as := &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	if owner.Uid == 0 {
		nobody, err := user.Lookup("nobody")
		if err != nil {
			return nil, fmt.Errorf("we are root, which Postgres refuses to be: %w", err)
		}
		// Signed on macOS, where nobody is -2.
		uid, _ := strconv.ParseInt(nobody.Uid, 10, 64)
		gid, _ := strconv.ParseInt(nobody.Gid, 10, 64)
		as.Uid, as.Gid = uint32(uid), uint32(gid)
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			return nil, err
		}
	}
	probe := exec.Command("/bin/sh", "-c", `cd "$1"`, "probe", dir)
	probe.Dir = "/"
	probe.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if out, err := probe.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: user %d: %w\n%s", errUnreachable, as.Uid, err, out)
	}
	return as, nil
}

var errUnreachable = errors.New("the user whom Postgres runs as, because we are root, cannot reach its directory")
