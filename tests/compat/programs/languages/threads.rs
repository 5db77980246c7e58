// Threads, a panic that unwinds, and an overflow that is found.
use std::collections::BTreeMap;
use std::{panic, thread};

fn main() {
    panic::set_hook(Box::new(|_| {})); // it would tell the thread's id
    let threads: Vec<_> = (0..4u64)
        .map(|i| {
            thread::spawn(move || {
                let mut sums = BTreeMap::new();
                for k in 0..20000u64 {
                    *sums.entry(k % 97).or_insert(0u64) += k * i;
                }
                sums.values().fold(0u64, |a, b| a.wrapping_mul(31).wrapping_add(*b))
            })
        })
        .collect();
    let sum = threads.into_iter().fold(0u64, |a, t| a.wrapping_add(t.join().unwrap()));
    let empty: Vec<i32> = std::env::args().skip(1).map(|_| 1).collect();
    println!("{} {}", sum, panic::catch_unwind(|| empty[1]).is_err());
}
