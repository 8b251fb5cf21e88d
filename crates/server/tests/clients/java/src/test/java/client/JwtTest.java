package client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.jwk.source.JWKSourceBuilder;
import com.nimbusds.jose.proc.BadJOSEException;
import com.nimbusds.jose.proc.JWSVerificationKeySelector;
import com.nimbusds.jose.proc.SecurityContext;
import com.nimbusds.jwt.JWTClaimsSet;
import com.nimbusds.jwt.proc.DefaultJWTClaimsVerifier;
import com.nimbusds.jwt.proc.DefaultJWTProcessor;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** JWTs that the service in VAULT_ADDR signs, verified by Nimbus as any OpenID client does. */
class JwtTest {
  private static final String ADDRESS = System.getenv("VAULT_ADDR");
  private static final String AUDIENCE = "https://api.example.org";

  @Test
  void nimbusVerifiesByTheKeysThatTheServiceShows() throws Exception {
    String path = "/api/v1/keys/java-jwt/sign-jwt";
    String token = ask(path, "{\"claims\":{\"sub\":\"job-7\",\"aud\":\"" + AUDIENCE + "\"}}").get("jwt").asText();
    JWTClaimsSet claims = processor(AUDIENCE).process(token, null);
    assertEquals("job-7", claims.getSubject());
    assertEquals("https://keys.example.org", claims.getIssuer());
    assertThrows(BadJOSEException.class, () -> processor("another").process(token, null));
    int at = token.lastIndexOf('.') + 1;
    String damaged = token.substring(0, at) + (token.charAt(at) == 'A' ? 'B' : 'A') + token.substring(at + 1);
    assertThrows(BadJOSEException.class, () -> processor(AUDIENCE).process(damaged, null));
  }

  private static DefaultJWTProcessor<SecurityContext> processor(String audience) throws Exception {
    URL keys = URI.create(ADDRESS + "/.well-known/jwks.json").toURL();
    DefaultJWTProcessor<SecurityContext> processor = new DefaultJWTProcessor<>();
    processor.setJWSKeySelector(
        new JWSVerificationKeySelector<>(JWSAlgorithm.ES256, JWKSourceBuilder.create(keys).build()));
    processor.setJWTClaimsSetVerifier(
        new DefaultJWTClaimsVerifier<>(audience, null, Set.of("iss", "sub", "exp", "nbf", "iat", "jti")));
    return processor;
  }

  private static JsonNode ask(String path, String body) throws Exception {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(ADDRESS + path))
            .header("Authorization", "Bearer " + System.getenv("VAULT_TOKEN"))
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
    HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    if (answer.statusCode() >= 300) {
      throw new IllegalStateException(path + ": " + answer.body());
    }
    return new ObjectMapper().readTree(answer.body());
  }
}
