//go:build amd64 && !purego

package guts

import (
	"fmt"
	"os"
	"testing"
	"time"
	"unsafe"
)

func TestMicro(t *testing.T) {
	if os.Getenv("MICRO") == "" {
		t.Skip()
	}
	in := make([]byte, 64*1024)
	var cvs [32]CV
	var d rowD
	var ptr pointers
	for i := range ptr {
		ptr[i] = unsafe.Pointer(&in[i*1024])
	}
	best := func(name string, per float64, f func()) {
		m := time.Duration(1 << 60)
		for range 3000 {
			s := time.Now()
			for range 8 {
				f()
			}
			m = min(m, time.Since(s))
		}
		fmt.Printf("%-20s %8.1f ns per call %8.2f ns per block step\n", name, float64(m)/8, float64(m)/8/per)
	}
	for _, k := range Available()[:2] {
		restore := Force(k)
		best(k.String()+" one 64", 1, func() { One(&cvs[0], in[:64], &IV, 0, Flags{}) })
		best(k.String()+" one 1024", 16, func() { One(&cvs[0], in[:1024], &IV, 0, Flags{}) })
		for _, w := range []int{2, 4, 8, 16} {
			if k == AVX2 && (w > 8) {
				continue
			}
			best(fmt.Sprint(k, " step ", w, " x16"), 16, func() { step(w, &cvs[0], &ptr, &d, 16, 0, &IV, Flags{0, 1, 2}) })
			best(fmt.Sprint(k, " step ", w, " x1"), 1, func() { step(w, &cvs[0], &ptr, &d, 1, 0, &IV, Flags{0, 1, 2}) })
			best(fmt.Sprint(k, " chunks ", w), 16, func() { Chunks(cvs[:], nil, in[:1024*w], &IV, 0, 0) })
			best(fmt.Sprint(k, " parents ", w), 1, func() { Parents(cvs[:], cvs[:], w, &IV, 0) })
		}
		best(k.String()+" parents 1", 1, func() { Parents(cvs[:], cvs[:], 1, &IV, 0) })
		restore()
	}
}
