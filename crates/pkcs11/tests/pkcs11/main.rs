//! The module as programs meet it: beside SoftHSM, under hostile calls, in several threads and
//! processes, while its service ends, and in programs that expect a token.
#![cfg(target_os = "linux")]

mod agreement;
mod attacks;
mod ciphers;
mod compare;
mod compare_keys;
mod compare_operations;
mod hostile;
mod java;
mod local;
mod outage;
mod peer;
mod processes;
mod programs;
mod sequences;
mod session_keys;
mod support;
mod tokens;
