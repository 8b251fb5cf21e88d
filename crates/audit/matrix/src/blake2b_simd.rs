//! Prints the BLAKE2b hash of standard input, by `blake2b_simd`.

use std::io::Read as _;

fn main() -> std::io::Result<()> {
    let mut state = blake2b_simd::Params::new().hash_length(32).to_state();
    let mut buffer = vec![0; 1 << 16];
    let mut stdin = std::io::stdin().lock();
    loop {
        match stdin.read(&mut buffer)? {
            0 => break,
            len => state.update(&buffer[..len]),
        };
    }
    println!("{}", state.finalize().to_hex());
    Ok(())
}
