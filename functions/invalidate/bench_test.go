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
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// fullCache is a Redis with 100,000 entries of 2 KiB, each with the tags of a result page: 4 of
// 4,000 tenants, 20 of 40,000 properties, and one of 500 district cells.
type fullCache struct {
	rdb  redis.UniversalClient
	body string
}

const cacheSize = 100_000

func (s *fullCache) key(n int) string { return keys.Key("cache", "search", "list", fmt.Sprint(n)) }

func (s *fullCache) tags(n int) []string {
	tags := []string{cache.CellTag(fmt.Sprint("district-", n%500)), "everything"}
	for i := range 4 {
		tags = append(tags, cache.TenantTag(fmt.Sprint((n*7+i*1009)%4_000)))
	}
	for i := range 20 {
		tags = append(tags, cache.PropertyTag(fmt.Sprint((n*13+i*2003)%40_000)))
	}
	return tags
}

// store stores the entries with at least one of the tags.
func (s *fullCache) store(b *testing.B, of []string) {
	b.Helper()
	ctx, pipe := context.Background(), s.rdb.Pipeline()
	kept := float64(time.Now().Add(time.Hour).UnixMilli())
	for n := range cacheSize {
		tags := s.tags(n)
		if slices.ContainsFunc(of, func(tag string) bool { return slices.Contains(tags, tag) }) {
			pipe.Set(ctx, s.key(n), s.body, time.Hour)
			for _, tag := range tags {
				pipe.ZAdd(ctx, keys.Tag(tag), redis.Z{Score: kept, Member: s.key(n)})
			}
		}
		if pipe.Len() > 500 || n == cacheSize-1 {
			if _, err := pipe.Exec(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// slowestHook is a Redis hook that keeps the longest round trip. Redis may have served no other
// client for that time.
type slowestHook struct{ slowest time.Duration }

func (l *slowestHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (l *slowestHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (l *slowestHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		began := time.Now()
		err := next(ctx, cmds)
		l.slowest = max(l.slowest, time.Since(began))
		return err
	}
}

// BenchmarkCacheInvalidate_Tags invalidates a tag of a full cache, the tags of a listing event, or
// a tag of all entries.
func BenchmarkCacheInvalidate_Tags(b *testing.B) {
	server := redistest.NewServer(b)
	s := &fullCache{rdb: server.Client(), body: strings.Repeat("x", 2<<10)}
	emptied := []string{"everything"} // tags whose entries must be stored again before the next iteration
	client := server.Client()
	trips, slow := redistest.Count(client), &slowestHook{}
	client.AddHook(slow)
	c := cache.New(client, keys, time.Now, "bench")
	district, err := geo.ParseCell(testCell)
	if err != nil {
		b.Fatal(err)
	}
	event := []string{cache.PropertyTag("77"), cache.UnknownAreaTag, cache.CellTag("district-7")}
	for _, ancestor := range district.Ancestors() {
		event = append(event, cache.CellTag(ancestor.String()))
	}
	for _, test := range []struct {
		name string
		tags []string
	}{
		{"nothing", []string{cache.TenantTag("unused")}}, {"tenant", []string{cache.TenantTag("7")}}, {"property", []string{cache.PropertyTag("77")}},
		{"cell", []string{cache.CellTag("district-7")}}, {"listing", event}, {"everything", []string{"everything"}},
	} {
		b.Run(test.name, func(b *testing.B) {
			removed, n := 0, 0
			slow.slowest = 0
			for range b.N {
				if emptied != nil {
					b.StopTimer()
					s.store(b, emptied)
					b.StartTimer()
				}
				trips.TakeCount()
				got, err := c.Invalidate(context.Background(), test.tags...)
				if err != nil {
					b.Fatal(err)
				}
				removed, n = removed+got, n+trips.TakeCount()
				emptied = test.tags
			}
			b.ReportMetric(float64(removed)/float64(b.N), "entries/op")
			b.ReportMetric(float64(n)/float64(b.N), "trips/op")
			b.ReportMetric(float64(slow.slowest.Microseconds())/1000, "ms-longest-trip")
		})
	}
}
