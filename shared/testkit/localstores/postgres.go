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
	// Durable writes every commit to the disk, as Cloud SQL does. Otherwise commits survive a crash
	// of the server, but not of the machine.
	Durable bool
}

// StartPostgres runs a private Postgres on 127.0.0.1. When the server accepts connections,
// StartPostgres returns the URL of the empty database "postgres", whose superuser needs no
// password. The files are in dir, created and initialised if missing; with dir "" they are in a
// temporary directory, removed together with the server. A second start in a directory takes about
// half a second. ctx bounds the start only. The server ends with stop or with this process, even if
// the process is killed.
//
// Postgres refuses to run as root. If this process is root, Postgres runs as the owner of dir, or
// as nobody if root owns dir. If that user cannot reach dir, because a parent directory is closed,
// the cluster is kept under the system's temporary directory, always at the same place.
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
			return "", nil, fmt.Errorf("localstores: start postgres: %w", err)
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
	signal := "INT" // fast shutdown: roll back, checkpoint, exit
	if temporary {
		signal = "QUIT" // immediate shutdown: the data is not kept
	}
	pidFile := filepath.Join(data, "postmaster.pid")
	argv := []string{filepath.Join(bin, "postgres"), "-D", data}
	settings := []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(port),
		"unix_socket_directories=", // the default directory of Debian belongs to the user postgres
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

// initCluster creates a cluster in data unless data has a cluster. The directory appears complete
// or not at all: an interrupted initdb leaves a directory of another name, replaced by the next
// initdb.
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
	cmd.Dir = "/"               // the working directory may be closed to the other user
	cmd.WaitDelay = stopTimeout // children of initdb also hold the output
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s: %w\n%s", half, err, out)
	}
	return os.Rename(half, data)
}

// postgresReady reads the eighth line of the pid file, as pg_ctl does: "ready" once recovery is
// over.
func postgresReady(pidFile string) bool {
	text, err := os.ReadFile(pidFile)
	lines := strings.Split(string(text), "\n")
	return err == nil && len(lines) > 7 && strings.HasPrefix(lines[7], "ready")
}

// unprivilegedUser returns the user for Postgres: nil, the current user, unless that is root. It
// gives dir to the user, and returns errUnreachable if the user cannot enter dir.
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
			return nil, fmt.Errorf("this process is root, and Postgres refuses to run as root: %w", err)
		}
		// The id of nobody is -2 on macOS.
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

var errUnreachable = errors.New("this process is root, and the unprivileged user for Postgres cannot reach its directory")
