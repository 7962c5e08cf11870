package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// load is the result of a load test: the time of each response, and the responses that were not
// 2xx.
type load struct {
	durations []time.Duration // sorted
	failed    failures
	elapsed   time.Duration
}

// failures counts responses other than 2xx by status and problem code: "503 UPSTREAM_UNAVAILABLE".
type failures map[string]int

func (r failures) total() (n int) {
	for _, some := range r {
		n += some
	}
	return n
}

func (r failures) merge(others failures) failures {
	for what, n := range others {
		if r == nil {
			r = failures{}
		}
		r[what] += n
	}
	return r
}

// String lists the failures, the most frequent first: "503 UPSTREAM_UNAVAILABLE 2, 500 INTERNAL 1".
func (r failures) String() string {
	kinds := slices.SortedFunc(maps.Keys(r), func(a, b string) int { return cmp.Or(r[b]-r[a], strings.Compare(a, b)) })
	for i, what := range kinds {
		kinds[i] = fmt.Sprintf("%s %d", what, r[what])
	}
	return strings.Join(kinds, ", ")
}

// failureName returns the status and, if the body is a problem, the last part of its code.
func failureName(status string, body []byte) string {
	var p struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(body, &p) != nil || p.Code == "" {
		return status
	}
	return status + " " + p.Code[strings.LastIndexByte(p.Code, '.')+1:]
}

// quantile returns the q-quantile of the response times; q is 0 to 1. Without responses it is 0.
func (l *load) quantile(q float64) time.Duration {
	if len(l.durations) == 0 {
		return 0
	}
	return l.durations[min(int(q*float64(len(l.durations))), len(l.durations)-1)]
}

func (l *load) perSecond() float64 { return float64(len(l.durations)) / l.elapsed.Seconds() }

// client is a connection that sends one request after the other. It parses only the status and the
// length of a response, so that on a small machine the server uses most of the time. Not safe for
// concurrent use.
type client struct {
	conn   net.Conn
	reader *bufio.Reader
}

func dial(addr string) (*client, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return &client{conn, bufio.NewReaderSize(conn, 64<<10)}, nil
}

// do sends a request and reads the whole response, within 10 s. refused names a response that is
// not 2xx. A response without Content-Length is an error.
func (c *client) do(request []byte) (refused string, err error) {
	c.conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.conn.Write(request); err != nil {
		return "", err
	}
	length := -1
	for first := true; ; first = false {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return "", err
		}
		line = bytes.TrimRight(line, "\r\n")
		if first {
			_, after, _ := bytes.Cut(line, []byte(" "))
			if status, _, _ := bytes.Cut(after, []byte(" ")); !bytes.HasPrefix(status, []byte("2")) {
				refused = cmp.Or(string(status), "no status")
			}
		}
		if value, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return "", err
			}
		}
		if len(line) == 0 {
			break
		}
	}
	if length < 0 {
		return "", errors.New("bench: a response without Content-Length")
	}
	if refused == "" {
		_, err = c.reader.Discard(length)
		return "", err
	}
	body := make([]byte, length)
	_, err = io.ReadFull(c.reader, body)
	return failureName(refused, body), err
}

// runLoad sends requests over n connections until the time lasting is over or next returns nil.
func runLoad(addr string, n int, lasting time.Duration, next func() []byte) (*load, error) {
	began := time.Now()
	return runClients(n, func(int) string { return addr }, func(c *client, l *load) error {
		for time.Since(began) < lasting {
			request := next()
			if request == nil {
				return nil
			}
			if err := l.measure(c, request); err != nil {
				return err
			}
		}
		return nil
	})
}

// stampede sends the same request once over each of n connections, at the same time, spread over
// the addresses.
func stampede(addrs []string, n int, request []byte) (*load, error) {
	var ready sync.WaitGroup
	ready.Add(n)
	return runClients(n, func(i int) string { return addrs[i%len(addrs)] }, func(c *client, l *load) error {
		ready.Done()
		ready.Wait()
		return l.measure(c, request)
	})
}

func (l *load) measure(c *client, request []byte) error {
	began := time.Now()
	refused, err := c.do(request)
	if err != nil {
		return err
	}
	l.durations = append(l.durations, time.Since(began))
	if refused != "" {
		l.failed = l.failed.merge(failures{refused: 1})
	}
	return nil
}

// runClients connects n clients, runs work for each at the same time and merges their results.
func runClients(n int, addr func(int) string, work func(*client, *load) error) (*load, error) {
	clients := make([]*client, n)
	for i := range clients {
		c, err := dial(addr(i))
		if err != nil {
			return nil, err
		}
		defer c.conn.Close()
		clients[i] = c
	}
	loads, errs := make([]load, n), make([]error, n)
	var all sync.WaitGroup
	began := time.Now()
	for i := range clients {
		all.Go(func() { errs[i] = work(clients[i], &loads[i]) })
	}
	all.Wait()
	sum := &load{elapsed: time.Since(began)}
	for i := range loads {
		if errs[i] != nil && errs[i] != io.EOF {
			return nil, errs[i]
		}
		sum.durations = append(sum.durations, loads[i].durations...)
		sum.failed = sum.failed.merge(loads[i].failed)
	}
	slices.Sort(sum.durations)
	return sum, nil
}
