package terraform

import (
	"fmt"
	"slices"
)

// weakTLS returns the load balancers that accept TLS before 1.2 or ciphers without forward secrecy.
// A load balancer accepts TLS 1.0 without a policy, and with a policy that names no version.
func weakTLS(p *Plan) (found []string, _ error) {
	proxies, err := decodeResources[struct {
		Policy string `json:"ssl_policy"`
	}](p, "google_compute_target_https_proxy")
	if err != nil {
		return nil, err
	}
	type policy struct {
		ID, Profile string
		Version     string `json:"min_tls_version"`
	}
	planned, err := decodeResources[policy](p, "google_compute_ssl_policy")
	if err != nil {
		return nil, err
	}
	policies := map[string]policy{}
	for _, one := range planned {
		policies[one.ID] = one
	}
	for address, proxy := range proxies {
		has, ok := policies[proxy.Policy]
		if proxy.Policy == "" || !ok {
			found = append(found, address+" has no policy of TLS")
			continue
		}
		if !slices.Contains([]string{"TLS_1_2", "TLS_1_3"}, has.Version) {
			found = append(found, fmt.Sprintf("%s lets in the version %q", address, has.Version))
		}
		if !slices.Contains([]string{"MODERN", "RESTRICTED"}, has.Profile) {
			found = append(found, fmt.Sprintf("%s lets in the profile %q", address, has.Profile))
		}
	}
	return found, nil
}
