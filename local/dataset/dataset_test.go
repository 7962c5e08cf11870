package dataset

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

func TestEmbedded_IsWellFormed(t *testing.T) {
	t.Parallel()
	d := Embedded()
	if len(d.Cities) < 25 || len(d.Properties) < 200 || len(d.Countries) != 7 {
		t.Errorf("%d cities, %d properties, %d countries", len(d.Cities), len(d.Properties), len(d.Countries))
	}
	color := regexp.MustCompile(`^#[0-9a-f]{6}$`)
	slug := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	several, owned := 0, 0
	for _, tenant := range d.Tenants {
		if !id.Valid(id.Tenant, tenant.ID) || !color.MatchString(tenant.Color) || !slug.MatchString(tenant.Slug) || d.Tenant(tenant.ID) != tenant {
			t.Errorf("tenant %+v", tenant)
		}
		if len(tenant.Properties) > 1 {
			several++
		}
		owned += len(tenant.Properties)
	}
	if several < 5 || owned != len(d.Properties) {
		t.Errorf("%d tenants own several, %d of %d properties are owned", several, owned, len(d.Properties))
	}
	for _, p := range d.Properties {
		if !id.Valid(id.Property, p.ID) || d.Property(p.ID) != p || p.City == nil || p.Region == nil || p.District == "" {
			t.Errorf("property %+v", p)
		}
		if p.Rating != 0 && (p.Rating < 50 || p.Rating > 100) || p.Stars > 5 || p.Rooms < 1 || p.NightMicroUSD < 1_000_000 {
			t.Errorf("%s: rating %d, stars %d, rooms %d, price %d", p.Row.ID, p.Rating, p.Stars, p.Rooms, p.NightMicroUSD)
		}
		if geo.DistanceKm(p.City.Center, p.Row.Point) > 7 {
			t.Errorf("%s is not in %s", p.Row.ID, p.City.Name)
		}
		for _, lang := range Languages {
			if name := p.Row.Names[lang]; name == "" || strings.Contains(name, "%") {
				t.Errorf("%s has no name in %s: %q", p.Row.ID, lang, name)
			}
		}
		if slices.Contains(p.Badges, "shariaCompliant") && !slices.Contains(p.Amenities, "halal-kitchen") {
			t.Errorf("%s is strict without a halal kitchen", p.Row.ID)
		}
	}
}

func TestBuild_IsDeterministicPerRow(t *testing.T) {
	t.Parallel()
	known := loadGazetteer()
	rows := generateRows(known, loadNameParts())
	one := build(known, rows, Report{})
	shuffled := slices.Clone(rows)
	rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	other := build(known, shuffled, Report{})
	few := build(known, shuffled[:10], Report{})
	flat := func(p *Property) string {
		return fmt.Sprint(p.ID, p.Tenant.ID, p.Tenant.Slug, p.Tenant.Color, p.Stars, p.Rating, p.Rooms, p.Amenities, p.NightMicroUSD, p.Badges, p.Seed)
	}
	for i, p := range one.Properties {
		if q := other.Properties[i]; flat(p) != flat(q) {
			t.Fatalf("the order of rows matters:\n%s\n%s", flat(p), flat(q))
		}
	}
	for _, p := range few.Properties {
		if flat(p) != flat(one.Property(p.ID)) {
			t.Errorf("the other rows matter:\n%s\n%s", flat(p), flat(one.Property(p.ID)))
		}
	}
	// Literal values detect a change that alters the derived ids and prices of every property.
	kabul := one.City("Kabul").Properties[0]
	if got, want := fmt.Sprint(kabul.Row.ID, " ", kabul.ID, " ", kabul.NightMicroUSD), firstInKabul; got != want {
		t.Errorf("the first hotel of Kabul is %s, was %s", got, want)
	}
}

const firstInKabul = "sandbox/kabul/1 ppt_01JCEJ53H06SNTWR18SJ4E2WK9 27083700"

