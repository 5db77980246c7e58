// Many goroutines, channels, and garbage: Go's scheduler interrupts them by signals (SIGURG), its
// stacks grow and move, its faults become panics.
package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func chain(length int) int {
	first := make(chan int)
	in := first
	for i := 0; i < length; i++ {
		out := make(chan int)
		go func(in, out chan int) { out <- 1 + <-in }(in, out)
		in = out
	}
	first <- 0
	return <-in
}

// Loops without calls can only be interrupted by a signal.
func preempted(workers int) int64 {
	var total int64
	var group sync.WaitGroup
	for w := 0; w < workers; w++ {
		group.Add(1)
		go func(w int) {
			defer group.Done()
			sum := int64(0)
			for i := int64(0); i < 20_000_000; i++ {
				sum += i % int64(w+2)
			}
			atomic.AddInt64(&total, sum)
		}(w)
	}
	group.Wait()
	return total
}

type tree struct{ left, right *tree }

func grow(depth int) *tree {
	if depth == 0 {
		return nil
	}
	return &tree{grow(depth - 1), grow(depth - 1)}
}
func (t *tree) size() int {
	if t == nil {
		return 0
	}
	return 1 + t.left.size() + t.right.size()
}
func garbage(goroutines int) int {
	sizes := make(chan int)
	for g := 0; g < goroutines; g++ {
		go func() {
			sum := 0
			for i := 0; i < 20; i++ {
				sum += grow(11).size()
			}
			sizes <- sum
		}()
	}
	total := 0
	for g := 0; g < goroutines; g++ {
		total += <-sizes
	}
	runtime.GC()
	return total
}

func deep(n int) int {
	var space [64]int
	space[n%64] = n
	if n == 0 {
		return 0
	}
	return deep(n-1) + space[n%64] - n + 1
}

func recovered(fail func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	fail()
	return
}

func faults() string {
	var nothing *struct{ space, field int }
	var numbers []int
	zero := len(numbers)
	return strings.Join([]string{
		recovered(func() { nothing.field = 1 }),
		recovered(func() { fmt.Sprint(1 / zero) }),
		recovered(func() { numbers[zero+3]++ }),
		recovered(func() { panic(errors.New("own")) }),
	}, "; ")
}

func signals() int {
	received := make(chan os.Signal, 100)
	signal.Notify(received, syscall.SIGUSR1)
	for i := 0; i < 10; i++ {
		syscall.Kill(os.Getpid(), syscall.SIGUSR1)
		<-received
	}
	return 10
}

func locked() int {
	var lock sync.RWMutex
	counts := map[string]int{}
	var group sync.WaitGroup
	for g := 0; g < 200; g++ {
		group.Add(1)
		go func(g int) {
			defer group.Done()
			for i := 0; i < 100; i++ {
				key := fmt.Sprintf("%x", sha256.Sum256([]byte{byte(g), byte(i)}))[:2]
				lock.Lock()
				counts[key]++
				lock.Unlock()
			}
		}(g)
	}
	group.Wait()
	keys := make([]string, 0, len(counts))
	total := 0
	for key, count := range counts {
		keys, total = append(keys, key), total+count
	}
	sort.Strings(keys)
	return total*1000 + len(keys)
}

func timers() int {
	fired := make(chan int)
	for i := 0; i < 100; i++ {
		time.AfterFunc(time.Duration(i%10)*time.Millisecond, func() { fired <- 1 })
	}
	total := 0
	for i := 0; i < 100; i++ {
		total += <-fired
	}
	return total
}

func main() {
	runtime.GOMAXPROCS(4)
	fmt.Println(chain(20000))
	fmt.Println(preempted(6))
	fmt.Println(garbage(30))
	fmt.Println(deep(100000))
	fmt.Println(faults())
	fmt.Println(signals())
	fmt.Println(locked())
	fmt.Println(timers())
	output, err := exec.Command("echo", "child").Output()
	fmt.Printf("%q %v\n", output, err)
	var nothing *tree
	defer fmt.Println("deferred")
	fmt.Println(nothing.left)
}
