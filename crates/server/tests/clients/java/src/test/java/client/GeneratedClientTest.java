package client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import client.api.AuditLogApi;
import client.api.HealthApi;
import client.api.KeysApi;
import client.api.SignaturesApi;
import client.api.TokensApi;
import client.model.CreateKey;
import client.model.ErrorBody;
import client.model.KeyPage;
import client.model.KeyView;
import client.model.PublicKeyFormat;
import client.model.Sign;
import client.model.SignMany;
import client.model.SignOne;
import client.model.Signed;
import client.model.SignedOne;
import client.model.UpdateKey;
import client.model.Verify;
import client.model.VerifyMany;
import client.model.VerifyOne;
import java.nio.charset.StandardCharsets;
import java.security.KeyFactory;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** The client that openapi-generator makes, against the service in BULLA_ADDR. */
class GeneratedClientTest {
  private static final byte[] MESSAGE = "a message".getBytes(StandardCharsets.UTF_8);

  private final ApiClient client = connect(System.getenv("BULLA_TOKEN"));
  private final KeysApi keys = new KeysApi(client);
  private final SignaturesApi signatures = new SignaturesApi(client);

  private static ApiClient connect(String token) {
    ApiClient client = new ApiClient();
    client.updateBaseUri(System.getenv("BULLA_ADDR"));
    if (token != null) {
      client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + token));
    }
    return client;
  }

  private static String base64(byte[] bytes) {
    return Base64.getEncoder().encodeToString(bytes);
  }

  private KeyView create() throws ApiException {
    return keys.keysCreate(new CreateKey().label("java-" + UUID.randomUUID()), null);
  }

  @Test
  void keysSignRotateAndVerify() throws Exception {
    KeyView key = create();
    assertEquals(1, key.getHead());
    Signed first = signatures.signaturesSign(key.getLabel(), new Sign().message(base64(MESSAGE)));
    assertEquals(key.getVersions().get(0).getId(), first.getKey());
    assertEquals(2, keys.keysRotate(key.getKey(), null).getHead());

    Verify verify = new Verify().message(base64(MESSAGE)).signature(first.getSignature());
    assertTrue(signatures.signaturesVerify(first.getKey(), verify).getValid());
    assertFalse(signatures.signaturesVerify(key.getKey(), verify).getValid(), "the latest version did not sign it");

    // Java's own Ed25519 agrees.
    String pem = keys.keysPublic(first.getKey(), PublicKeyFormat.PEM, null).getPublicKey();
    byte[] der = Base64.getMimeDecoder().decode(pem.replaceAll("-----[A-Z ]+-----", ""));
    PublicKey publicKey = KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(der));
    Signature own = Signature.getInstance("Ed25519");
    own.initVerify(publicKey);
    own.update(MESSAGE);
    assertTrue(own.verify(Base64.getDecoder().decode(first.getSignature())));
  }

  @Test
  void listsHavePages() throws Exception {
    List<String> made = List.of(create().getKey(), create().getKey());
    List<String> listed = new ArrayList<>();
    String after = null;
    do {
      KeyPage page = keys.keysList(1, after);
      page.getKeys().forEach(key -> listed.add(key.getKey()));
      after = page.getNext();
    } while (after != null);
    assertTrue(listed.containsAll(made));
  }

  @Test
  void errorsHaveCodes() throws Exception {
    ApiException missing = assertThrows(ApiException.class, () -> keys.keysRead("no-such-key"));
    assertEquals(404, missing.getCode());
    ErrorBody body = client.getObjectMapper().readValue(missing.getResponseBody(), ErrorBody.class);
    assertEquals("key_not_found", body.getCode());
    assertFalse(body.getRetryable());

    KeyView key = create();
    keys.keysUpdate(key.getKey(), new UpdateKey().enabled(false), null);
    ApiException disabled = assertThrows(
        ApiException.class, () -> signatures.signaturesSign(key.getKey(), new Sign().message(base64(MESSAGE))));
    body = client.getObjectMapper().readValue(disabled.getResponseBody(), ErrorBody.class);
    assertEquals("key_disabled", body.getCode());

    KeysApi nobody = new KeysApi(connect(null));
    ApiException refused = assertThrows(ApiException.class, () -> nobody.keysRead(key.getKey()));
    assertEquals(401, refused.getCode());
  }

  @Test
  void aBatchHasAResultForEachItem() throws Exception {
    KeyView key = create();
    SignMany items = new SignMany()
        .addItemsItem(new SignOne().key(key.getKey()).message(base64(MESSAGE)))
        .addItemsItem(new SignOne().key("no-such-key").message(base64(MESSAGE)));
    List<SignedOne> results = signatures.signaturesSignMany(items).getResults();
    SignedOne signed = results.get(0);
    assertNull(signed.getError());
    assertNull(results.get(1).getSignature());
    assertEquals("key_not_found", results.get(1).getError().getCode());

    VerifyMany both = new VerifyMany()
        .addItemsItem(new VerifyOne().key(signed.getKey()).message(base64(MESSAGE)).signature(signed.getSignature()))
        .addItemsItem(new VerifyOne().key(signed.getKey()).message("").signature(signed.getSignature()));
    var verdicts = signatures.signaturesVerifyMany(both).getResults();
    assertTrue(verdicts.get(0).getValid());
    assertFalse(verdicts.get(1).getValid());
  }

  @Test
  void aChangeIsMadeOnce() throws Exception {
    KeyView key = create();
    String idempotencyKey = UUID.randomUUID().toString();
    assertEquals(2, keys.keysRotate(key.getKey(), idempotencyKey).getHead());
    assertEquals(2, keys.keysRotate(key.getKey(), idempotencyKey).getHead());
    assertEquals(2, keys.keysRead(key.getKey()).getHead());
  }

  @Test
  void otherInterfacesAnswer() throws Exception {
    assertNotNull(new HealthApi(client).healthReady(null));
    assertNotNull(new TokensApi(client).tokensOwn());
    assertFalse(new AuditLogApi(client).auditLogEntries(null, 10).getEntries().isEmpty());
  }
}
