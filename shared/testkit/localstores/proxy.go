package localstores

import (
	"fmt"
	"io"
	"net"
	"sync"
)

// Proxy is a TCP proxy between a client and a store, and simulates network faults. Safe for
// concurrent use.
type Proxy struct {
	Addr string // for the client to dial, "127.0.0.1:port"

	target   string
	listener net.Listener
	mu       sync.Mutex
	state    proxyState
	conns    map[net.Conn]net.Conn // client's side → store's side; nil before the dial
	wg       sync.WaitGroup
}

type proxyState int

const (
	forwarding proxyState = iota
	broken
	hanging
	closed
)

// NewProxy listens on a free port of 127.0.0.1 and forwards to target, a "host:port".
func NewProxy(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("localstores: open proxy: %w", err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listener: l, conns: map[net.Conn]net.Conn{}}
	p.wg.Add(1)
	go p.accept()
	return p, nil
}

// Break closes every connection, and new connections at once, until Heal.
func (p *Proxy) Break() { p.setState(broken) }

// Hang keeps connections open and accepts new ones, but forwards no bytes in either direction,
// until Heal.
func (p *Proxy) Hang() { p.setState(hanging) }

// Heal ends Break and Hang. It closes connections that hung, because their bytes are lost.
func (p *Proxy) Heal() { p.setState(forwarding) }

// Close ends the proxy and returns when all connections are closed.
func (p *Proxy) Close() {
	p.setState(closed)
	p.listener.Close()
	p.wg.Wait()
}

func (p *Proxy) setState(s proxyState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == s {
		return
	}
	cut := s != hanging
	p.state = s
	if !cut {
		return
	}
	for client, store := range p.conns {
		client.Close()
		if store != nil {
			store.Close()
		}
	}
}

func (p *Proxy) currentState() proxyState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *Proxy) accept() {
	defer p.wg.Done()
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.wg.Add(1)
		go p.serve(client)
	}
}

// serve forwards a connection until the client, the store or the proxy closes it.
func (p *Proxy) serve(client net.Conn) {
	defer p.wg.Done()
	defer client.Close()
	if !p.track(client, nil) {
		return
	}
	defer p.untrack(client)
	if p.currentState() == hanging {
		io.Copy(io.Discard, client) // until the proxy or the client closes the connection
		return
	}
	store, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer store.Close()
	if !p.track(client, store) {
		return
	}
	done := make(chan struct{})
	go func() {
		p.copyBytes(client, store)
		close(done)
	}()
	p.copyBytes(store, client)
	<-done
}

// track records a connection for setState to close. It reports false if the caller must close the
// connection now.
func (p *Proxy) track(client, store net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == broken || p.state == closed {
		return false
	}
	p.conns[client] = store
	return true
}

func (p *Proxy) untrack(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, client)
}

// copyBytes forwards bytes in a single direction and closes both sides at the end. It drops bytes
// while the proxy hangs.
func (p *Proxy) copyBytes(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if p.currentState() == forwarding && n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
