//! What several test programs use.

#![allow(dead_code, reason = "each program of tests uses some of it")]

pub mod chaos;
pub mod etcd;
pub mod proxy;
