// Spring Vault's operations on transit keys, as Spring applications use them.

import java.net.URI;
import java.util.List;
import org.springframework.vault.VaultException;
import org.springframework.vault.authentication.AppRoleAuthentication;
import org.springframework.vault.authentication.AppRoleAuthenticationOptions;
import org.springframework.vault.authentication.AppRoleAuthenticationOptions.RoleId;
import org.springframework.vault.authentication.AppRoleAuthenticationOptions.SecretId;
import org.springframework.vault.authentication.TokenAuthentication;
import org.springframework.vault.client.RestTemplateBuilder;
import org.springframework.vault.client.VaultEndpoint;
import org.springframework.vault.core.VaultTemplate;
import org.springframework.vault.core.VaultTransitOperations;
import org.springframework.vault.support.Ciphertext;
import org.springframework.vault.support.Plaintext;
import org.springframework.vault.support.VaultTransitContext;
import org.springframework.vault.support.VaultTransitKeyConfiguration;
import org.springframework.vault.support.VaultTransitKeyCreationRequest;

public final class SpringVaultCalls {
  public static void main(String[] arguments) {
    VaultEndpoint endpoint = VaultEndpoint.from(URI.create(System.getenv("VAULT_ADDR")));
    String token = System.getenv("VAULT_TOKEN");
    VaultTransitOperations transit = new VaultTemplate(endpoint, new TokenAuthentication(token)).opsForTransit();

    transit.createKey("spring");
    expect(transit.getKeys().contains("spring"), "the key in the list");
    String first = transit.encrypt("spring", "payroll");
    expect(first.startsWith("vault:v1:"), "version 1");
    expect(transit.decrypt("spring", first).equals("payroll"), "what was encrypted");
    transit.rotate("spring");
    expect(transit.getKey("spring").getLatestVersion() == 2, "version 2");
    String second = transit.rewrap("spring", first);
    expect(second.startsWith("vault:v2:"), "a message of version 2");
    expect(transit.decrypt("spring", second).equals("payroll"), "what was rewrapped");

    var several = transit.encrypt("spring", List.of(Plaintext.of("one"), Plaintext.of("two")));
    expect(several.size() == 2 && several.get(0).isSuccessful(), "two messages");
    var opened = transit.decrypt("spring", several.stream().map(each -> each.get()).toList());
    expect(opened.get(1).getAsString().equals("two"), "the second message");
    refused("illegal base64|invalid ciphertext", () -> transit.decrypt("spring", List.of(Ciphertext.of("nothing"))));

    transit.createKey("spring-derived", VaultTransitKeyCreationRequest.builder().derived(true).build());
    VaultTransitContext row = VaultTransitContext.fromContext("row 7".getBytes());
    String derived = transit.encrypt("spring-derived", "payroll".getBytes(), row);
    expect(new String(transit.decrypt("spring-derived", derived, row)).equals("payroll"), "what was derived");
    VaultTransitContext other = VaultTransitContext.fromContext("row 8".getBytes());
    refused("authentication failed", () -> transit.decrypt("spring-derived", derived, other));

    transit.createKey("spring-sign", VaultTransitKeyCreationRequest.ofKeyType("ed25519"));
    var signature = transit.sign("spring-sign", Plaintext.of("release"));
    expect(transit.verify("spring-sign", Plaintext.of("release"), signature), "a valid signature");
    expect(!transit.verify("spring-sign", Plaintext.of("other"), signature), "an invalid signature");

    refused("not found", () -> transit.decrypt("nobody-made-it", first));
    refused("deletion is not allowed", () -> transit.deleteKey("spring"));
    transit.configureKey("spring", VaultTransitKeyConfiguration.builder().deletionAllowed(true).build());
    transit.deleteKey("spring");
    expect(transit.getKey("spring") == null, "no key");

    var http = RestTemplateBuilder.builder().endpoint(endpoint).build();
    var role = AppRoleAuthenticationOptions.builder()
        .roleId(RoleId.provided(System.getenv("ROLE_ID")))
        .secretId(SecretId.provided(token))
        .build();
    expect(new AppRoleAuthentication(role, http).login().getToken().equals(token), "the API key as the token");
    var stranger = new VaultTemplate(endpoint, new TokenAuthentication("kms_wrong")).opsForTransit();
    refused("permission denied", () -> stranger.encrypt("spring-sign", "payroll"));
  }

  private static void expect(boolean holds, String what) {
    if (!holds) throw new IllegalStateException("expected " + what);
  }

  private static void refused(String expected, Runnable work) {
    try {
      work.run();
    } catch (VaultException error) {
      if (error.getMessage().matches("(?s).*(" + expected + ").*")) return;
      throw error;
    }
    throw new IllegalStateException("expected a refusal: " + expected);
  }
}
