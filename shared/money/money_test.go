package money

import (
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
)

func TestParse_AcceptsOnlySupportedCurrencies(t *testing.T) {
	t.Parallel()
	for _, c := range Supported() {
		if got, err := Parse(string(c)); err != nil || got != c {
			t.Errorf("Parse(%q): got %s, %v", c, got, err)
		}
	}
	for _, bad := range []string{"", "usd", "Usd", "CHF", "AFA", "XXX", "US", "USDT", " USD", "USD\n"} {
		if got, err := Parse(bad); !errors.Is(err, ErrNotSupported) {
			t.Errorf("Parse(%q): got %s, %v, want ErrNotSupported", bad, got, err)
		}
	}
}

func TestForCountry_ChoosesCurrency(t *testing.T) {
	t.Parallel()
	for country, want := range map[string]Currency{
		"AF": AFN, "IR": IRR, "PK": PKR, "AE": AED, "GB": GBP, "DE": EUR, "FR": EUR, "HR": EUR, "BG": EUR,
		"CH": USD, "SE": USD, "TJ": USD, "US": USD, "MA": USD, "": USD, "ZZ": USD, "af": USD, "AFG": USD,
	} {
		t.Run(country, func(t *testing.T) {
			if got := ForCountry(country); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestDigits_MatchISO4217(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		"AFN": 2, "IRR": 2, "PKR": 2, "USD": 2, "EUR": 2, "AED": 2, "GBP": 2, "JPY": 0, "KWD": 3, "CLF": 4, "SLE": 2, "XCG": 2, "VED": 2, "ZWG": 2,
	} {
		t.Run(code, func(t *testing.T) {
			if got, ok := Digits(code); !ok || got != want {
				t.Errorf("got %d, %t, want %d", got, ok, want)
			}
		})
	}
	for _, inactive := range []string{"", "usd", "AFA", "TRL", "BYR", "HRK", "XXX", "XTS", "XAU", "ZWL", "ANG", "SLL"} {
		if _, ok := Digits(inactive); ok {
			t.Errorf("%q is in the table of active currencies", inactive)
		}
	}
	for _, c := range Supported() {
		if _, ok := Digits(string(c)); !ok {
			t.Errorf("the supported currency %s is not in the table", c)
		}
	}
}

func TestDigits_TableHasNoDuplicates(t *testing.T) {
	t.Parallel()
	var all []string
	for _, codes := range iso4217 {
		all = append(all, strings.Fields(codes)...)
	}
	slices.Sort(all)
	if len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Error("the table has a duplicate code")
	}
	for _, code := range all {
		if len(code) != 3 || strings.ToUpper(code) != code {
			t.Errorf("got %q, want three capitals", code)
		}
	}
}

func TestParseMinor_AcceptsOnlyCanonicalForm(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"0", "1", "-1", "450000", "999999999999999999", "-999999999999999999"} {
		if m, err := ParseMinor(good); err != nil || string(m) != good {
			t.Errorf("ParseMinor(%q): got %s, %v", good, m, err)
		}
	}
	for _, bad := range []string{"", "-", "-0", "00", "01", "-01", "+1", "1.0", "1e3", " 1", "1 ", "1_000", "١٢", "--1", "0x1", "1000000000000000000", "NaN"} {
		if m, err := ParseMinor(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("ParseMinor(%q): got %s, %v, want ErrMalformed", bad, m, err)
		}
	}
}

func TestMinor_ComparesAsNumber(t *testing.T) {
	t.Parallel()
	list := []string{"-100", "-99", "-10", "-9", "-1", "0", "1", "9", "10", "99", "100", "999999999999999999"}
	for _, a := range list {
		for _, b := range list {
			x, _ := new(big.Int).SetString(a, 10)
			y, _ := new(big.Int).SetString(b, 10)
			if got := Minor(a).Cmp(Minor(b)); got != x.Cmp(y) {
				t.Errorf("%s.Cmp(%s): got %d, want %d", a, b, got, x.Cmp(y))
			}
		}
	}
}
