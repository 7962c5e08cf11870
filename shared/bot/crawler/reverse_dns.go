package crawler

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
)

// hostPattern matches host names of an engine's crawlers. prefix is set if the engine also has
// other hosts with the suffix.
type hostPattern struct{ prefix, suffix string }

// crawlerHosts has the documented host names of crawlers by engine. Fetches that users trigger at
// Google (google-proxy-…, …gae.googleusercontent.com) are not Googlebot; google.com has one pattern
// only.
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

// maxNames bounds the host names of one address that are resolved. The owner of a reverse zone may
// list any number.
const maxNames = 4

// forwardConfirm reports whether an address has a host name of the engine that resolves to the
// address. The host name alone is no proof: the owner of an address chooses the name.
// forwardConfirm makes a reverse lookup and at most four forward lookups, and returns an error only
// if the result depends on a failed lookup.
func forwardConfirm(ctx context.Context, dns Resolver, c claim) (bool, error) {
	names, err := dns.LookupAddr(ctx, c.addr.String())
	if err != nil {
		return false, ignoreNotFound(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !isCrawlerHost(c.engine, name) })
	var failed error
	for _, name := range names[:min(len(names), maxNames)] {
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

// isCrawlerHost reports whether a host name matches a pattern of the engine.
func isCrawlerHost(engine, name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return slices.ContainsFunc(crawlerHosts[engine], func(h hostPattern) bool {
		return strings.HasPrefix(name, h.prefix) && strings.HasSuffix(name, h.suffix)
	})
}

// ignoreNotFound returns nil for the error of a name that does not exist, which is a result, and
// else err.
func ignoreNotFound(err error) error {
	if dnsErr, ok := errors.AsType[*net.DNSError](err); ok && dnsErr.IsNotFound {
		return nil
	}
	return err
}
