package localstores

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// RedisOptions are the choices of a private Redis.
type RedisOptions struct {
	Port int // 0: a free port
	// keep an append-only file, so that the data outlives the server; otherwise write nothing to
	// disk
	Persist bool
}

// StartRedis runs a private redis-server on 127.0.0.1 and returns its address when the server
// answers. The files are in dir, created if missing; with dir "" they are in a temporary directory,
// removed together with the server. ctx bounds the start only. The server ends with stop or with
// this process, even if the process is killed. StartRedis returns a MissingError if Redis is not
// installed.
func StartRedis(ctx context.Context, dir string, o RedisOptions) (addr string, stop func() error, err error) {
	bin, err := redisBin()
	if err != nil {
		return "", nil, err
	}
	for attempt := 1; ; attempt++ {
		addr, stop, err = startRedis(ctx, bin, dir, o)
		if err == nil {
			return addr, stop, nil
		}
		if o.Port != 0 || attempt == maxPortAttempts || ctx.Err() != nil {
			return "", nil, fmt.Errorf("localstores: start redis: %w", err)
		}
	}
}

func startRedis(ctx context.Context, bin, dir string, o RedisOptions) (string, func() error, error) {
	dir, temporary, err := workDir(dir, "redis")
	if err != nil {
		return "", nil, err
	}
	port := o.Port
	if port == 0 {
		if port, err = freePort(); err != nil {
			return "", nil, err
		}
	}
	appendOnly := "no"
	if o.Persist {
		appendOnly = "yes"
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	pidFile := filepath.Join(dir, "redis.pid")
	c, err := startProcess(ctx, program{
		argv: []string{bin,
			"--bind", "127.0.0.1", "--port", strconv.Itoa(port),
			"--dir", dir, "--pidfile", pidFile, "--daemonize", "no",
			"--save", "", "--appendonly", appendOnly,
			"--loglevel", "warning",
		},
		dir: dir, removeDir: temporary, pidFile: pidFile, stopSignal: "TERM",
		// Another server on the port would answer too. Then ours ends before writing its pid file.
		ready: func() bool { return readPID(pidFile) > 0 && pingRedis(addr) },
	})
	if err != nil {
		return "", nil, err
	}
	return addr, c.stop, nil
}

// pingRedis reports whether the Redis at addr has loaded its data and answers within a second.
func pingRedis(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return err == nil && line == "+PONG\r\n"
}

// workDir returns dir, created if missing, or a new temporary directory if dir is "".
func workDir(dir, name string) (path string, temporary bool, err error) {
	if dir == "" {
		path, err = os.MkdirTemp("", "bff-consumer-"+name+"-")
		temporary = true
	} else if path, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(path, 0o755)
	}
	return path, temporary, err
}
