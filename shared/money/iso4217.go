package money

import "strings"

// iso4217 lists the active currencies of ISO 4217 by number of digits of the minor unit. The CLDR
// table of golang.org/x/text is unsuitable: CLDR digits are for display, with 0 digits for AFN, IRR
// and PKR, and include obsolete codes. Codes without a minor unit (metals, funds such as XDR,
// tests) are absent.
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

// Digits returns the number of decimal digits of the minor unit, 0, 2, 3 or 4, of an active ISO
// 4217 code in upper case, supported or not; (0, false) for any other text, also for a code without
// a minor unit.
func Digits(code string) (int, bool) {
	n, ok := digits[code]
	return n, ok
}
