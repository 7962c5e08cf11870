package server

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/runfile"
	"melmastoon.ghasi.io/bff-consumer/shared/migrations"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	private "melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
)

// dataStores are Postgres and Redis: started by this process, or named by DATABASE_URL and
// REDIS_ADDR.
type dataStores struct {
	database string // URL
	redis    string // address

	stopPostgres, stopRedis func() error // nil for a store that this process did not start
}

// stop stops the stores that this process started and prints errors to standard error.
func (s *dataStores) stop() {
	for _, stop := range []func() error{s.stopRedis, s.stopPostgres} {
		if stop == nil {
			continue
		}
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

const storeStartTimeout = 60 * time.Second // long enough for a cluster that must recover first

// startPostgres returns the URL of a database with the newest schema. It starts a private cluster
// unless DATABASE_URL is set. It waits up to 60 s, migrations included.
func startPostgres(ctx context.Context, s *dataStores, state string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, storeStartTimeout)
	defer cancel()
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		dir, err := postgresDir(state)
		if err != nil {
			return "", err
		}
		if url, s.stopPostgres, err = private.StartPostgres(ctx, dir, private.PostgresOptions{}); err != nil {
			return "", err
		}
	}
	return url, migrations.Apply(ctx, url)
}

// startRedis returns the address of a Redis without keys of a local system. It starts a private
// Redis unless REDIS_ADDR is set. Each run begins with an empty cache, because the data set may
// differ from the previous run. startRedis waits up to 60 s.
func startRedis(ctx context.Context, s *dataStores, state string) (addr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeStartTimeout)
	defer cancel()
	if addr = os.Getenv("REDIS_ADDR"); addr != "" {
		return addr, deleteLocalKeys(ctx, addr)
	}
	addr, s.stopRedis, err = private.StartRedis(ctx, filepath.Join(state, "redis"), private.RedisOptions{})
	return addr, err
}

// deleteLocalKeys deletes the keys of the environment "local" from a shared Redis. Keys of other
// environments stay. If ENVIRONMENT names another environment, deleteLocalKeys deletes nothing.
func deleteLocalKeys(ctx context.Context, addr string) error {
	if name := os.Getenv("ENVIRONMENT"); name != "" && name != localEnvironment {
		return nil
	}
	rdb := redisclient.Open(redisclient.Config{Addr: addr})
	defer rdb.Close()
	keys := rdb.Scan(ctx, 0, redisclient.Keys{Env: localEnvironment}.Key("*"), 1000).Iterator()
	pipe := rdb.Pipeline()
	for keys.Next(ctx) {
		pipe.Unlink(ctx, keys.Val())
	}
	if err := keys.Err(); err != nil {
		return fmt.Errorf("server: empty redis at %s: %w", addr, err)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("server: empty redis at %s: %w", addr, err)
	}
	return nil
}

// postgresDir returns the directory of the private cluster: postgres in the state directory, or a
// directory below /var/tmp if this process runs as root and other users cannot reach the state
// directory, as below /root. Postgres refuses to run as root and then runs as another user.
func postgresDir(state string) (string, error) {
	if os.Geteuid() != 0 || isReachableByAll(state) {
		return filepath.Join(state, "postgres"), nil
	}
	h := fnv.New64a()
	h.Write([]byte(state))
	dir := filepath.Join("/var/tmp", fmt.Sprintf("bff-consumer-%x", h.Sum64()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return filepath.Join(dir, "postgres"), nil
}

// isReachableByAll reports whether every user may enter dir and its parents.
func isReachableByAll(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// Migrate brings a database to the newest schema: the database of DATABASE_URL, else of the running
// system, else the private cluster, which Migrate starts and stops. It waits up to 60 s for a
// cluster.
func Migrate(ctx context.Context, o Options) error {
	state, err := filepath.Abs(o.state())
	if err != nil {
		return err
	}
	running, ok := runfile.Read(state)
	if os.Getenv("DATABASE_URL") == "" && ok && running.IsRunning() {
		err = migrations.Apply(ctx, running.Env["DATABASE_URL"])
	} else if err = os.MkdirAll(state, 0o755); err == nil {
		var stores dataStores
		_, err = startPostgres(ctx, &stores, state)
		stores.stop()
	}
	if err != nil {
		return err
	}
	o.printf("the schema is up to date")
	return nil
}
