//! Inputs that end where readable memory ends: a kernel that reads one byte too many stops this
//! process.

use crate::support::for_both;
use bulla_blake2::kernel;
use bulla_kernel_testing::PageBeforeGap;
use std::collections::BTreeMap;

for_both! {
    use ours::many::{HashManyJob, hash_many};

    #[test]
    fn nothing_behind_an_input_is_read() {
        let page = PageBeforeGap::new();
        for kernel in kernel::runnable() {
            let mut params = ours::Params::new();
            params.kernel(kernel);
            let mut parallel = ours_p::Params::new();
            parallel.kernel(kernel);
            for len in (0..=20 * ours::BLOCKBYTES).chain([9000, 40 * 1024]) {
                let data = page.end(len);
                let theirs = peer::Params::new().hash(data);
                assert_eq!(params.hash(data).as_bytes(), theirs.as_bytes(), "{kernel}, {len} bytes");
                let theirs = peer_p::Params::new().hash(data);
                assert_eq!(parallel.hash(data).as_bytes(), theirs.as_bytes(), "{kernel}, {len} bytes in lanes");
            }
        }
    }

    #[test]
    fn nothing_behind_one_of_many_inputs_is_read() {
        let page = PageBeforeGap::new();
        for kernel in kernel::runnable() {
            let mut params = ours::Params::new();
            params.kernel(kernel);
            // All inputs of one length are one input.
            let mut hashes = BTreeMap::new();
            for len in (0..=9 * ours::BLOCKBYTES).chain([3000, 9000]) {
                // Inputs of one length, and of as many lengths as lanes.
                for step in [0, 1, 67] {
                    let inputs: Vec<_> = (0..MANY + 3).map(|i| page.end(len + i * step)).collect();
                    let mut jobs: Vec<_> = inputs.iter().map(|input| HashManyJob::new(&params, input)).collect();
                    hash_many(&mut jobs);
                    for (job, input) in jobs.iter().zip(inputs) {
                        let len = input.len();
                        let expected = hashes.entry(len).or_insert_with(|| params.hash(input));
                        assert_eq!(job.to_hash(), *expected, "{kernel}, {len} bytes");
                    }
                }
            }
        }
    }
}
