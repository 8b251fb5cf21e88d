/* Ed25519 of bulla.h: RFC 8032, signatures on which verifiers disagree, and what is wrong use. */
#include "bulla.h"
#include "check.h"

enum { MAX_ITEMS = 300 };

static bulla_ed25519_item items[MAX_ITEMS];
static int expected_valid[MAX_ITEMS];
static size_t count;

static uint8_t *keep(const char *hex, size_t room, size_t *len) {
    uint8_t *bytes = malloc(room + 1);
    if (bytes == NULL) {
        exit(2);
    }
    *len = from_hex(hex, bytes, room);
    return bytes;
}

/* Words: kind, seed, public key, message, signature. */
static void rfc_case(char **words, int n) {
    size_t len;
    uint8_t seed[32], public_key[32], expected_key[32], signature[64], expected[64];
    uint8_t *message;
    bulla_ed25519_key *key = NULL;
    CHECK(n == 5 && from_hex(words[1], seed, 32) == 32 && from_hex(words[2], expected_key, 32) == 32);
    message = keep(words[3], 2048, &len);
    CHECK(from_hex(words[4], expected, 64) == 64);
    CHECK(bulla_ed25519_key_new(seed, &key) == BULLA_OK);
    CHECK(bulla_ed25519_public_key(key, public_key) == BULLA_OK && memcmp(public_key, expected_key, 32) == 0);
    CHECK(bulla_ed25519_sign(key, message, len, signature) == BULLA_OK && memcmp(signature, expected, 64) == 0);
    CHECK(bulla_ed25519_verify(public_key, message, len, signature) == BULLA_OK);
    signature[5] ^= 1;
    CHECK(bulla_ed25519_verify(public_key, message, len, signature) == BULLA_ED25519_MISMATCH);
    bulla_ed25519_key_free(key);
    free(message);
}

static void rfc_8032(void) { CHECK(for_vectors("ed25519", rfc_case) >= 4); }

/* Words: kind, public key, message, signature, 1 if it is valid. */
static void predicate_case(char **words, int n) {
    size_t len, ignored;
    CHECK(n == 5 && count < MAX_ITEMS);
    bulla_ed25519_item item = {.public_key = keep(words[1], 32, &ignored), .message = keep(words[2], 2048, &len)};
    item.signature = keep(words[3], 64, &ignored);
    item.message_len = len;
    expected_valid[count] = words[4][0] == '1';
    bulla_status alone = bulla_ed25519_verify(item.public_key, item.message, len, item.signature);
    CHECK((alone == BULLA_OK) == expected_valid[count]);
    CHECK(alone == BULLA_OK || alone >= BULLA_ED25519_SCALAR_NOT_CANONICAL);
    items[count++] = item;
}

static void one_verdict_each(void) {
    static bulla_status verdicts[MAX_ITEMS];
    count = 0;
    CHECK(for_vectors("predicate", predicate_case) >= 10 && count >= 10);
    CHECK(bulla_ed25519_verify_many(items, count, verdicts) == BULLA_ERROR_SIGNATURES);
    size_t valid = 0;
    for (size_t i = 0; i < count; i++) {
        const bulla_ed25519_item *item = &items[i];
        CHECK((verdicts[i] == BULLA_OK) == expected_valid[i]);
        CHECK(verdicts[i] == bulla_ed25519_verify(item->public_key, item->message, item->message_len, item->signature));
        if (expected_valid[i]) {
            items[valid++] = *item;
        } else {
            free((void *)item->public_key);
            free((void *)item->message);
            free((void *)item->signature);
        }
    }
    CHECK(valid > 0 && bulla_ed25519_verify_many(items, valid, verdicts) == BULLA_OK);
    for (size_t i = 0; i < valid; i++) {
        free((void *)items[i].public_key);
        free((void *)items[i].message);
        free((void *)items[i].signature);
    }
}

static void many_signatures(void) {
    enum { N = 130 };
    static uint8_t signatures[N][64];
    bulla_status verdicts[N];
    uint8_t seed[32], public_key[32], one[64], *input = input_of(N);
    bulla_bytes messages[N];
    bulla_ed25519_item all[N];
    bulla_ed25519_key *key = NULL;
    CHECK(bulla_ed25519_new_seed(seed) == BULLA_OK && bulla_ed25519_key_new(seed, &key) == BULLA_OK);
    CHECK(bulla_ed25519_public_key(key, public_key) == BULLA_OK);
    for (size_t i = 0; i < N; i++) {
        messages[i] = (bulla_bytes){input, i};
        all[i] = (bulla_ed25519_item){public_key, input, i, signatures[i]};
    }
    CHECK(bulla_ed25519_sign_many(key, messages, N, signatures[0]) == BULLA_OK);
    CHECK(bulla_ed25519_sign(key, input, 77, one) == BULLA_OK && memcmp(one, signatures[77], 64) == 0);
    CHECK(bulla_ed25519_verify_many(all, N, verdicts) == BULLA_OK);
    signatures[100][40] ^= 4;
    CHECK(bulla_ed25519_verify_many(all, N, verdicts) == BULLA_ERROR_SIGNATURES);
    for (size_t i = 0; i < N; i++) {
        CHECK((verdicts[i] == BULLA_OK) == (i != 100));
    }
    bulla_ed25519_key_free(key);
    free(input);
}

static void wrong_use_is_an_error(void) {
    uint8_t bytes[64] = {0};
    bulla_ed25519_key *key = NULL;
    bulla_status verdict = 0;
    bulla_ed25519_item item = {bytes, NULL, 3, bytes};
    CHECK(bulla_ed25519_key_new(NULL, &key) == BULLA_ERROR_NULL && key == NULL);
    CHECK(bulla_ed25519_key_new(bytes, NULL) == BULLA_ERROR_NULL);
    CHECK(bulla_ed25519_sign(NULL, "x", 1, bytes) == BULLA_ERROR_NULL);
    CHECK(bulla_ed25519_verify(bytes, NULL, 1, bytes) == BULLA_ERROR_NULL);
    CHECK(bulla_ed25519_verify(NULL, "x", 1, bytes) == BULLA_ERROR_NULL);
    /* An error leaves no verdict that says valid. */
    CHECK(bulla_ed25519_verify_many(&item, 1, &verdict) == BULLA_ERROR_NULL && verdict != BULLA_OK);
    CHECK(bulla_ed25519_verify_many(&item, 1, NULL) == BULLA_ERROR_NULL);
    CHECK(bulla_ed25519_verify_many(NULL, 0, NULL) == BULLA_OK);
    CHECK(bulla_ed25519_new_seed(NULL) == BULLA_ERROR_NULL);
    bulla_ed25519_key_free(NULL);
}

int main(void) {
    RUN(rfc_8032);
    RUN(one_verdict_each);
    RUN(many_signatures);
    RUN(wrong_use_is_an_error);
    return check_end();
}
