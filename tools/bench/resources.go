package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

// storeReading is the state of all meters, those of the stores included, at one moment.
type storeReading struct {
	reading
	redisCPU, postgresCPU, scriptTime time.Duration
	commands                          int64
	outbox, otherRows, wal            int64
}

// readAll reads all meters.
func (l *costRun) readAll(ctx context.Context, s *server) (m storeReading, err error) {
	// Rows first: the CPU time of counting rows must not count as a cost of the requests.
	if err = l.db.QueryRow(ctx, `
		SELECT (SELECT count(*) FROM bff_consumer.outbox),
			(SELECT count(*) FROM bff_consumer.handoff_replay_log) + (SELECT count(*) FROM bff_consumer.idempotency_keys)
				+ (SELECT count(*) FROM bff_consumer.wishlist_anonymous) + (SELECT count(*) FROM bff_consumer.session_choice)
				+ (SELECT count(*) FROM bff_consumer.bot_score_log),
			(pg_current_wal_insert_lsn() - '0/0')::bigint`).Scan(&m.outbox, &m.otherRows, &m.wal); err != nil {
		return m, err
	}
	if m.reading, err = l.meter.read(s); err != nil {
		return m, err
	}
	m.postgresCPU = l.postgresCPU()
	info, err := l.rdb.Info(ctx, "cpu", "commandstats").Result()
	if err != nil {
		return m, err
	}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys" || name == "used_cpu_user" {
			seconds, _ := strconv.ParseFloat(value, 64)
			m.redisCPU += time.Duration(seconds * float64(time.Second))
		}
		command, ok := strings.CutPrefix(name, "cmdstat_")
		if !ok || command == "info" {
			continue
		}
		var calls, micros int64
		fmt.Sscanf(value, "calls=%d,usec=%d", &calls, &micros)
		m.commands += calls
		if strings.HasPrefix(command, "eval") {
			m.scriptTime += time.Duration(micros) * time.Microsecond
		}
	}
	return m, nil
}

// cost returns the difference to an earlier reading, per request.
func (m storeReading) cost(before storeReading, name string, a requestTotals) cost {
	n := float64(a.requests)
	each := func(d time.Duration) time.Duration { return d / time.Duration(a.requests) }
	spent := m.minus(before.reading)
	return cost{
		name: name, requests: a.requests, failed: a.failed,
		cpu: each(spent.cpu), redisCPU: each(m.redisCPU - before.redisCPU), postgresCPU: each(m.postgresCPU - before.postgresCPU),
		scriptTime: each(m.scriptTime - before.scriptTime), commands: float64(m.commands-before.commands) / n,
		roundTrips: float64(spent.roundTrips) / n, upstreamCalls: float64(spent.upstreamCalls) / n, bytesIn: a.bytesIn / a.requests, bytesOut: a.bytesOut / a.requests,
		outbox: float64(m.outbox-before.outbox) / n, otherRows: float64(m.otherRows-before.otherRows) / n, wal: int(float64(m.wal-before.wal) / n),
	}
}

// readPostmasterPID returns the parent process of all Postgres processes; 0 on systems other than
// Linux.
func (l *costRun) readPostmasterPID(ctx context.Context) (pid int, err error) {
	if err = l.db.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		return 0, err
	}
	pid, _ = strconv.Atoi(procStat(strconv.Itoa(pid))[1])
	return pid, nil
}

// postgresCPU returns the CPU time of all running Postgres processes; 0 on systems other than
// Linux.
func (l *costRun) postgresCPU() (sum time.Duration) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if f := procStat(filepath.Base(dir)); len(f) > 1 && f[1] == strconv.Itoa(l.postmaster) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			sum += processCPU(pid)
		}
	}
	return sum
}

// procStat returns the fields of /proc/PID/stat after the process name: state, parent, and so on.
func procStat(pid string) []string {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return []string{"", ""}
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.Fields(rest)
}

