//! The registers that Microsoft's calling convention keeps.

use crate::support::{for_both, input};
use bulla_blake2::kernel;
use bulla_kernel_testing::registers;
use std::hint::black_box;

for_both! {
    use ours::many::{HashManyJob, hash_many};

    #[test]
    fn every_kernel_keeps_registers() {
        let data = input(20 * MANY * ours::BLOCKBYTES);
        for kernel in kernel::runnable() {
            let mut params = ours::Params::new();
            params.kernel(kernel);
            let mut parallel = ours_p::Params::new();
            parallel.kernel(kernel);
            for len in [0, 1, ours::BLOCKBYTES, 5 * ours::BLOCKBYTES + 1, data.len()] {
                let one = registers::changed(|| _ = black_box(params.hash(&data[..len])));
                let lanes = registers::changed(|| _ = black_box(parallel.hash(&data[..len])));
                assert_eq!((one, lanes), (vec![], vec![]), "{kernel}, {len} bytes");
            }
            let mut jobs: Vec<_> = (0..3 * MANY).map(|i| HashManyJob::new(&params, &data[..100 * i])).collect();
            assert_eq!(registers::changed(|| hash_many(&mut jobs)), [0; 0], "{kernel}, many inputs");
        }
    }
}
