package agent

import "strings"

// findContact returns "contact" if a user agent contains an e-mail or web address. Programs include
// an address; browsers never do.
func findContact(t agentText) string {
	// Extensions of Internet Explorer added a name and the maker's page to the browser's user
	// agent.
	if extension := strings.Contains(t.lower, "msie ") && !strings.Contains(t.lower, "+http"); !extension && containsURL(t.lower) {
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

// containsURL reports whether a text contains a web address.
func containsURL(s string) bool {
	for _, mark := range [...]string{"http:/", "https:/", "www.", " dot com", "[at]"} {
		if strings.Contains(s, mark) {
			return true
		}
	}
	return containsDomain(s)
}

// startsWithHost reports whether a text begins with a host name. A version after an @, which some
// browsers send, is no host name: its last label has digits.
func startsWithHost(s string) bool {
	end := 0
	for end < len(s) && (isLetter(s[end]) || isDigit(s[end]) || s[end] == '.' || s[end] == '-') {
		end++
	}
	s = strings.TrimRight(s[:end], ".-")
	dot := strings.LastIndexByte(s, '.')
	return dot > 0 && len(s)-dot > 2 && !strings.ContainsAny(s[dot:], "0123456789")
}

// containsDomain reports whether a text contains a domain name such as example.com. A name must
// have a letter or digit before the dot: Microsoft's ".NET" does not match.
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
