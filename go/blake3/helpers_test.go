package blake3

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Helpers that wait from an earlier call must not pass the limit of a later one.
func TestHelpersKeepTheLimitOfEachCall(t *testing.T) {
	var now, most atomic.Int64
	run := func(int) {
		n := now.Add(1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		runtime.Gosched()
		now.Add(-1)
	}
	for round := range 200 {
		workers := 1 + round%5
		most.Store(0)
		inParallel(40, workers, run)
		if found := most.Load(); found > int64(workers) {
			t.Fatalf("%d goroutines at a time, not %d", found, workers)
		}
	}
}

func TestEveryPartIsDoneOnceAmongManyCallers(t *testing.T) {
	var callers sync.WaitGroup
	for range 8 {
		callers.Add(1)
		go func() {
			defer callers.Done()
			for n := range 100 {
				done := make([]atomic.Int64, n)
				inParallel(n, 4, func(i int) { done[i].Add(1) })
				for i := range done {
					if count := done[i].Load(); count != 1 {
						t.Errorf("part %d of %d was done %d times", i, n, count)
					}
				}
			}
		}()
	}
	callers.Wait()
}

// Whoever checks for goroutines that are left over finds none soon after a call.
func TestHelpersEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	in := make([]byte, 4<<20)
	for range 3 {
		h := New()
		h.SetConcurrency(4)
		h.Write(in)
	}
	for deadline := time.Now().Add(time.Minute); waiting.Load() > 0 || runtime.NumGoroutine() > before; {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before, %d waiting", runtime.NumGoroutine(), before, waiting.Load())
		}
		time.Sleep(time.Millisecond)
	}
	if offered.Load() != nil {
		t.Error("a task that is done is still offered")
	}
}
