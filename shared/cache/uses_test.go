package cache

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

const partKey = "test:bff-consumer:cache:property:p"

// made is a Fill of an answer that is made of the part.
func made(t testing.TB, c *Cache, part func(context.Context) (Filled, error)) func(context.Context) (Filled, error) {
	return func(ctx context.Context) (Filled, error) {
		e, _, err := c.Do(ctx, partKey, nil, Recipe{TTL: time.Minute, Fill: part})
		if err != nil {
			return Filled{}, err
		}
		Used(ctx, e, "tag")
		return filled(t, "made of "+text(t, e), "tag", "another"), nil
	}
}

func TestAnAnswerMadeOfAPartIsStoredLikeAnyOther(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	if _, err := p.Bust(t.Context(), "tag", "another"); err != nil { // before both: forbids nothing
		t.Fatal(err)
	}
	want(t, p.Cache, Recipe{Fill: made(t, p.Cache, answer(t, "part", "tag"))}, "made of part", Miss)
	want(t, p.Cache, Recipe{Fill: noFill(t)}, "made of part", Hit)
	p.rdb.Del(t.Context(), testKey)
	if _, err := p.Bust(t.Context(), "another"); err != nil { // not the part's tag, and the part is older
		t.Fatal(err)
	}
	want(t, p.Cache, Recipe{Fill: made(t, p.Cache, noFill(t))}, "made of part", Miss)
	want(t, p.Cache, Recipe{Fill: noFill(t)}, "made of part", Hit)
}

// TestAPartMadeBeforeAnInvalidationIsNotStoredInAnAnswerBegunAfterIt: the part's own fill is under way when the
// invalidation comes, and the answer joins it.
func TestAPartMadeBeforeAnInvalidationIsNotStoredInAnAnswerBegunAfterIt(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	var truth atomic.Value
	truth.Store("old")
	began, finish := make(chan struct{}), make(chan struct{})
	part := func(ctx context.Context) (Filled, error) {
		read := truth.Load().(string)
		close(began)
		<-finish
		return filled(t, read, "tag"), nil
	}
	alone := make(chan struct{})
	go func() {
		defer close(alone)
		if _, _, err := p.Do(t.Context(), partKey, nil, Recipe{TTL: time.Minute, Fill: part}); err != nil {
			t.Error(err)
		}
	}()
	<-began
	truth.Store("new")
	if _, err := p.Bust(t.Context(), "tag"); err != nil {
		t.Fatal(err)
	}
	fresh := func(context.Context) (Filled, error) { return filled(t, truth.Load().(string), "tag"), nil }
	joining := counted(p, "get", 2) // the answer's own, and the part's
	whole := ask(t, t.Context(), p.Cache, made(t, p.Cache, fresh))
	<-joining
	close(finish)
	<-alone
	<-whole // old or new, as its fill joined the part's or came after it
	p.tap.set(nil, nil)
	settled(t)
	if body, state := do(t, p.Cache, Recipe{Fill: made(t, p.Cache, fresh)}); body != "made of new" {
		t.Fatalf("afterwards: %s %q", state, body)
	}
}

// TestAPartAboutToBeDeletedIsNotStoredInAnAnswer: an answer is made while the invalidation has noted its time but not
// yet deleted the part.
func TestAPartAboutToBeDeletedIsNotStoredInAnAnswer(t *testing.T) {
	addr, clock := redisAddr(t), newClock()
	p, buster := newProcess(t, addr, clock), newProcess(t, addr, clock)
	if _, _, err := p.Do(t.Context(), partKey, nil, Recipe{TTL: time.Minute, Fill: answer(t, "old", "tag")}); err != nil {
		t.Fatal(err)
	}
	buster.tap.set(func(step string) error {
		if step == "del" {
			want(t, p.Cache, Recipe{Fill: made(t, p.Cache, noFill(t))}, "made of old", Miss)
		}
		return nil
	}, nil)
	if n, err := buster.Bust(t.Context(), "tag"); err != nil || n != 1 {
		t.Fatalf("removed %d, %v", n, err)
	}
	want(t, p.Cache, Recipe{Fill: made(t, p.Cache, answer(t, "new", "tag"))}, "made of new", Miss)
}

func TestUsedOutsideAFillDoesNothing(t *testing.T) {
	e := sample(t)
	Used(t.Context(), &e, "tag")
}
