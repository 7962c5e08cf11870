package cache

import "testing"

func TestWhenTheLeaderDiesOneFollowerTakesOver(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	leader := newProcess(t, addr, clock)
	dying := newUpstream(t)
	last := ask(t, t.Context(), leader.Cache, dying.fill)
	<-dying.began

	u := newUpstream(t)
	var answers []<-chan asked
	for range 3 {
		follower := newProcess(t, addr, clock)
		polled := counted(follower, "acquire", 2)
		for range 20 {
			answers = append(answers, ask(t, t.Context(), follower.Cache, u.fill))
		}
		<-polled
	}
	if n := u.calls.Load(); n != 0 {
		t.Fatalf("%d fills while the leader lives", n)
	}
	leader.tap.set(func(string) error { return errCut }, nil) // from now on Redis hears nothing of it
	<-u.began                                                 // its lease has lapsed
	close(u.finish)
	for _, answer := range answers {
		if a := <-answer; a.err != nil || a.body != "answer" {
			t.Fatalf("%q, %v", a.body, a.err)
		}
	}
	if n := u.calls.Load(); n != 1 {
		t.Fatalf("%d took over", n)
	}
	close(dying.finish)
	if a := <-last; a.err != nil || a.state != Miss { // it was only cut off, and answers its own callers
		t.Fatalf("the old leader: %s, %v", a.state, a.err)
	}
	settled(t)
}

func TestALeaderWhoLostItsLeaseStoresNothing(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	slow, quick := newProcess(t, addr, clock), newProcess(t, addr, clock)
	u := newUpstream(t)
	old := ask(t, t.Context(), slow.Cache, u.fill)
	<-u.began
	slow.rdb.Del(t.Context(), testKeys.Lock(testKey)) // as if it had lapsed
	want(t, quick.Cache, Recipe{Fill: answer(t, "newer")}, "newer", Miss)
	close(u.finish)
	if a := <-old; a.err != nil || a.body != "answer" {
		t.Fatalf("its own caller: %q, %v", a.body, a.err)
	}
	want(t, quick.Cache, Recipe{Fill: noFill(t)}, "newer", Hit)
}

func TestALivingLeaderKeepsItsLease(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	leader, follower := newProcess(t, addr, clock), newProcess(t, addr, clock)
	u := newUpstream(t)
	beats := counted(leader, "extend", 5) // longer than a term
	first := ask(t, t.Context(), leader.Cache, u.fill)
	<-u.began
	second := ask(t, t.Context(), follower.Cache, noFill(t))
	<-beats
	close(u.finish)
	for _, answer := range []<-chan asked{first, second} {
		if a := <-answer; a.err != nil || a.body != "answer" {
			t.Fatalf("%q, %v", a.body, a.err)
		}
	}
}
