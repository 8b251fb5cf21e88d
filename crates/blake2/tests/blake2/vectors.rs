//! Published vectors.
