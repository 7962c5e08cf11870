package money

import "strings"

// The active currencies of ISO 4217 by how many digits their minor unit has. The table is ours because the CLDR's,
// which golang.org/x/text carries, says how amounts are shown: it gives AFN, IRR and PKR none, and accepts dead codes.
// Codes without a minor unit (metals, funds such as XDR, tests) are absent.
var iso4217 = map[int]string{
	0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
	2: "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD " +
		"CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD " +
		"HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL " +
		"MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD " +
		"PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL " +
		"THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG",
	3: "BHD IQD JOD KWD LYD OMR TND",
	4: "CLF UYW",
}

var digits = func() map[string]int {
	m := make(map[string]int, 180)
	for n, codes := range iso4217 {
		for code := range strings.FieldsSeq(codes) {
			m[code] = n
		}
	}
	return m
}()

// Digits returns how many decimal digits the minor unit of an active ISO 4217 code has; false for anything else.
func Digits(code string) (int, bool) {
	n, ok := digits[code]
	return n, ok
}
