package kms

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// An AuditEntry is one entry of the service's audit log.
type AuditEntry struct {
	// Number counts the entries from 0 without gaps.
	Number uint64    `json:"number"`
	Time   time.Time `json:"time"`
	// Actor is the caller, person or program on whose behalf it was done.
	Actor     string `json:"who"`
	Operation string `json:"operation"`
	// Key is the key or the key version that was used; empty if there was none.
	Key string `json:"key"`
	// Digest is the BLAKE3 digest of the message, in hexadecimal; empty if there was none.
	Digest string `json:"digest"`
	// Result is "ok", a verdict, or the code of an error.
	Result string `json:"result"`
	// Line is the entry's line in the log.
	Line string `json:"line"`
}

type entryPage struct {
	Entries []*AuditEntry `json:"entries"`
	Next    *uint64       `json:"next"`
}

// AuditEntries lists the entries of the audit log, the oldest first, from the one with the number
// first on. Only callers of the operators' tenant may read them. An error ends the sequence.
func (c *Client) AuditEntries(ctx context.Context, first uint64) iter.Seq2[*AuditEntry, error] {
	after := ""
	if first > 0 {
		after = strconv.FormatUint(first-1, 10)
	}
	return list(ctx, c, "/api/v1/audit-log/entries", after, func(page entryPage) ([]*AuditEntry, string) {
		if page.Next == nil {
			return page.Entries, ""
		}
		return page.Entries, strconv.FormatUint(*page.Next, 10)
	})
}

// list reads the pages of a list as the loop asks for more. after names the first page, and read
// has the items of a page and the name of the next one.
func list[P, T any](ctx context.Context, c *Client, path, after string, read func(P) ([]T, string)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query := url.Values{"limit": {"1000"}}
		for after := after; ; {
			if after != "" {
				query.Set("after", after)
			}
			var page P
			if err := c.call(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &page, reads); err != nil {
				var none T
				yield(none, err)
				return
			}
			var items []T
			items, after = read(page)
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if after == "" {
				return
			}
		}
	}
}
