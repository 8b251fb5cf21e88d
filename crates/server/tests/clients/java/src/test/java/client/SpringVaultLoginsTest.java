package client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.JWSHeader;
import com.nimbusds.jose.crypto.ECDSASigner;
import com.nimbusds.jose.jwk.Curve;
import com.nimbusds.jose.jwk.ECKey;
import com.nimbusds.jose.jwk.JWKSet;
import com.nimbusds.jose.jwk.gen.ECKeyGenerator;
import com.nimbusds.jwt.JWTClaimsSet;
import com.nimbusds.jwt.SignedJWT;
import java.io.BufferedReader;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.core.io.FileSystemResource;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.vault.VaultException;
import org.springframework.vault.authentication.AppRoleAuthentication;
import org.springframework.vault.authentication.AppRoleAuthenticationOptions;
import org.springframework.vault.authentication.AppRoleAuthenticationOptions.RoleId;
import org.springframework.vault.authentication.AppRoleAuthenticationOptions.SecretId;
import org.springframework.vault.authentication.ClientAuthentication;
import org.springframework.vault.authentication.ClientCertificateAuthentication;
import org.springframework.vault.authentication.ClientCertificateAuthenticationOptions;
import org.springframework.vault.authentication.JwtAuthentication;
import org.springframework.vault.authentication.JwtAuthenticationOptions;
import org.springframework.vault.authentication.KubernetesAuthentication;
import org.springframework.vault.authentication.KubernetesAuthenticationOptions;
import org.springframework.vault.authentication.LifecycleAwareSessionManager;
import org.springframework.vault.authentication.TokenAuthentication;
import org.springframework.vault.client.ClientHttpRequestFactoryFactory;
import org.springframework.vault.client.RestTemplateBuilder;
import org.springframework.vault.client.VaultEndpoint;
import org.springframework.vault.core.VaultTemplate;
import org.springframework.vault.support.ClientOptions;
import org.springframework.vault.support.Plaintext;
import org.springframework.vault.support.SslConfiguration;
import org.springframework.vault.support.SslConfiguration.KeyStoreConfiguration;
import org.springframework.vault.support.VaultToken;
import org.springframework.vault.support.VaultTransitKeyCreationRequest;
import org.springframework.web.client.RestTemplate;

/** Spring Vault, as it is, logs in to a service of its own, which BULLA starts. */
class SpringVaultLoginsTest {
  private static final String ISSUER = "https://ci.example.org";
  private static final String ROLE = "tenant = \"local\"\noperations = [\"create\", \"sign\", \"read\"]\n";

  @TempDir static Path folder;
  private static Process service;
  private static ECKey issuer;
  private static VaultEndpoint plain;
  private static VaultEndpoint secure;
  private static RestTemplate rest;

