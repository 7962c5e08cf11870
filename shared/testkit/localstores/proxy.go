package localstores

import (
	"fmt"
	"io"
	"net"
	"sync"
)

// Proxy stands between a client and a store and takes the store away in the ways a network does.
// It is safe for concurrent use.
type Proxy struct {
	Addr string // what the client dials, "127.0.0.1:port"

	target   string
	listener net.Listener
	mu       sync.Mutex
	state    proxyState
	conns    map[net.Conn]net.Conn // client's side → store's side, nil while none was dialled
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
		return nil, fmt.Errorf("stores: open proxy: %w", err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listener: l, conns: map[net.Conn]net.Conn{}}
	p.wg.Add(1)
	go p.accept()
	return p, nil
}

// Break cuts every connection, and every later one as soon as it is made.
func (p *Proxy) Break() { p.setState(broken) }

// Hang keeps connections, and accepts more, but passes on nothing in either direction, until Heal.
func (p *Proxy) Hang() { p.setState(hanging) }

// Heal forwards again. What hung is cut, because bytes on their way were swallowed.
func (p *Proxy) Heal() { p.setState(forwarding) }

// Close ends the proxy and returns when all its connections are gone.
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

// serve carries one connection until either side ends it or the proxy cuts it.
func (p *Proxy) serve(client net.Conn) {
	defer p.wg.Done()
	defer client.Close()
	if !p.track(client, nil) {
		return
	}
	defer p.untrack(client)
	if p.currentState() == hanging {
		io.Copy(io.Discard, client) // until it is cut or the client gives up
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

// track remembers a connection so that it can be cut; false: it is to be cut now.
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

// copyBytes copies bytes one way and ends both ways with it; what comes while the proxy hangs is swallowed.
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
