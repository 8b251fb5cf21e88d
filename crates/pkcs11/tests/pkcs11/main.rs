//! The module as programs meet it: beside SoftHSM, under hostile calls, in several threads and
//! processes, while its service ends, and in programs that expect a token.
#![cfg(target_os = "linux")]

mod ciphers;
mod hostile;
mod outage;
mod peer;
mod processes;
mod programs;
mod support;
mod tokens;
