package problem

import (
	"net/http"
	"strings"
)

// Kind is an entry of the error catalogue. The status of a kind never changes.
type Kind struct {
	Code      string // "VALIDATION_FAILED": the last part of the public code
	Status    int
	Title     string
	Retriable bool // the same request may succeed later
}

// The catalogue: every error in responses to guests, clients and other services.
var (
	ValidationFailed        = Kind{"VALIDATION_FAILED", http.StatusUnprocessableEntity, "The request has invalid values.", false}
	MalformedRequest        = Kind{"MALFORMED_REQUEST", http.StatusBadRequest, "The request could not be read.", false}
	PayloadTooLarge         = Kind{"PAYLOAD_TOO_LARGE", http.StatusRequestEntityTooLarge, "The request is too large.", false}
	ResourceNotFound        = Kind{"RESOURCE_NOT_FOUND", http.StatusNotFound, "There is nothing here.", false}
	MethodNotAllowed        = Kind{"METHOD_NOT_ALLOWED", http.StatusMethodNotAllowed, "The method is not allowed here.", false}
	LocaleNotSupported      = Kind{"LOCALE_NOT_SUPPORTED", http.StatusUnprocessableEntity, "The language is not supported.", false}
	CurrencyNotSupported    = Kind{"CURRENCY_NOT_SUPPORTED", http.StatusUnprocessableEntity, "The currency is not supported.", false}
	WishlistLimitExceeded   = Kind{"WISHLIST_LIMIT_EXCEEDED", http.StatusUnprocessableEntity, "The wishlist is full.", false}
	IdempotencyKeyRequired  = Kind{"IDEMPOTENCY_KEY_REQUIRED", http.StatusBadRequest, "An idempotency key is required.", false}
	IdempotencyKeyReused    = Kind{"IDEMPOTENCY_KEY_REUSED", http.StatusUnprocessableEntity, "The idempotency key was used for another request.", false}
	IdempotencyInProgress   = Kind{"IDEMPOTENCY_IN_PROGRESS", http.StatusConflict, "The first request with this key is still running.", true}
	HandoffReplayed         = Kind{"HANDOFF_REPLAYED", http.StatusConflict, "The handoff was already used.", false}
	HandoffExpired          = Kind{"HANDOFF_EXPIRED", http.StatusGone, "The handoff has expired.", false}
	HandoffSignatureInvalid = Kind{"HANDOFF_SIGNATURE_INVALID", http.StatusUnauthorized, "The handoff is not genuine.", false}
	HandoffNotFound         = Kind{"HANDOFF_NOT_FOUND", http.StatusNotFound, "There is no such handoff.", false}
	TenantSuspended         = Kind{"TENANT_SUSPENDED", http.StatusForbidden, "The hotel takes no bookings at present.", false}
	CallerNotAllowed        = Kind{"CALLER_NOT_ALLOWED", http.StatusForbidden, "The caller is not allowed here.", false}
	SuspectedBot            = Kind{"SUSPECTED_BOT", http.StatusTooManyRequests, "Please show that you are not a robot.", false}
	RateLimited             = Kind{"RATE_LIMITED", http.StatusTooManyRequests, "Too many requests.", true}
	UpstreamBudgetExceeded  = Kind{"UPSTREAM_BUDGET_EXCEEDED", http.StatusGatewayTimeout, "The answer took too long.", true}
	UpstreamUnavailable     = Kind{"UPSTREAM_UNAVAILABLE", http.StatusServiceUnavailable, "The service is not available at present.", true}
	Internal                = Kind{"INTERNAL", http.StatusInternalServerError, "Something went wrong.", false}
)

// Catalogue returns every kind, in the order of the declarations, in a new slice. It never fails.
func Catalogue() []Kind {
	return []Kind{
		ValidationFailed, MalformedRequest, PayloadTooLarge, ResourceNotFound, MethodNotAllowed,
		LocaleNotSupported, CurrencyNotSupported, WishlistLimitExceeded,
		IdempotencyKeyRequired, IdempotencyKeyReused, IdempotencyInProgress,
		HandoffReplayed, HandoffExpired, HandoffSignatureInvalid, HandoffNotFound,
		TenantSuspended, CallerNotAllowed, SuspectedBot, RateLimited,
		UpstreamBudgetExceeded, UpstreamUnavailable, Internal,
	}
}

// Type returns the URI that identifies the kind and locates its description.
func (k Kind) Type() string {
	return "https://errors.melmastoon.ghasi.io/bff/consumer/" + strings.ToLower(strings.ReplaceAll(k.Code, "_", "-"))
}

// PublicCode returns the code in the form of the platform:
// "MELMASTOON.BFF.CONSUMER.VALIDATION_FAILED".
func (k Kind) PublicCode() string { return "MELMASTOON.BFF.CONSUMER." + k.Code }

// MessageKey returns the key of the sentence to show in the guest's language:
// "errors.bff.consumer.validation_failed".
func (k Kind) MessageKey() string { return "errors.bff.consumer." + strings.ToLower(k.Code) }
