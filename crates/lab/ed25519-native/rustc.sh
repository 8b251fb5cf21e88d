#!/bin/sh
# The compiler as cargo calls it (RUSTC_WRAPPER): everything is built for this machine alone, but
# for what of ours is measured.
compiler=$1
shift
case " $* " in
*" --crate-name bulla_ed25519 "* | *" --crate-name bulla_simd "* | *" --crate-name bulla_blake3 "*)
	exec "$compiler" "$@"
	;;
esac
exec "$compiler" "$@" -C target-cpu=native
