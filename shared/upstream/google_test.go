package upstream

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestGoogleTokenSource_RequestsTokenForAudience(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claims := fmt.Sprintf(`{"aud":%q,"exp":%d}`, r.FormValue("audience"), time.Now().Add(time.Hour).Unix())
		io.WriteString(w, "e30."+base64.RawURLEncoding.EncodeToString([]byte(claims))+".sig")
	}))
	defer server.Close()
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
	token, err := GoogleTokenSource{}.Token(t.Context(), "https://a.test")
	if err != nil {
		t.Fatal(err)
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil || !strings.Contains(string(claims), `"aud":"https://a.test"`) {
		t.Errorf("got claims %s, %v, want the requested audience", claims, err)
	}
}
