package sandbox

import (
	"math/bits"
	"strconv"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

// All prices are synthetic. Each property has a base price per night in US dollars. Factors for the
// day, the guests and the exchange rate multiply the base price and are the same for all
// properties. The order by price is therefore the order by base price, on every night and in every
// currency. Amounts are whole minor units; this file uses no floating point.

// exchangeRate is a fixed, invented exchange rate. Minor units have the digits of ISO 4217.
type exchangeRate struct {
	perDollar uint64 // ten-thousandths of a minor unit for one US dollar
	roundTo   uint64 // amounts are rounded down to a multiple, in minor units
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

// fxSnapshot is the id of exchangeRates in quotes.
const fxSnapshot = "fxs_sandbox-1"

// localCurrency returns the currency in which the properties of a country are sold.
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
	// by month, thousandths
	seasonFactors = [...]uint64{0, 880, 890, 1010, 1080, 1050, 1090, 1180, 1220, 1080, 1020, 910, 960}
	// Sunday first; the weekend is Thursday to Saturday
	weekdayFactors = [...]uint64{980, 960, 960, 980, 1070, 1130, 1060}
)

// dayFactor returns the price factor of a night, in thousandths of the base price.
func dayFactor(d stay.Date) uint64 {
	day := time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC)
	variation := 980 + dataset.Mix(dayNumber(d))%41
	return seasonFactors[d.Month] * weekdayFactors[day.Weekday()] * variation / 1_000_000
}

// occupancyFactor returns the price factor of a party, in thousandths of a room for two.
func occupancyFactor(o stay.Occupancy) uint64 {
	rooms := uint64(max(o.Rooms, 1))
	factor := rooms * 1000
	if extra := o.Adults - 2*o.Rooms; extra > 0 {
		factor += uint64(extra) * 220
	}
	for i := range o.Children {
		if i < len(o.ChildrenAges) && o.ChildrenAges[i] < 4 {
			continue // children under 4 are free
		}
		factor += 120
	}
	return factor
}

// nightPrice returns the price of a night in minor units of a currency, for the factors of a day
// and of a party.
func nightPrice(p *dataset.Property, day, guests uint64, rate exchangeRate) uint64 {
	microUSD := uint64(p.NightMicroUSD) * day / 1000 * guests / 1000
	high, low := bits.Mul64(microUSD, rate.perDollar)
	minor, _ := bits.Div64(high, low, 1_000_000*10_000)
	return max(minor/rate.roundTo*rate.roundTo, rate.roundTo)
}

func formatMinor(n uint64) string { return strconv.FormatUint(n, 10) }

// dayNumber returns the number of days since 1970-01-01.
func dayNumber(d stay.Date) uint64 {
	return uint64(time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

// roomsLeft returns the number of free rooms of a property on a night. 1.2 % of the weeks and 0.4 %
// of the single nights are sold out; about one night in ten has 1 to 3 rooms.
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

// isAvailable reports whether a property has enough rooms on every night of a stay.
func isAvailable(p *dataset.Property, d stay.Dates, rooms int) bool {
	first := dayNumber(d.CheckIn)
	for n := range d.Nights() {
		if roomsLeft(p, first+uint64(n)) < rooms {
			return false
		}
	}
	return true
}

// tariff holds the price factors of a stay, for any property.
type tariff struct {
	days   []uint64 // dayFactor of each night
	lowest uint64   // minimum of days
	guests uint64   // occupancyFactor
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

// cheapest returns the price of the cheapest night.
func (t tariff) cheapest(p *dataset.Property) uint64 {
	return nightPrice(p, t.lowest, t.guests, t.rate)
}

// total returns the sum of all nights.
func (t tariff) total(p *dataset.Property) uint64 {
	var sum uint64
	for _, factor := range t.days {
		sum += nightPrice(p, factor, t.guests, t.rate)
	}
	return sum
}