// printRemaining prints the data that the requests left: in Redis by kind of key, in Postgres by
// table.
func (l *costRun) printRemaining(ctx context.Context, o options) error {
	type class struct {
		name        string
		keys, bytes int64
		life        time.Duration
	}
	all := map[string]*class{}
	var entries, tags int64
	prefix := redisclient.Keys{Env: "bench"}.Key("")
	keys := l.rdb.Scan(ctx, 0, "*", 1000).Iterator() // the private Redis
	for keys.Next(ctx) {
		name := keyFamily(strings.TrimPrefix(keys.Val(), prefix))
		bytes, err := l.rdb.MemoryUsage(ctx, keys.Val(), 0).Result()
		if err != nil {
			continue // the key has expired
		}
		life, err := l.rdb.PTTL(ctx, keys.Val()).Result()
		if err != nil {
			return err
		}
		if all[name] == nil {
			all[name] = &class{name: name}
		}
		switch parts := strings.Fields(name); parts[0] {
		case "cache":
			entries++
		case "tag":
			tags += bytes
		}
		all[name].keys++
		all[name].bytes += bytes
		all[name].life = max(all[name].life, life)
	}
	if err := keys.Err(); err != nil {
		return err
	}
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\nRedis\tkeys\tbytes each\tlongest life left\t\n")
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range all {
			if !yield(name) {
				return
			}
		}
	}) {
		c := all[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%v\t\n", c.name, c.keys, c.bytes/c.keys, c.life.Round(time.Second))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	seenBytes, err := l.setMemberSize(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "tags: %d bytes for each of %d entries of the cache; sessions by when they were last seen: %d bytes each in a large set\n",
		tags/max(entries, 1), entries, seenBytes)

	fmt.Fprint(w, "\nPostgres\trows\tbytes a row, of the table\twith its indexes\t\n")
	for _, table := range []string{"outbox", "handoff_replay_log", "idempotency_keys", "wishlist_anonymous", "bot_score_log"} {
		var rows, heap, whole int64
		if err := l.db.QueryRow(ctx, `
			SELECT count(*), pg_table_size($1::text::regclass), pg_total_relation_size($1::text::regclass)
			FROM bff_consumer.`+table, "bff_consumer."+table).Scan(&rows, &heap, &whole); err != nil {
			return err
		}
		if rows > 0 {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", table, rows, heap/rows, whole/rows)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	topics, err := l.db.Query(ctx, `
		SELECT topic, count(*), avg(length(payload::text))::bigint, avg(length(headers::text))::bigint
		FROM bff_consumer.outbox GROUP BY topic ORDER BY topic`)
	if err != nil {
		return err
	}
	defer topics.Close()
	fmt.Fprint(w, "\nmessages\tsent\tbytes\tof attributes\t\n")
	for topics.Next() {
		var topic string
		var sent, payload, headers int64
		if err := topics.Scan(&topic, &sent, &payload, &headers); err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", topic, sent, payload, headers)
	}
	if err := cmp.Or(topics.Err(), w.Flush()); err != nil {
		return err
	}
	return nil
}

// setMemberSize returns the bytes that one member of a sorted set takes when the set has 10,000
// members. Redis encodes small sets more densely.
func (l *costRun) setMemberSize(ctx context.Context) (int64, error) {
	const many = 10_000
	key := redisclient.Keys{Env: "bench"}.LastSeen("large", false)
	pipe := l.rdb.Pipeline()
	for i := range many {
		pipe.ZAdd(ctx, key, goredis.Z{Score: float64(time.Now().UnixMilli() + int64(i)), Member: id.New(id.Session, time.Now())})
	}
	size := pipe.MemoryUsage(ctx, key, 0)
	_, err := pipe.Exec(ctx)
	return size.Val() / many, err
}

// keyFamily returns the name of a key without its ids, so that keys of one kind have the same name.
func keyFamily(key string) string {
	parts := strings.Split(key, ":")
	switch {
	case parts[0] == "session" && parts[1] != "seen" && len(parts) > 2:
		return "session …:" + parts[2]
	case parts[0] == "session" && parts[1] != "seen":
		return "session"
	case parts[0] == "rl":
		return "rl " + strings.Trim(strings.Join(parts[1:3], " "), "{")
	case parts[0] == "tag":
		end := ""
		if i := strings.LastIndexByte(key, '}'); i >= 0 {
			end = key[i+1:]
		}
		return "tag " + strings.TrimPrefix(strings.SplitN(parts[1], "%3A", 2)[0], "{") + end
	case parts[0] == "bot" && len(parts) > 3:
		return "bot " + parts[1] + " …:" + parts[3]
	case parts[0] == "cache" && parts[1] == "search":
		return "cache search " + parts[2]
	case parts[0] == "idem" || parts[0] == "srs":
		return parts[0]
	}
	return strings.Join(parts[:min(2, len(parts))], " ")
}
