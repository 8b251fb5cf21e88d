//! What several test programs use.

#![allow(dead_code)] // Each of them uses a part.

pub mod chaos;
pub mod etcd;
pub mod proxy;
