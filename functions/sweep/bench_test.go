package sweep

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

var pruneRows = flag.Int("prune", 100_000, "rows that BenchmarkSweepTables_Prune removes from each table")

// BenchmarkSweepTables_Prune removes rows of every table and reports the time of the slowest
// statement. It includes a second run, which scans the dead index entries of the first run.
func BenchmarkSweepTables_Prune(b *testing.B) {
	for _, s := range seeds {
		b.Run(s.rule, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				h := newHarness(b)
				h.insertSeed(s, *pruneRows, s.retention().seedTime(time.Now(), true))
				h.Exec("ANALYZE bff_consumer." + s.retention().table)
				db := &timedDB{database: h.DB}
				b.StartTimer()
				n, _, err := tableSweeper{db, s.retention()}.sweep(b.Context(), time.Now(), func() bool { return false })
				if err != nil || n != int64(*pruneRows) {
					b.Fatalf("got %d removed rows, %v, want %d", n, err, *pruneRows)
				}
				b.StopTimer()
				if n, _, err := (tableSweeper{db, s.retention()}).sweep(b.Context(), time.Now(), func() bool { return false }); err != nil || n != 0 {
					b.Fatalf("second run: got %d removed rows, %v, want none", n, err)
				}
				b.StartTimer()
				b.ReportMetric(float64(db.longest.Microseconds())/1000, "ms/longest-statement")
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
			}
		})
	}
}

// timedDB measures the slowest statement of a database.
type timedDB struct {
	database
	longest time.Duration
}

func (t *timedDB) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	began := time.Now()
	return timedRow{t.database.QueryRow(ctx, sql, args...), t, began}
}

type timedRow struct {
	pgx.Row
	db    *timedDB
	start time.Time
}

func (r timedRow) Scan(into ...any) error {
	err := r.Row.Scan(into...)
	r.db.longest = max(r.db.longest, time.Since(r.start))
	return err
}
