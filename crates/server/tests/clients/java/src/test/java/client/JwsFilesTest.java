package client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.JWSHeader;
import com.nimbusds.jose.JWSObject;
import com.nimbusds.jose.JWSSigner;
import com.nimbusds.jose.JWSVerifier;
import com.nimbusds.jose.Payload;
import com.nimbusds.jose.crypto.ECDSASigner;
import com.nimbusds.jose.crypto.ECDSAVerifier;
import com.nimbusds.jose.crypto.RSASSASigner;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PublicKey;
import java.security.interfaces.ECPrivateKey;
import java.security.interfaces.ECPublicKey;
import java.security.spec.ECGenParameterSpec;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** JSON Web Signatures of files: Nimbus and the program BULLA verify what the other one signs. */
class JwsFilesTest {
  // Nimbus signs only text in this form: it takes bytes for UTF-8.
  private static final byte[] CONTENT = "a report. \u00fc\n".getBytes(StandardCharsets.UTF_8);

  @TempDir Path folder;

  private String bulla(int status, String... args) throws Exception {
    String[] command = new String[args.length + 1];
    command[0] = System.getenv("BULLA");
    System.arraycopy(args, 0, command, 1, args.length);
    ProcessBuilder builder = new ProcessBuilder(command).directory(folder.toFile()).redirectErrorStream(true);
    // The other tests ask a service, which these variables name.
    builder.environment().keySet().removeIf(name -> name.startsWith("BULLA_"));
    builder.environment().put("BULLA_KEYSTORE", folder.resolve("keystore").toString());
    Process process = builder.start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(status, process.waitFor(), said);
    return said;
  }

  @BeforeEach
  void createKeystore() throws Exception {
    bulla(0, "keystore", "init");
    Files.write(folder.resolve("report"), CONTENT);
  }

  private static void says(String part, String said) {
    assertTrue(said.contains(part), said);
  }

  private static JWSObject read(String signature, byte[] content) throws Exception {
    return JWSObject.parse(signature, new Payload(content));
  }

  @Test
  void nimbusVerifiesWhatBullaSigns() throws Exception {
    for (String label : new String[] {"signer", "other"}) {
      bulla(0, "keys", "create", label, "--algorithm", "ecdsa-p256");
      bulla(0, "keys", "export-public", label, "--format", "pem", "--output", label + ".pem");
    }
    bulla(0, "sign", "report", "--format", "jws", "--key", "signer");
    String signature = Files.readString(folder.resolve("report.jws")).strip();
    // The caller says that it knows the extension b64.
    JWSVerifier verifier = new ECDSAVerifier(publicKey("signer.pem"), Set.of("b64"));
    assertTrue(read(signature, CONTENT).verify(verifier));
    assertEquals(JWSAlgorithm.ES256, read(signature, CONTENT).getHeader().getAlgorithm());
    assertFalse(read(signature, "another content".getBytes(StandardCharsets.UTF_8)).verify(verifier));
    assertFalse(read(signature, CONTENT).verify(new ECDSAVerifier(publicKey("other.pem"), Set.of("b64"))));
  }

  @Test
  void bullaVerifiesWhatNimbusSigns() throws Exception {
    JWSAlgorithm[] algorithms = {
      JWSAlgorithm.ES256, JWSAlgorithm.ES384, JWSAlgorithm.ES512,
      JWSAlgorithm.RS256, JWSAlgorithm.RS512, JWSAlgorithm.PS256, JWSAlgorithm.PS384,
    };
    write("other.pub", keyPair(JWSAlgorithm.ES256).getPublic());
    for (JWSAlgorithm algorithm : algorithms) {
      KeyPair pair = keyPair(algorithm);
      write("signer.pub", pair.getPublic());
      JWSSigner signer =
          JWSAlgorithm.Family.EC.contains(algorithm)
              ? new ECDSASigner((ECPrivateKey) pair.getPrivate())
              : new RSASSASigner(pair.getPrivate());
      for (boolean encoded : new boolean[] {true, false}) {
        JWSHeader.Builder header = new JWSHeader.Builder(algorithm);
        if (!encoded) {
          header.base64URLEncodePayload(false).criticalParams(Set.of("b64"));
        }
        JWSObject object = new JWSObject(header.build(), new Payload(CONTENT));
        object.sign(signer);
        String detached = object.serialize(true);
        verify(detached, "wrong key");
        if (encoded) {
          verify(object.serialize(), "changed");
        }
      }
    }
  }

  /** The key signed the content, and neither another key nor another content passes. Only a
   * signature with the content in it tells that the content changed. */
  private void verify(String signature, String ofChange) throws Exception {
    Files.writeString(folder.resolve("report.jws"), signature);
    says("report: OK (jws signature", bulla(0, "verify", "report", "-p", "signer.pub"));
    says("report: wrong key", bulla(1, "verify", "report", "-p", "other.pub"));
    Files.writeString(folder.resolve("report"), "another content");
    says("report: " + ofChange, bulla(1, "verify", "report", "-p", "signer.pub"));
    Files.write(folder.resolve("report"), CONTENT);
    int at = signature.lastIndexOf('.') + 1;
    char other = signature.charAt(at) == 'A' ? 'B' : 'A';
    Files.writeString(folder.resolve("report.jws"), signature.substring(0, at) + other + signature.substring(at + 1));
    bulla(1, "verify", "report", "-p", "signer.pub");
  }

  private static KeyPair keyPair(JWSAlgorithm algorithm) throws Exception {
    if (!JWSAlgorithm.Family.EC.contains(algorithm)) {
      KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
      generator.initialize(2048);
      return generator.generateKeyPair();
    }
    String bits = algorithm.equals(JWSAlgorithm.ES512) ? "521" : algorithm.getName().substring(2);
    KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
    generator.initialize(new ECGenParameterSpec("secp" + bits + "r1"));
    return generator.generateKeyPair();
  }

  private void write(String name, PublicKey key) throws Exception {
    String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(key.getEncoded());
    Files.writeString(
        folder.resolve(name), "-----BEGIN PUBLIC KEY-----\n" + text + "\n-----END PUBLIC KEY-----\n");
  }

  private ECPublicKey publicKey(String name) throws Exception {
    String text = Files.readString(folder.resolve(name)).replaceAll("-----[A-Z ]+-----", "");
    byte[] der = Base64.getMimeDecoder().decode(text);
    return (ECPublicKey) KeyFactory.getInstance("EC").generatePublic(new X509EncodedKeySpec(der));
  }
}
