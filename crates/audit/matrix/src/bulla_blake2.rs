//! Prints the BLAKE2b hash of standard input, by `bulla-blake2`.

use std::io::Read as _;

fn main() -> std::io::Result<()> {
    let mut state = bulla_blake2::blake2b::Params::new().hash_length(32).to_state();
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
