// Package web owns the page that a person sees at the address of the local system: a guest's side over the public API, a look inside,
// and the API reference. It is files and their headers; what moves is in the browser. It is never deployed.
package web

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

//go:embed static
var embedded embed.FS

// documents are the addresses that have a document of their own; any other file is asked for by its name.
var documents = map[string]string{"/": "index.html", "/book": "book.html", "/docs": "docs.html"}

// apiDescriptionPath is where the API reference finds what it renders.
const apiDescriptionPath = "/docs/consumer.openapi.yaml"

// Nothing is asked from elsewhere and nothing in a document runs: not even our own mistakes could tell anybody what a guest does.
const contentSecurityPolicy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// docsContentSecurityPolicy lets the renderer of the API reference set styles, as it does in its markup.
const docsContentSecurityPolicy = contentSecurityPolicy + "; style-src 'self' 'unsafe-inline'"

// Page serves files. It is safe for concurrent use.
type Page struct {
	files fs.FS
	api   string // file of the API description
	next  http.Handler
}

// New puts the page in front of next, which gets what is no address of the page. The files are those in the binary, or, for those who
// work on them, in a folder; api is the file of the API description.
func New(next http.Handler, folder, api string) *Page {
	files, _ := fs.Sub(embedded, "static") // cannot fail: the folder is compiled in
	if folder != "" {
		files = os.DirFS(folder)
	}
	return &Page{files, api, next}
}

func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, document := documents[r.URL.Path]
	if !document {
		name = strings.TrimPrefix(r.URL.Path, "/")
	}
	body, found := p.read(r.URL.Path, name)
	switch {
	case !found || !document && strings.HasSuffix(name, ".html"): // a document has one address
		p.next.ServeHTTP(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		gateway.WriteProblem(w, r, problem.New(problem.MethodNotAllowed, "See Allow for the methods of this address.", nil))
	default:
		serveFile(w, r, name, body)
	}
}

func (p *Page) read(url, name string) (body []byte, found bool) {
	var err error
	if url == apiDescriptionPath {
		body, err = os.ReadFile(p.api)
	} else if fs.ValidPath(name) {
		body, err = fs.ReadFile(p.files, name)
	} else {
		return nil, false
	}
	return body, err == nil
}

// mediaTypes are those that a system's own table may not have.
var mediaTypes = map[string]string{".woff2": "font/woff2", ".js": "text/javascript; charset=utf-8", ".yaml": "application/yaml", ".md": "text/markdown; charset=utf-8"}

func serveFile(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	media := cmp.Or(mediaTypes[path.Ext(name)], mime.TypeByExtension(path.Ext(name)), "text/plain; charset=utf-8")
	sum := sha256.Sum256(body)
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Security-Policy", contentSecurityPolicy)
	if name == "docs.html" {
		h.Set("Content-Security-Policy", docsContentSecurityPolicy)
	}
	h.Set("Referrer-Policy", "no-referrer") // an address may hold a token
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache") // asked again each time: another build may be behind the same address
	h.Set("ETag", `"`+hex.EncodeToString(sum[:12])+`"`)
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
}
