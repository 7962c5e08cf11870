package session

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// CookieName is the only cookie of this service.
const CookieName = "gms_id"

// VerifiedID returns the session id of the request's cookie, or "" without a cookie, with two
// cookies, and with a cookie not signed by this service. It reads no store and costs an HMAC per
// key of the ring.
func (st *Store) VerifiedID(req *http.Request) string {
	sent := req.CookiesNamed(CookieName)
	if len(sent) != 1 || !verifyID(st.ring, sent[0].Value, st.now()) {
		return ""
	}
	return strings.Clone(sent[0].Value) // the id must not pin the whole header in caches
}

// cookieAttributes are formatted once, because every personal response carries them.
var cookieAttributes = fmt.Sprintf("; Path=/; Max-Age=%d; HttpOnly; Secure; SameSite=Lax", int(TTL/time.Second))

// SetCookie sets the session cookie, or renews its 30 days. Only personal responses may have a
// cookie.
func SetCookie(w http.ResponseWriter, id string) {
	w.Header()["Set-Cookie"] = []string{CookieName + "=" + id + cookieAttributes}
}

// ExpireCookie makes the client drop the session cookie.
func ExpireCookie(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{
		Name: CookieName, Path: "/", MaxAge: -1, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode,
	})
}
