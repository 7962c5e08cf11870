package browser

// Every function of the service, as in ../functions.go: an import registers its entry points.
import (
	_ "melmastoon.ghasi.io/bff-consumer/functions/consume"
	_ "melmastoon.ghasi.io/bff-consumer/functions/detail"
	_ "melmastoon.ghasi.io/bff-consumer/functions/handoff"
	_ "melmastoon.ghasi.io/bff-consumer/functions/invalidate"
	_ "melmastoon.ghasi.io/bff-consumer/functions/migrate"
	_ "melmastoon.ghasi.io/bff-consumer/functions/relay"
	_ "melmastoon.ghasi.io/bff-consumer/functions/search"
	_ "melmastoon.ghasi.io/bff-consumer/functions/session"
	_ "melmastoon.ghasi.io/bff-consumer/functions/sweep"
	_ "melmastoon.ghasi.io/bff-consumer/functions/telemetry"
	_ "melmastoon.ghasi.io/bff-consumer/functions/wishlist"
)
