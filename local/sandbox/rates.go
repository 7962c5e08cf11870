package sandbox

import (
	"math/bits"
	"strconv"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

// All prices are synthetic. One number says what a property costs, its ordinary night in US dollars; everything
// else multiplies it by something that is the same for all properties: the day, the guests, the rate of exchange.
// So whoever is cheaper is cheaper on every night and in every currency, and an order by price is the order by
// that number. Amounts are whole minor units throughout; there is no floating point here.

// exchangeRate is a fixed, invented exchange rate: so many ten-thousandths of a minor unit for one dollar, and the grain
// that amounts are rounded down to. The digits are those of ISO 4217.
type exchangeRate struct {
	perDollar uint64
	roundTo   uint64
}

var exchangeRates = map[string]exchangeRate{
	"USD": {100_0000, 1},
	"EUR": {90_0000, 1},
	"GBP": {78_0000, 1},
	"AED": {367_2500, 25},
	"AFN": {6_800_0000, 100},
	"PKR": {28_000_0000, 100},
	"IRR": {110_000_000_0000, 1_000_000},
}

// fxSnapshot names the table of rates above, as a snapshot of the market would be named.
const fxSnapshot = "fxs_sandbox-1"

// localCurrency is what the properties of a country are sold in.
func localCurrency(country string) string {
	switch country {
	case "AF":
		return "AFN"
	case "IR":
		return "IRR"
	case "PK":
		return "PKR"
	case "AE":
		return "AED"
	case "GB":
		return "GBP"
	case "MA", "AD", "MC", "FR", "DE", "ES", "IT":
		return "EUR"
	}
	return "USD"
}

var (
	seasonFactors  = [...]uint64{0, 880, 890, 1010, 1080, 1050, 1090, 1180, 1220, 1080, 1020, 910, 960} // by month, thousandths
	weekdayFactors = [...]uint64{980, 960, 960, 980, 1070, 1130, 1060}                                  // Sunday first; the weekend is Thursday to Saturday
)

// dayFactor is how much dearer a night is than an ordinary one, in thousandths.
func dayFactor(d stay.Date) uint64 {
	day := time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
	wiggle := 980 + dataset.Mix(dayNumber(d))%41
	return seasonFactors[d.Month] * weekdayFactors[day.Weekday()] * wiggle / 1_000_000
}

// occupancyFactor is how much dearer the rooms are for these guests than one room for two, in thousandths.
func occupancyFactor(o stay.Occupancy) uint64 {
	rooms := uint64(max(o.Rooms, 1))
	factor := rooms * 1000
	if extra := o.Adults - 2*o.Rooms; extra > 0 {
		factor += uint64(extra) * 220
	}
	for i := range o.Children {
		if i < len(o.ChildrenAges) && o.ChildrenAges[i] < 4 {
			continue // small children sleep with their parents
		}
		factor += 120
	}
	return factor
}

// nightPrice is one night of a party in a currency, in minor units.
func nightPrice(p *dataset.Property, day, guests uint64, rate exchangeRate) uint64 {
	microUSD := uint64(p.NightMicroUSD) * day / 1000 * guests / 1000
	high, low := bits.Mul64(microUSD, rate.perDollar)
	minor, _ := bits.Div64(high, low, 1_000_000*10_000)
	return max(minor/rate.roundTo*rate.roundTo, rate.roundTo)
}

func formatMinor(n uint64) string { return strconv.FormatUint(n, 10) }

// dayNumber counts days, so that what a night is like needs no calendar.
func dayNumber(d stay.Date) uint64 {
	return uint64(time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

// roomsLeft is how many rooms a property has left on a night; 0 when it is sold out. Some weeks and some single
// nights are sold out, and one night in ten is nearly so.
func roomsLeft(p *dataset.Property, day uint64) int {
	if dataset.Mix(p.Seed^dataset.Mix(day/7+1<<40))%1000 < 12 {
		return 0
	}
	h := dataset.Mix(p.Seed ^ dataset.Mix(day))
	switch n := h % 1000; {
	case n < 4:
		return 0
	case n < 100:
		return min(p.Rooms, 1+int(h>>16%3))
	}
	return max(1, p.Rooms*(30+int(h>>16%71))/100)
}

// isAvailable reports whether a party finds its rooms on every night of a stay.
func isAvailable(p *dataset.Property, d stay.Dates, rooms int) bool {
	first := dayNumber(d.CheckIn)
	for n := range d.Nights() {
		if roomsLeft(p, first+uint64(n)) < rooms {
			return false
		}
	}
	return true
}

// tariff is what the nights of one stay cost, for any property.
type tariff struct {
	days   []uint64 // factors
	lowest uint64   // the smallest of them
	guests uint64
	rate   exchangeRate
}

func newTariff(d stay.Dates, o stay.Occupancy, rate exchangeRate) tariff {
	t := tariff{guests: occupancyFactor(o), rate: rate}
	for n := range d.Nights() {
		factor := dayFactor(d.CheckIn.AddDays(n))
		if n == 0 || factor < t.lowest {
			t.lowest = factor
		}
		t.days = append(t.days, factor)
	}
	return t
}

// cheapest is the cheapest night of the stay.
func (t tariff) cheapest(p *dataset.Property) uint64 {
	return nightPrice(p, t.lowest, t.guests, t.rate)
}

// total is all nights of the stay.
func (t tariff) total(p *dataset.Property) uint64 {
	var sum uint64
	for _, factor := range t.days {
		sum += nightPrice(p, factor, t.guests, t.rate)
	}
	return sum
}