  private static String run(String... command) throws Exception {
    Process process = new ProcessBuilder(command).directory(folder.toFile()).redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes());
    assertEquals(0, process.waitFor(), said);
    return said;
  }

  /** A certificate of the authority, and its key. */
  private static void certify(String name) throws Exception {
    Files.writeString(folder.resolve(name + ".ext"), "subjectAltName=DNS:" + name + "\n");
    run("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name,
        "-keyout", name + ".key", "-out", name + ".csr");
    run("openssl", "x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2",
        "-extfile", name + ".ext", "-out", name + ".pem");
  }

  private static int freePort() throws Exception {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    }
  }

  @BeforeAll
  static void start() throws Exception {
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem");
    certify("localhost");
    certify("builder");
    run("openssl", "pkcs12", "-export", "-in", "builder.pem", "-inkey", "builder.key", "-out", "builder.p12",
        "-passout", "pass:builder");
    issuer = new ECKeyGenerator(Curve.P_256).keyID("1").generate();
    Files.writeString(folder.resolve("keys.json"), new JWKSet(issuer).toString());
    int port = freePort();
    int securePort = freePort();
    String settings =
        "[[listen]]\naddress = \"127.0.0.1:" + port + "\"\n"
            + "[[listen]]\naddress = \"127.0.0.1:" + securePort + "\"\n"
            + "tls = { certificate = \"localhost.pem\", key = \"localhost.key\", client_ca = \"ca.pem\" }\n"
            + "[[issuer]]\nname = \"ci\"\nissuer = \"" + ISSUER + "\"\nkeys_file = \"keys.json\"\n"
            + "[[role]]\nname = \"job\"\nissuer = \"ci\"\naudiences = [\"bulla\"]\nsubjects = [\"job:*\"]\n" + ROLE
            + "[[approle]]\nname = \"build\"\nrole_id = \"build-id\"\n" + ROLE
            + "[[certificate_role]]\nname = \"builders\"\ndns_names = [\"builder\"]\n" + ROLE;
    Files.writeString(folder.resolve("serve.toml"), settings);
    service =
        new ProcessBuilder(System.getenv("BULLA"), "serve", "--dev", "--config", "serve.toml")
            .directory(folder.toFile())
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start();
    BufferedReader said = service.errorReader();
    List<String> lines = new ArrayList<>();
    for (int listening = 0; listening < 2; ) {
      String line = said.readLine();
      assertTrue(line != null, () -> String.join("\n", lines));
      lines.add(line);
      listening += line.contains("listening on ") ? 1 : 0;
    }
    // What it says later must not fill the pipe.
    Thread reader = new Thread(() -> said.lines().forEach(line -> {}));
    reader.setDaemon(true);
    reader.start();
    plain = VaultEndpoint.from(URI.create("http://127.0.0.1:" + port));
    secure = VaultEndpoint.from(URI.create("https://localhost:" + securePort));
    rest = RestTemplateBuilder.builder().endpoint(plain).requestFactory(factory(SslConfiguration.unconfigured())).build();
  }

  @AfterAll
  static void stop() {
    service.destroyForcibly();
  }

  private static ClientHttpRequestFactory factory(SslConfiguration tls) {
    return ClientHttpRequestFactoryFactory.create(new ClientOptions(), tls);
  }

  /** A JWT of the issuer, as a CI system gives it. */
  private static String jwt(String audience) {
    try {
      JWTClaimsSet claims =
          new JWTClaimsSet.Builder()
              .issuer(ISSUER)
              .audience(audience)
              .subject("job:7")
              .expirationTime(Date.from(Instant.now().plusSeconds(300)))
              .build();
      SignedJWT jwt = new SignedJWT(new JWSHeader.Builder(JWSAlgorithm.ES256).keyID("1").build(), claims);
      jwt.sign(new ECDSASigner(issuer));
      return jwt.serialize();
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  /** Without a token, the connection is that of somebody who may make secret ids. */
  private static JsonNode newSecretId(String wrapTtl) throws Exception {
    URI path = URI.create(plain.createUriString("auth/approle/role/build/secret-id"));
    HttpRequest.Builder request = HttpRequest.newBuilder(path).POST(HttpRequest.BodyPublishers.ofString("{}"));
    if (wrapTtl != null) {
      request.header("X-Vault-Wrap-TTL", wrapTtl);
    }
    HttpResponse<String> answer =
        HttpClient.newHttpClient().send(request.build(), HttpResponse.BodyHandlers.ofString());
    assertEquals(200, answer.statusCode(), answer.body());
    return new ObjectMapper().readTree(answer.body());
  }

  /** As an application does it: the session logs in, its token signs, and it is revoked at the end. */
  private static void signs(ClientAuthentication login, String who) {
    ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
    scheduler.initialize();
    LifecycleAwareSessionManager session = new LifecycleAwareSessionManager(login, scheduler, rest);
    VaultTemplate vault = new VaultTemplate(plain, factory(SslConfiguration.unconfigured()), session);
    vault.opsForTransit().createKey("spring", VaultTransitKeyCreationRequest.ofKeyType("ed25519"));
    assertTrue(vault.opsForTransit().sign("spring", Plaintext.of("a message")).getSignature().startsWith("vault:v1:"));
    Map<String, Object> own = vault.read("auth/token/lookup-self").getData();
    assertTrue(own.get("display_name").toString().startsWith(who), own.toString());
    VaultToken token = session.getSessionToken();
    session.destroy();
    scheduler.shutdown();
    VaultTemplate revoked = new VaultTemplate(plain, new TokenAuthentication(token));
    assertThrows(VaultException.class, () -> revoked.read("auth/token/lookup-self"));
  }

  @Test
  void aJobLogsInWithItsJwt() {
    JwtAuthenticationOptions.JwtAuthenticationOptionsBuilder options = JwtAuthenticationOptions.builder().role("job");
    signs(new JwtAuthentication(options.jwtSupplier(() -> jwt("bulla")).build(), rest), "ci/job:7 token ");
    JwtAuthentication other = new JwtAuthentication(options.jwtSupplier(() -> jwt("another")).build(), rest);
    assertThrows(VaultException.class, other::login);
  }

  @Test
  void aPodLogsInWithItsJwt() {
    KubernetesAuthenticationOptions options =
        KubernetesAuthenticationOptions.builder().role("job").jwtSupplier(() -> jwt("bulla")).build();
    signs(new KubernetesAuthentication(options, rest), "ci/job:7 token ");
  }

  @Test
  void aMachineLogsInWithASecretId() throws Exception {
    String secret = newSecretId(null).at("/data/secret_id").asText();
    String wrapping = newSecretId("60s").at("/wrap_info/token").asText();
    for (SecretId one : List.of(SecretId.provided(secret), SecretId.wrapped(VaultToken.of(wrapping)))) {
      AppRoleAuthenticationOptions options =
          AppRoleAuthenticationOptions.builder().roleId(RoleId.provided("build-id")).secretId(one).build();
      signs(new AppRoleAuthentication(options, rest), "approle/build/");
    }
    AppRoleAuthenticationOptions wrong =
        AppRoleAuthenticationOptions.builder()
            .roleId(RoleId.provided("build-id"))
            .secretId(SecretId.provided("not-the-secret-of-the-role"))
            .build();
    assertThrows(VaultException.class, () -> new AppRoleAuthentication(wrong, rest).login());
  }

  @Test
  void aMachineLogsInWithItsCertificate() {
    KeyStoreConfiguration trusted =
        KeyStoreConfiguration.of(new FileSystemResource(folder.resolve("ca.pem"))).withStoreType("PEM");
    KeyStoreConfiguration own =
        KeyStoreConfiguration.of(new FileSystemResource(folder.resolve("builder.p12")), "builder".toCharArray())
            .withStoreType("PKCS12");
    RestTemplate withOwn =
        RestTemplateBuilder.builder()
            .endpoint(secure)
            .requestFactory(factory(new SslConfiguration(own, trusted)))
            .build();
    ClientCertificateAuthenticationOptions options =
        ClientCertificateAuthenticationOptions.builder().role("builders").build();
    signs(new ClientCertificateAuthentication(options, withOwn), "cert/builders/builder token ");
    RestTemplate without =
        RestTemplateBuilder.builder()
            .endpoint(secure)
            .requestFactory(factory(SslConfiguration.forTrustStore(trusted)))
            .build();
    assertThrows(VaultException.class, () -> new ClientCertificateAuthentication(options, without).login());
  }
}
