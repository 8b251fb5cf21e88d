package client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.jopenlibs.vault.Vault;
import io.github.jopenlibs.vault.VaultConfig;
import io.github.jopenlibs.vault.VaultException;
import io.github.jopenlibs.vault.response.LogicalResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** vault-java-driver, a client of Vault for Java, as it is, against the service in VAULT_ADDR. */
class VaultDriverTest {
  private static final String INPUT = Base64.getEncoder().encodeToString("a message".getBytes(StandardCharsets.UTF_8));

  private final Vault vault = connect(System.getenv("VAULT_TOKEN"));
  private final String name = "java-vault-" + UUID.randomUUID();

  private static Vault connect(String token) {
    try {
      VaultConfig config = new VaultConfig().address(System.getenv("VAULT_ADDR")).token(token);
      return Vault.create(config.engineVersion(1).build());
    } catch (VaultException error) {
      throw new AssertionError(error);
    }
  }

  private LogicalResponse write(String path, Map<String, Object> body) throws VaultException {
    return vault.logical().write("transit/" + path, body);
  }

  @Test
  void keysSignRotateAndVerify() throws VaultException {
    write("keys/" + name, Map.of("type", "ed25519"));
    assertEquals("1", vault.logical().read("transit/keys/" + name).getData().get("latest_version"));
    String signature = write("sign/" + name, Map.of("input", INPUT)).getData().get("signature");
    assertTrue(signature.startsWith("vault:v1:"), signature);
    write("keys/" + name + "/rotate", Map.of());
    assertEquals("2", vault.logical().read("transit/keys/" + name).getData().get("latest_version"));
    Map<String, Object> verify = Map.of("input", INPUT, "signature", signature);
    assertEquals("true", write("verify/" + name, verify).getData().get("valid"));
    Map<String, Object> other = Map.of("input", "AAAA", "signature", signature);
    assertEquals("false", write("verify/" + name, other).getData().get("valid"));
  }

  @Test
  void keysAreListed() throws VaultException {
    write("keys/" + name, Map.of("type", "ed25519"));
    assertTrue(vault.logical().list("transit/keys").getListData().contains(name));
  }

  @Test
  void aTokenDescribesItself() throws VaultException {
    assertTrue(vault.auth().lookupSelf().getTTL() > 0);
  }

  @Test
  void theServiceIsHealthy() throws VaultException {
    assertTrue(vault.debug().health().getInitialized());
    assertEquals(false, vault.seal().sealStatus().getSealed());
  }

  @Test
  void errorsHaveTheirStatus() throws VaultException {
    // The driver throws for some calls, and returns the status for others.
    VaultException stranger = assertThrows(VaultException.class, () -> connect("no-token").auth().lookupSelf());
    assertEquals(403, stranger.getHttpStatusCode());
    assertEquals(403, connect("no-token").logical().list("transit/keys").getRestResponse().getStatus());
    assertEquals(400, write("sign/no-such-key", Map.of("input", INPUT)).getRestResponse().getStatus());
  }
}
