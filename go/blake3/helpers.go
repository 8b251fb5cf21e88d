package blake3

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Go wakes one thread after another: each that finds work wakes the next one, and each waking takes
// tens of microseconds. So the threads of a short call would come when it is done. Helpers that
// have just worked therefore look out for the next call, for as long as they have worked. They ask
// nobody to wake them, and give way to any other goroutine.

// A sharedTask is a task for numbers from 0 on, which several goroutines take one after another.
type sharedTask struct {
	run        func(int)
	count      int64
	next, done atomic.Int64
	// places is how many more helpers may take part.
	places   atomic.Int64
	finished chan struct{}
}

var (
	// offered is the task that waiting helpers may take part in.
	offered atomic.Pointer[sharedTask]
	// waiting is the number of helpers that wait for a task.
	waiting atomic.Int64
)

const (
	// spinLoads is how often a waiting goroutine looks before it gives way to others: about a
	// microsecond.
	spinLoads = 500
	// finishSpins is how often the caller gives way before it sleeps until helpers have finished.
	finishSpins = 20
)

// inParallel calls run with 0 to n-1, on the caller's goroutine and up to workers-1 others. It
// waits for tasks, not for goroutines: a goroutine that gets no processor in time costs nothing.
func inParallel(n, workers int, run func(int)) {
	if n == 0 {
		return
	}
	t := &sharedTask{run: run, count: int64(n), finished: make(chan struct{})}
	helpers := int64(min(workers, n) - 1)
	t.places.Store(helpers)
	if helpers > 0 {
		offered.Store(t)
		defer offered.CompareAndSwap(t, nil)
		for range helpers - waiting.Load() {
			go help(t)
		}
	}
	t.work()
	t.wait()
}

// work does what is left of the task.
func (t *sharedTask) work() {
	for {
		i := t.next.Add(1) - 1
		if i >= t.count {
			return
		}
		t.run(int(i))
		if t.done.Add(1) == t.count {
			close(t.finished)
		}
	}
}

// wait waits until others have done what they took. They need the time of one part at most, and
// waking a goroutine takes as long.
func (t *sharedTask) wait() {
	for range finishSpins {
		for range spinLoads {
			if t.done.Load() == t.count {
				return
			}
		}
		runtime.Gosched()
	}
	<-t.finished
}

// join reports whether one more helper may take part.
func (t *sharedTask) join() bool {
	return t.next.Load() < t.count && t.places.Add(-1) >= 0
}

// help takes part in the task, and in those after it as long as they follow closely.
func help(t *sharedTask) {
	for t != nil && t.join() {
		start := time.Now()
		t.work()
		t = awaitTask(time.Since(start))
	}
}

// awaitTask is the next task with a place for a helper, or nil if none comes in time.
func awaitTask(patience time.Duration) *sharedTask {
	waiting.Add(1)
	defer waiting.Add(-1)
	for start := time.Now(); ; {
		for range spinLoads {
			if t := offered.Load(); t != nil && t.next.Load() < t.count && t.places.Load() > 0 {
				return t
			}
		}
		if time.Since(start) > patience {
			return nil
		}
		runtime.Gosched()
	}
}
