package dataset

import "testing"

func TestPlaces_MatchNamePrefixInAnyLanguage(t *testing.T) {
	t.Parallel()
	d := Embedded()
	for text, want := range map[string]string{
		"Her": "city Herat", "هر": "city Herat", "Гер": "city Herat", "sharif": "city Mazar-i-Sharif", "Balkh": "region Balkh", "Afghan": "country Afghanistan",
		"افغان": "country Afghanistan",
	} {
		found := d.Places(text, 8)
		if len(found) == 0 || found[0].Kind+" "+found[0].Name != want {
			t.Errorf("%s: %+v, want %s", text, found, want)
		}
	}
	if found := d.Places("qqq", 8); len(found) != 0 {
		t.Errorf("nothing is called so: %+v", found)
	}
	if found := d.Places("", 500); len(found) != len(d.Cities) {
		t.Errorf("%d of %d cities", len(found), len(d.Cities))
	}
	if found := d.Places("", 3); len(found) != 3 || found[0].Properties < found[1].Properties || found[1].Properties < found[2].Properties {
		t.Errorf("the three largest: %+v", found)
	}
}

func TestPlaces_QueryFindsSuggestedPlace(t *testing.T) {
	t.Parallel()
	d := Embedded()
	for _, c := range d.Cities {
		if found := d.City(d.cityPlace(c).Query); found != c {
			t.Errorf("%s of %s finds %+v", c.Name, c.Country, found)
		}
	}
	for _, r := range d.Regions {
		if a, ok := d.Area(d.areaQuery(r.Name, r.Country)); !ok || a.Country != r.Country || a.Region != r.Name {
			t.Errorf("%s of %s finds %+v", r.Name, r.Country, a)
		}
	}
	for _, c := range d.Countries {
		if a, ok := d.Area(c.Code); !ok || a.Country != c.Code || a.Region != "" {
			t.Errorf("%s finds %+v", c.Code, a)
		}
	}
}
