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

// dataStores are the two places data are kept in, ours or those the environment names.
type dataStores struct {
	database string // URL
	redis    string // address

	stopPostgres, stopRedis func() error // nil for one that is not ours
}

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

const storeStartTimeout = 60 * time.Second // a cluster that has to recover takes its time

// startPostgres returns the URL of a database with the newest schema.
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

// startRedis returns the address of a Redis without anything of ours in it. A run begins with an empty cache, because
// it may have another data set than the last one.
func startRedis(ctx context.Context, s *dataStores, state string) (addr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeStartTimeout)
	defer cancel()
	if addr = os.Getenv("REDIS_ADDR"); addr != "" {
		return addr, deleteLocalKeys(ctx, addr)
	}
	addr, s.stopRedis, err = private.StartRedis(ctx, filepath.Join(state, "redis"), private.RedisOptions{})
	return addr, err
}

// deleteLocalKeys removes the keys of a local system from a Redis that is not ours alone. Keys of any other environment stay.
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
		return fmt.Errorf("system: empty redis at %s: %w", addr, err)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("system: empty redis at %s: %w", addr, err)
	}
	return nil
}

// postgresDir is where the private cluster lives: beside the rest of the state, unless we are root and the way there is
// closed to others, as below /root. Postgres refuses to run as root, and another user could not reach it.
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

// isReachableByAll reports whether everybody may walk to dir.
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

// Migrate brings a database to the newest schema: that of DATABASE_URL, of the system that runs, or the private
// cluster, which is started for it.
func Migrate(ctx context.Context, o Options) error {
	state, err := filepath.Abs(o.state())
	if err != nil {
		return err
	}
	running, ok := runfile.Read(state)
	if os.Getenv("DATABASE_URL") == "" && ok && running.IsRunning() {
		err = migrations.Apply(ctx, running.Env["DATABASE_URL"])
	} else if err = os.MkdirAll(state, 0o755); err == nil {
		var kept dataStores
		_, err = startPostgres(ctx, &kept, state)
		kept.stop()
	}
	if err != nil {
		return err
	}
	o.printf("the schema is up to date")
	return nil
}
