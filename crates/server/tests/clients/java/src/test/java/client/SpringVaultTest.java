package client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;
import org.springframework.vault.VaultException;
import org.springframework.vault.authentication.TokenAuthentication;
import org.springframework.vault.client.VaultEndpoint;
import org.springframework.vault.core.VaultTemplate;
import org.springframework.vault.core.VaultTransitOperations;
import org.springframework.vault.support.Ciphertext;
import org.springframework.vault.support.Hmac;
import org.springframework.vault.support.Plaintext;
import org.springframework.vault.support.Signature;
import org.springframework.vault.support.TransitKeyType;
import org.springframework.vault.support.VaultSignRequest;
import org.springframework.vault.support.VaultSignatureVerificationRequest;
import org.springframework.vault.support.VaultTransitContext;
import org.springframework.vault.support.VaultTransitKeyConfiguration;
import org.springframework.vault.support.VaultTransitKeyCreationRequest;

/** Spring Vault, as it is, against the service in VAULT_ADDR. */
class SpringVaultTest {
  private static final Plaintext MESSAGE = Plaintext.of("a message");

  private final VaultTransitOperations transit =
      new VaultTemplate(
              VaultEndpoint.from(URI.create(System.getenv("VAULT_ADDR"))),
              new TokenAuthentication(System.getenv("VAULT_TOKEN")))
          .opsForTransit();
  private final String name = "spring-" + UUID.randomUUID();

  private void create(String type) {
    transit.createKey(name, VaultTransitKeyCreationRequest.builder().type(type).exportable(true).build());
  }

  @Test
  void aKeyEncryptsRotatesAndRewraps() {
    create("aes256-gcm96");
    String first = transit.encrypt(name, "a secret");
    transit.rotate(name);
    String second = transit.rewrap(name, first);
    assertTrue(second.startsWith("vault:v2:"), second);
    assertEquals("a secret", transit.decrypt(name, second));
    List<Ciphertext> batch = List.of(Ciphertext.of(first), Ciphertext.of(second));
    transit.decrypt(name, batch).forEach(found -> assertEquals("a secret", found.getAsString()));
    assertThrows(VaultException.class, () -> transit.decrypt(name, "vault:v1:AAAA"));
  }

  @Test
  void aDerivedKeyNeedsItsContext() {
    transit.createKey(name, VaultTransitKeyCreationRequest.builder().derived(true).build());
    VaultTransitContext context = VaultTransitContext.builder().context("row 7".getBytes()).build();
    String made = transit.encrypt(name, "a secret".getBytes(), context);
    assertEquals("a secret", new String(transit.decrypt(name, made, context)));
  }

  @Test
  void keysOfEveryKindSignAndVerify() {
    for (String type : List.of("ed25519", "ecdsa-p256", "ecdsa-p384", "rsa-2048")) {
      String key = name + "-" + type;
      transit.createKey(key, VaultTransitKeyCreationRequest.builder().type(type).build());
      Signature signature = transit.sign(key, MESSAGE);
      assertTrue(transit.verify(key, MESSAGE, signature), type);
      assertFalse(transit.verify(key, Plaintext.of("another"), signature), type);
    }
    String rsa = name + "-rsa-2048";
    Signature signature =
        transit.sign(rsa, VaultSignRequest.builder().plaintext(MESSAGE).signatureAlgorithm("pkcs1v15").build());
    VaultSignatureVerificationRequest verify =
        VaultSignatureVerificationRequest.builder()
            .plaintext(MESSAGE)
            .signature(signature)
            .signatureAlgorithm("pkcs1v15")
            .build();
    assertTrue(transit.verify(rsa, verify).isValid());
    assertFalse(transit.verify(rsa, MESSAGE, signature), "PSS does not verify PKCS#1 v1.5");
  }

  @Test
  void aKeyIsReadExportedListedAndDeleted() {
    create("aes256-gcm96");
    assertEquals("aes256-gcm96", transit.getKey(name).getType());
    assertTrue(transit.getKeys().contains(name));
    assertEquals(1, transit.exportKey(name, TransitKeyType.ENCRYPTION_KEY).getKeys().size());
    Hmac hmac = transit.getHmac(name, MESSAGE);
    assertTrue(hmac.getHmac().startsWith("vault:v1:"), hmac.getHmac());
    transit.configureKey(name, VaultTransitKeyConfiguration.builder().deletionAllowed(true).build());
    transit.deleteKey(name);
    assertFalse(transit.getKeys().contains(name));
  }
}
