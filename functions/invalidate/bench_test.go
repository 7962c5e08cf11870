package invalidate

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
)

// shelf is a Redis with 100,000 entries of 2 KiB, each with the tags a page of a list has: 4 of 4,000 tenants, 20
// of 40,000 properties, and one cell of the district, of which there are 500.
type shelf struct {
	rdb  redis.UniversalClient
	body string
}

const shelfSize = 100_000

func (s *shelf) entry(n int) string { return keys.Key("cache", "search", "list", fmt.Sprint(n)) }

func (s *shelf) tags(n int) []string {
	tags := []string{cache.Cell(fmt.Sprint("district-", n%500)), "everything"}
	for i := range 4 {
		tags = append(tags, cache.Tenant(fmt.Sprint((n*7+i*1009)%4_000)))
	}
	for i := range 20 {
		tags = append(tags, cache.Property(fmt.Sprint((n*13+i*2003)%40_000)))
	}
	return tags
}

// put stores the entries that carry one of the tags.
func (s *shelf) put(b *testing.B, of []string) {
	b.Helper()
	ctx, pipe := context.Background(), s.rdb.Pipeline()
	kept := float64(time.Now().Add(time.Hour).UnixMilli())
	for n := range shelfSize {
		tags := s.tags(n)
		if slices.ContainsFunc(of, func(tag string) bool { return slices.Contains(tags, tag) }) {
			pipe.Set(ctx, s.entry(n), s.body, time.Hour)
			for _, tag := range tags {
				pipe.ZAdd(ctx, keys.Tag(tag), redis.Z{Score: kept, Member: s.entry(n)})
			}
		}
		if pipe.Len() > 500 || n == shelfSize-1 {
			if _, err := pipe.Exec(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// longest is a hook that remembers the longest round trip: for so long Redis may have served nobody else.
type longest struct{ took time.Duration }

func (l *longest) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (l *longest) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (l *longest) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		began := time.Now()
		err := next(ctx, cmds)
		l.took = max(l.took, time.Since(began))
		return err
	}
}

// BenchmarkBust empties one tag of a full cache, or those of a listing's event, or one that all entries carry.
func BenchmarkBust(b *testing.B) {
	server := redistest.Server(b)
	s := &shelf{rdb: server.Client(), body: strings.Repeat("x", 2<<10)}
	emptied := []string{"everything"} // what is to be put back before the next turn
	ours := server.Client()
	trips, slow := redistest.Count(ours), &longest{}
	ours.AddHook(slow)
	c := cache.New(ours, keys, time.Now, "bench")
	district, err := geo.ParseCell(cell)
	if err != nil {
		b.Fatal(err)
	}
	event := []string{cache.Property("77"), cache.Anywhere, cache.Cell("district-7")}
	for _, ancestor := range district.Ancestors() {
		event = append(event, cache.Cell(ancestor.String()))
	}
	for _, test := range []struct {
		name string
		tags []string
	}{
		{"nothing", []string{cache.Tenant("nobody")}}, {"tenant", []string{cache.Tenant("7")}}, {"property", []string{cache.Property("77")}},
		{"cell", []string{cache.Cell("district-7")}}, {"listing", event}, {"everything", []string{"everything"}},
	} {
		b.Run(test.name, func(b *testing.B) {
			removed, n := 0, 0
			slow.took = 0
			for range b.N {
				if emptied != nil {
					b.StopTimer()
					s.put(b, emptied)
					b.StartTimer()
				}
				trips.Take()
				got, err := c.Bust(context.Background(), test.tags...)
				if err != nil {
					b.Fatal(err)
				}
				removed, n = removed+got, n+trips.Take()
				emptied = test.tags
			}
			b.ReportMetric(float64(removed)/float64(b.N), "entries/op")
			b.ReportMetric(float64(n)/float64(b.N), "trips/op")
			b.ReportMetric(float64(slow.took.Microseconds())/1000, "ms-longest-trip")
		})
	}
}
