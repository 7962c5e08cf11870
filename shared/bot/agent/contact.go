package agent

import "strings"

// findContact finds an address that somebody may write to or look up: programs leave one, browsers never do.
func findContact(t agentText) string {
	// Whatever was installed into Internet Explorer wrote itself into its agent, with the page of its maker.
	if guests := strings.Contains(t.lower, "msie ") && !strings.Contains(t.lower, "+http"); !guests && page(t.lower) {
		return "contact"
	}
	for at := 0; ; at++ {
		next := strings.IndexByte(t.lower[at:], '@')
		if next < 0 {
			return ""
		}
		if at += next; at > 0 && startsWithHost(t.lower[at+1:]) {
			return "contact"
		}
	}
}

// page says whether a text has in it what looks like the address of a page.
func page(s string) bool {
	for _, mark := range [...]string{"http:/", "https:/", "www.", " dot com", "[at]"} {
		if strings.Contains(s, mark) {
			return true
		}
	}
	return containsDomain(s)
}

// startsWithHost says whether a text begins with a host name. A version behind an @, as some browsers have, ends in digits.
func startsWithHost(s string) bool {
	end := 0
	for end < len(s) && (isLetter(s[end]) || isDigit(s[end]) || s[end] == '.' || s[end] == '-') {
		end++
	}
	s = strings.TrimRight(s[:end], ".-")
	dot := strings.LastIndexByte(s, '.')
	return dot > 0 && len(s)-dot > 2 && !strings.ContainsAny(s[dot:], "0123456789")
}

// containsDomain says whether a text has a word like example.com in it. That .NET begins a word is Microsoft's doing.
func containsDomain(s string) bool {
	for at := 0; at < len(s); at++ {
		next := strings.IndexByte(s[at:], '.')
		if next < 0 {
			return false
		}
		at += next
		if at == 0 || !isLetter(s[at-1]) && !isDigit(s[at-1]) {
			continue
		}
		for _, top := range [...]string{"com", "org", "net"} {
			if end := at + 1 + len(top); strings.HasPrefix(s[at+1:], top) &&
				(end == len(s) || strings.IndexByte(" /);,", s[end]) >= 0) {
				return true
			}
		}
	}
	return false
}
