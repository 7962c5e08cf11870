package crawler

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
)

// hostPattern is a name that an engine gives its crawlers: where it ends, and how it begins where not all that end so are theirs.
type hostPattern struct{ prefix, suffix string }

// crawlerHosts are those by engine, as the engines document them. What people make Google fetch for them (google-proxy-…,
// …gae.googleusercontent.com) is not Googlebot, so of google.com only one kind of name is.
var crawlerHosts = map[string][]hostPattern{
	"googlebot": {{"crawl-", ".googlebot.com"}, {"geo-crawl-", ".googlebot.com"}, {"rate-limited-proxy-", ".google.com"}},
	"bingbot":   {{"", ".search.msn.com"}},
	"applebot":  {{"", ".applebot.apple.com"}},
	"yandex":    {{"", ".yandex.com"}, {"", ".yandex.ru"}, {"", ".yandex.net"}},
	"baidu":     {{"", ".crawl.baidu.com"}, {"", ".crawl.baidu.jp"}},
	"yahoo":     {{"", ".crawl.yahoo.net"}},
	"seznam":    {{"", ".seznam.cz"}},
	"petalbot":  {{"petalbot-", ".petalsearch.com"}},
	"qwant":     {{"", ".qwant.com"}},
	"sogou":     {{"sogouspider-", ".crawl.sogou.com"}},
	"naver":     {{"", ".web.naver.com"}},
}

// maxNames is how many names of one address are looked up: whoever has the reverse zone may list any number.
const maxNames = 4

// forwardConfirm says whether an address has a name of the engine that has the address. Whoever has an address may name it as he
// likes, so the name alone says nothing.
func forwardConfirm(ctx context.Context, dns Resolver, c claim) (bool, error) {
	found, err := dns.LookupAddr(ctx, c.addr.String())
	if err != nil {
		return false, ignoreNotFound(err)
	}
	found = slices.DeleteFunc(found, func(name string) bool { return !isCrawlerHost(c.engine, name) })
	var failed error
	for _, name := range found[:min(len(found), maxNames)] {
		addresses, err := dns.LookupNetIP(ctx, "ip", name)
		if err := ignoreNotFound(err); err != nil {
			failed = err
			continue
		}
		for _, a := range addresses {
			if a.Unmap().WithZone("") == c.addr {
				return true, nil
			}
		}
	}
	return false, failed
}

func isCrawlerHost(engine, name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return slices.ContainsFunc(crawlerHosts[engine], func(h hostPattern) bool {
		return strings.HasPrefix(name, h.prefix) && strings.HasSuffix(name, h.suffix)
	})
}

// ignoreNotFound passes a failure on. That there is no such name is an answer.
func ignoreNotFound(err error) error {
	if none, ok := errors.AsType[*net.DNSError](err); ok && none.IsNotFound {
		return nil
	}
	return err
}
