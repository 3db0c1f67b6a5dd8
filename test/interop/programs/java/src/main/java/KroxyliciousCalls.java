// The part of Kroxylicious, which encrypts the records of Kafka, that speaks to AWS KMS.

import io.kroxylicious.kms.provider.aws.kms.AwsKmsService;
import io.kroxylicious.kms.provider.aws.kms.config.Config;
import io.kroxylicious.kms.provider.aws.kms.config.LongTermCredentialsProviderConfig;
import io.kroxylicious.kms.service.Kms;
import io.kroxylicious.kms.service.UnknownAliasException;
import io.kroxylicious.proxy.config.secret.InlinePassword;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.CompletionException;

public final class KroxyliciousCalls {
  public static void main(String[] arguments) {
    var id = new InlinePassword(System.getenv("AWS_ACCESS_KEY_ID"));
    var secret = new InlinePassword(System.getenv("AWS_SECRET_ACCESS_KEY"));
    var credentials = new LongTermCredentialsProviderConfig(id, secret);
    var endpoint = URI.create(System.getenv("AWS_ENDPOINT_URL_KMS"));
    var service = new AwsKmsService();
    service.initialize(new Config(endpoint, null, null, credentials, null, System.getenv("AWS_REGION"), null));
    calls(service.buildKms());
    service.close();
  }

  private static <E> void calls(Kms<String, E> kms) {
    String key = kms.resolveAlias(System.getenv("KEY_ALIAS")).toCompletableFuture().join();
    var pair = kms.generateDekPair(key).toCompletableFuture().join();
    var serde = kms.edekSerde();
    ByteBuffer stored = ByteBuffer.allocate(serde.sizeOf(pair.edek()));
    serde.serialize(pair.edek(), stored);
    stored.flip();
    var opened = kms.decryptEdek(serde.deserialize(stored)).toCompletableFuture().join();
    if (!Arrays.equals(opened.getEncoded(), pair.dek().getEncoded())) throw new IllegalStateException("another key");
    try {
      kms.resolveAlias("nothing").toCompletableFuture().join();
      throw new IllegalStateException("expected a refusal");
    } catch (CompletionException error) {
      if (!(error.getCause() instanceof UnknownAliasException)) throw error;
    }
  }
}
