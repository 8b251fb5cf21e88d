#!/bin/sh
# Writes one file of each kind that the command `bulla` writes: sh spec/released/generate.sh FOLDER
# FOLDER must not exist. The command `bulla` of the PATH writes the files, or the program that the
# variable BULLA names.
set -eu
umask 077

folder=$1
bulla=${BULLA:-bulla}
mkdir "$folder"
cd "$folder"

# What is signed, sealed and hashed.
echo "This passphrase opens every file here" > passphrase
echo "kept and read by every later version" > note.txt
echo "signed by the second version of the key" > later.txt
mkdir -p photos/2026
echo one > photos/1.jpg
echo two > photos/2026/2.jpg

# A keystore under a passphrase, with an audit log, and the files that its keys sign.
export BULLA_KEYSTORE=keystore BULLA_PASSPHRASE_FILE=passphrase
"$bulla" keystore init --passphrase
"$bulla" log init
"$bulla" sign note.txt
"$bulla" sign --format minisign note.txt
"$bulla" sign photos
"$bulla" keys export-public --output default-v1.pub
"$bulla" keys rotate
"$bulla" sign --comment "the second version" later.txt
"$bulla" keys succession --output default.succession
"$bulla" keys attest --output default.attestation
for format in pem der raw openssh jwk minisign; do
    "$bulla" keys export-public --format "$format" --output "default.$format"
done
"$bulla" keys create lasting --algorithm ml-dsa-65-ed25519
"$bulla" sign --key lasting --output lasting.bulla note.txt
"$bulla" keys export-public lasting --output lasting.pub
"$bulla" sign --prehash ed25519ph --output prehashed.bulla note.txt
"$bulla" sign --output named.bulla note.txt

# A key that travels: its token, a weaker token, and the wrapped key.
"$bulla" keys create transport --algorithm x-wing
"$bulla" keys export-public transport --output transport.pub
"$bulla" keys create moving --exportable
"$bulla" token new --operation export --key moving --expires 36500d --output token
"$bulla" token attenuate token --expires 36499d --output token.weaker
"$bulla" keys export moving --to transport.pub --token-file token --output moving.wrapped

# What the audit log gives out.
"$bulla" log checkpoint --output checkpoint.note
"$bulla" log prove 2 --output entry.json
"$bulla" keys export-public audit-log --output audit-log.pub

# A keystore that a key file opens. The same key file opens one of the sealed files.
by_key_file() {
    env --unset=BULLA_PASSPHRASE_FILE BULLA_KEYSTORE=by-key-file "$bulla" "$@"
}
by_key_file keystore init
by_key_file sign --output by-key-file.bulla note.txt

# Sealed files, and a backup.
"$bulla" keygen x-wing.identity > x-wing.recipient
"$bulla" keygen --age age.identity > age.recipient
"$bulla" encrypt note.txt --new-passphrase-file passphrase --output passphrase.sealed
"$bulla" encrypt note.txt --new-key-file by-key-file/keystore.key --output key-file.sealed
"$bulla" encrypt note.txt --recipient x-wing.recipient --output x-wing.sealed
"$bulla" encrypt note.txt --recipient age.recipient --output age.sealed
"$bulla" encrypt note.txt --recipient transport.pub --output transport.sealed
"$bulla" keystore backup keystore.backup --new-passphrase-file passphrase --recipient x-wing.recipient

# Lists of checksums.
"$bulla" sum note.txt later.txt > list.blake3
"$bulla" sum --tag note.txt later.txt > list.tagged
"$bulla" sum --json note.txt later.txt > list.json
"$bulla" sum --zero note.txt later.txt > list.zero
for algorithm in blake2b blake2s blake2bp blake2sp sha256 sha512; do
    "$bulla" sum --algorithm "$algorithm" --tag note.txt later.txt > "list.$algorithm"
done
"$bulla" sum --recursive photos > list.photos
"$bulla" sum --tree photos > list.tree
