package kms

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is the error of calls to a Batcher that is closed.
var ErrClosed = errors.New("kms: the batcher is closed")

// A Batcher puts concurrent calls of Sign into requests of many items. While a request is under
// way, further calls wait for the next one, so that a lone call is never delayed. A batch is a
// request of its own: it ends with the batcher, not with the context of one caller.
type Batcher struct {
	client *Client
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	waiting []waiting
	running bool
	closed  bool
	done    sync.WaitGroup
}

type waiting struct {
	item   SignItem
	answer chan SignResult
}

// NewBatcher makes a batcher. Close it when it is no longer needed.
func (c *Client) NewBatcher() *Batcher {
	ctx, cancel := context.WithCancel(context.Background())
	return &Batcher{client: c, ctx: ctx, cancel: cancel}
}

// Sign signs a message with the latest version of a key, together with what others ask for.
func (b *Batcher) Sign(ctx context.Context, key string, message []byte) (*Signature, error) {
	answer := make(chan SignResult, 1)
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, ErrClosed
	}
	b.waiting = append(b.waiting, waiting{SignItem{key, message}, answer})
	if !b.running {
		b.running = true
		b.done.Add(1)
		go b.run()
	}
	b.mu.Unlock()
	select {
	case result := <-answer:
		if result.Err != nil {
			return nil, result.Err
		}
		return &result.Signature, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// run makes requests until nobody waits.
func (b *Batcher) run() {
	defer b.done.Done()
	for {
		b.mu.Lock()
		batch := b.waiting[:min(len(b.waiting), MaxBatchItems)]
		b.waiting = b.waiting[len(batch):]
		if len(batch) == 0 {
			b.running, b.waiting = false, nil
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		items := make([]SignItem, len(batch))
		for i, one := range batch {
			items[i] = one.item
		}
		results, err := b.client.SignMany(b.ctx, items)
		for i, one := range batch {
			if err != nil {
				one.answer <- SignResult{Err: err}
			} else {
				one.answer <- results[i]
			}
		}
	}
}

// Close cancels what is under way, and refuses further calls.
func (b *Batcher) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.done.Wait()
}
