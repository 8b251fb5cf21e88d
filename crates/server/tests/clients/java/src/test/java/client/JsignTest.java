package client;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.jopenlibs.vault.Vault;
import io.github.jopenlibs.vault.VaultConfig;
import java.nio.charset.StandardCharsets;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;
import java.util.Map;
import java.util.UUID;
import net.jsign.jca.HashiCorpVaultSigningService;
import org.junit.jupiter.api.Test;

/** The signing service by which jsign signs programs for Windows, as it is, against the service in VAULT_ADDR. */
class JsignTest {
  private static final byte[] MESSAGE = "what Authenticode signs".getBytes(StandardCharsets.UTF_8);

  @Test
  void aKeySignsPrograms() throws Exception {
    String address = System.getenv("VAULT_ADDR");
    String token = System.getenv("VAULT_TOKEN");
    Vault vault = Vault.create(new VaultConfig().address(address).token(token).engineVersion(1).build());
    HashiCorpVaultSigningService service =
        new HashiCorpVaultSigningService(address + "/v1/transit", token, alias -> new Certificate[0]);
    Map<String, String> types = Map.of("rsa-2048", "RSA", "ecdsa-p256", "EC", "ecdsa-p384", "EC");
    for (Map.Entry<String, String> type : types.entrySet()) {
      String name = "jsign-" + UUID.randomUUID();
      vault.logical().write("transit/keys/" + name, Map.of("type", type.getKey()));
      String algorithm = "SHA256with" + (type.getValue().equals("EC") ? "ECDSA" : "RSA");
      byte[] made = service.sign(service.getPrivateKey(name + ":1", null), algorithm, MESSAGE);
      Signature verifier = Signature.getInstance(algorithm);
      verifier.initVerify(publicKey(vault, name, type.getValue()));
      verifier.update(MESSAGE);
      assertTrue(verifier.verify(made), type.getKey());
    }
  }

  /** The public key of the key's first version, from its PEM. */
  private static PublicKey publicKey(Vault vault, String name, String algorithm) throws Exception {
    String keys = vault.logical().read("transit/export/public-key/" + name).getData().get("keys");
    String base64 = keys.replaceAll("(?s).*-----BEGIN PUBLIC KEY-----(.*)-----END PUBLIC KEY-----.*", "$1");
    byte[] der = Base64.getDecoder().decode(base64.replace("\\n", "").replaceAll("\\s", ""));
    return KeyFactory.getInstance(algorithm).generatePublic(new X509EncodedKeySpec(der));
  }
}