func TestDataset_FindsPlacesInAnyLanguage(t *testing.T) {
	t.Parallel()
	d := Embedded()
	for text, city := range map[string]string{
		"kabul": "Kabul", "KABUL": "Kabul", "کابل": "Kabul", "كابل": "Kabul", "Кабул": "Kabul", "Kaboul": "Kabul", "Кобул": "Kabul",
		"herat": "Herat", "hérat": "Herat", "ہرات": "Herat", "mazar e sharif": "Mazar-i-Sharif", "MAZAR-E-SHARIF": "Mazar-i-Sharif",
		"پېښور": "Peshawar", "la mecque": "Mecca", "makkah": "Mecca", "مكه": "Mecca", "Хоруғ": "Khorugh",
		"Kabul, Afghanistan": "Kabul", "Kabul, AF": "Kabul", "دبی، امارات": "Dubai", "Lahore, Punjab": "Lahore", "أبو ظبي": "Abu Dhabi",
	} {
		if c := d.City(text); c == nil || c.Name != city {
			t.Errorf("%q is %+v, want %s", text, c, city)
		}
	}
	for _, text := range []string{"", "Atlantis", "Kabul, Iran", ","} {
		if c := d.City(text); c != nil {
			t.Errorf("%q is %s", text, c.Name)
		}
	}
	for text, want := range map[string]string{
		"AF": "AF/", "afghanistan": "AF/", "افغانستان": "AF/", "Афғонистон": "AF/", "UAE": "AE/", "Émirats arabes unis": "AE/",
		"balkh": "AF/Balkh", "بلخ": "AF/Balkh", "sindh": "PK/Sindh", "سندھ": "PK/Sindh", "Punjab, Pakistan": "PK/Punjab", "Согд": "TJ/Sughd",
	} {
		if a, ok := d.Area(text); !ok || a.Country+"/"+a.Region != want || len(a.Properties) == 0 {
			t.Errorf("%q is %s/%s, want %s", text, a.Country, a.Region, want)
		}
	}
	if a, ok := d.Area("Nowhere"); ok {
		t.Errorf("Nowhere is %+v", a)
	}
	if name, properties, ok := d.RegionOf("AF", "herat"); !ok || name != "Herat" || len(properties) == 0 {
		t.Errorf("Herat is %s", name)
	}
	if name, _, ok := d.RegionOf("PK", "hunza"); !ok || name != "Karimabad" {
		t.Errorf("a city serves as a region: %s", name)
	}
	if _, _, ok := d.RegionOf("IR", "herat"); ok {
		t.Error("Herat is in Iran")
	}
}

func TestNear_MatchesLinearScan(t *testing.T) {
	t.Parallel()
	d := Embedded()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		center := geo.Point{Lat: 20 + 22*rng.Float64(), Lng: 35 + 42*rng.Float64()}
		if rng.IntN(2) == 0 {
			center = d.Properties[rng.IntN(len(d.Properties))].Row.Point
		}
		km := []float64{1, 5, 40, 200, 500}[rng.IntN(5)]
		var want []*Property
		for _, p := range d.Properties {
			if geo.DistanceKm(center, p.Row.Point) <= km {
				want = append(want, p)
			}
		}
		got := d.Near(center, km)
		if !slices.IsSortedFunc(got, func(a, b *Property) int {
			return int(1e6 * (geo.DistanceKm(center, a.Row.Point) - geo.DistanceKm(center, b.Row.Point)))
		}) {
			t.Errorf("not nearest first around %v", center)
		}
		if !sameProperties(got, want) {
			t.Fatalf("%v km around %v: %d, want %d", km, center, len(got), len(want))
		}
	}
}

func TestWithin_CrossesAntimeridianAndPole(t *testing.T) {
	t.Parallel()
	d := mustLoad(t, strings.Join([]string{
		`{"id":"w","name":"West","kind":"hotel","lat":-17.0,"lng":179.9,"country":"FJ","city":"Suva"}`,
		`{"id":"e","name":"East","kind":"hotel","lat":-17.0,"lng":-179.9,"country":"FJ","city":"Suva"}`,
		`{"id":"n","name":"North","kind":"hotel","lat":89.9,"lng":10,"country":"NO","city":"Pole"}`,
	}, "\n"))
	if got := d.Within(geo.Box{SwLat: -20, SwLng: 170, NeLat: -10, NeLng: -170}); len(got) != 2 {
		t.Errorf("a box over the antimeridian has %d", len(got))
	}
	if got := d.Near(geo.Point{Lat: -17, Lng: 180}, 30); len(got) != 2 {
		t.Errorf("a circle over the antimeridian has %d", len(got))
	}
	if got := d.Near(geo.Point{Lat: 89.9, Lng: -170}, 40); len(got) != 1 {
		t.Errorf("a circle over the pole has %d", len(got))
	}
}

func TestFold_IgnoresCaseAccentsAndLetterVariants(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"Fès", "fes", "FÈS", "F e s"},
		{"مكة", "مکه", "مَكَّة"},
		{"إسلام آباد", "اسلام اباد", "اسلام‌آباد"},
		{"Мешхед", "мешхед"}, {"Ismoili Somonī", "ismoili-somoni"}, {"L’Oriental", "loriental"},
	} {
		for _, s := range same {
			if Fold(s) != Fold(same[0]) {
				t.Errorf("%q folds to %q, %q to %q", s, Fold(s), same[0], Fold(same[0]))
			}
		}
	}
	if Fold("नैनीताल") == Fold("ननताल") {
		t.Error("vowels of Devanagari are part of the name")
	}
}

func sameProperties(a, b []*Property) bool {
	index := map[*Property]bool{}
	for _, p := range a {
		index[p] = true
	}
	for _, p := range b {
		if !index[p] {
			return false
		}
	}
	return len(a) == len(b) && reflect.ValueOf(index).Len() == len(b)
}
