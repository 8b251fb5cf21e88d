//! Many inputs at once.

use crate::support::{for_both, input};
use bulla_blake2::kernel;

for_both! {
    use ours::many::{HashManyJob, MAX_DEGREE, degree, hash_many, update_many};

    #[test]
    fn degrees() {
        assert!(degree() <= MAX_DEGREE && MAX_DEGREE == MANY);
        assert!(bulla_blake2::many::degree() >= degree());
        assert!(bulla_blake2::many::degree() <= bulla_blake2::many::MAX_DEGREE);
    }

    /// Every number of inputs up to twice the widest kernel, of every length in turn.
    #[test]
    fn every_number_of_inputs() {
        let data = input(6 * ours::BLOCKBYTES);
        for kernel in kernel::runnable() {
            for count in 0..=2 * MANY + 1 {
                for len in 0..=data.len() {
                    if len % 7 != count % 7 && len % ours::BLOCKBYTES > 1 {
                        continue;
                    }
                    let inputs: Vec<_> = (0..count).map(|i| &data[i % 5..][..len.saturating_sub(i % 5)]).collect();
                    let mut params = ours::Params::new();
                    params.kernel(kernel);
                    let mut jobs: Vec<_> = inputs.iter().map(|input| HashManyJob::new(&params, input)).collect();
                    hash_many(&mut jobs);
                    for (job, input) in jobs.iter().zip(&inputs) {
                        assert_eq!(job.to_hash(), params.hash(input), "{kernel}: {count} inputs, {len} bytes");
                    }
                }
            }
        }
    }

    #[test]
    fn any_lengths_and_parameters_side_by_side() {
        let mut random = fastrand::Rng::with_seed(5);
        let data = input(5000);
        for kernel in kernel::runnable() {
            for _ in 0..200 {
                let inputs: Vec<_> = (0..random.usize(..40))
                    .map(|_| {
                        let len = if random.u8(..5) == 0 { random.usize(..5000) } else { random.usize(..300) };
                        (random.u8(..), &data[..len])
                    })
                    .collect();
                let params: Vec<_> = inputs
                    .iter()
                    .map(|(choice, _)| {
                        let mut params = ours::Params::new();
                        params.kernel(kernel).hash_length(usize::from(choice % 31) + 1).last_node(choice & 1 == 1);
                        params.key(&data[..usize::from(choice / 8)]);
                        params
                    })
                    .collect();
                let expected: Vec<_> = params.iter().zip(&inputs).map(|(params, (_, data))| params.hash(data)).collect();
                let mut jobs: Vec<_> =
                    params.iter().zip(&inputs).map(|(params, (_, data))| HashManyJob::new(params, data)).collect();
                hash_many(&mut jobs);
                // A second time has no effect.
                hash_many(jobs.iter_mut());
                let hashes: Vec<_> = jobs.iter().map(HashManyJob::to_hash).collect();
                assert_eq!(hashes, expected, "{kernel}");

                let mut states: Vec<_> = params.iter().map(ours::Params::to_state).collect();
                let cut = |data: &'static [u8], n: u8| data.split_at(data.len() * usize::from(n) / 255);
                let data: &'static [u8] = Box::leak(data.clone().into_boxed_slice());
                let pieces: Vec<_> = inputs.iter().map(|(n, input)| cut(&data[..input.len()], *n)).collect();
                update_many(states.iter_mut().zip(pieces.iter().map(|(piece, _)| piece)));
                update_many(states.iter_mut().zip(pieces.iter().map(|(_, piece)| piece)));
                for (state, ((_, data), expected)) in states.iter().zip(inputs.iter().zip(&expected)) {
                    assert_eq!(state.count() as usize, data.len());
                    assert_eq!(state.finalize(), *expected, "{kernel}");
                }
            }
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "has not done this job yet")]
    fn a_job_that_was_not_done_has_no_digest() {
        HashManyJob::new(&ours::Params::new(), b"").to_hash();
    }
}
