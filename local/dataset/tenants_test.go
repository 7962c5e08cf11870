package dataset

import (
	"strings"
	"testing"
)

func TestTenants_BrandRepeatsNoWord(t *testing.T) {
	t.Parallel()
	for _, tenant := range Embedded().Tenants {
		for lang, name := range tenant.Brand.Localized {
			words := strings.Fields(name)
			for i := 1; i < len(words); i++ {
				if words[i] == words[i-1] {
					t.Errorf("%s: %s", lang, name)
				}
			}
		}
	}
}
