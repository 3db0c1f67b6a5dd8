// AWS's SDK for Java, version 2: keys, messages, a signature, pages, typed errors; and credentials for a signed token where
// the environment names one.

import java.security.KeyFactory;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.services.kms.KmsClient;
import software.amazon.awssdk.services.kms.model.AlreadyExistsException;
import software.amazon.awssdk.services.kms.model.DataKeySpec;
import software.amazon.awssdk.services.kms.model.DisabledException;
import software.amazon.awssdk.services.kms.model.InvalidCiphertextException;
import software.amazon.awssdk.services.kms.model.KeySpec;
import software.amazon.awssdk.services.kms.model.KeyUsageType;
import software.amazon.awssdk.services.kms.model.KmsException;
import software.amazon.awssdk.services.kms.model.KmsInvalidSignatureException;
import software.amazon.awssdk.services.kms.model.MessageType;
import software.amazon.awssdk.services.kms.model.NotFoundException;
import software.amazon.awssdk.services.kms.model.SigningAlgorithmSpec;

public final class AwsKmsCalls {
  public static void main(String[] arguments) throws Exception {
    try (KmsClient kms = KmsClient.create()) {
      String alias = System.getenv("KEY_ALIAS");
      if (alias != null) {
        messages(kms, alias);
        coded("AccessDeniedException", () -> kms.createKey());
        return;
      }
      var key = kms.createKey(each -> each.description("java")).keyMetadata();
      kms.createAlias(each -> each.aliasName("alias/java").targetKeyId(key.keyId()));
      refused(AlreadyExistsException.class,
          () -> kms.createAlias(each -> each.aliasName("alias/java").targetKeyId(key.keyId())));
      messages(kms, "alias/java");
      signature(kms);

      Set<String> seen = new HashSet<>();
      kms.listKeysPaginator(each -> each.limit(1)).keys().forEach(each -> seen.add(each.keyArn()));
      expect(seen.contains(key.arn()) && seen.size() > 1, "the key among all");
      refused(NotFoundException.class, () -> kms.describeKey(each -> each.keyId("alias/nothing")));
      kms.disableKey(each -> each.keyId(key.keyId()));
      refused(DisabledException.class,
          () -> kms.encrypt(each -> each.keyId(key.keyId()).plaintext(SdkBytes.fromUtf8String("x"))));
    }
    var wrong = AwsBasicCredentials.create(System.getenv("AWS_ACCESS_KEY_ID"), "wrong");
    try (KmsClient other = KmsClient.builder().credentialsProvider(StaticCredentialsProvider.create(wrong)).build()) {
      coded("InvalidSignatureException", () -> other.listKeys());
    }
  }

  private static void messages(KmsClient kms, String alias) {
    var bound = Map.of("app", "pay");
    var made = kms.generateDataKey(
        each -> each.keyId(alias).keySpec(DataKeySpec.AES_256).encryptionContext(bound));
    var opened = kms.decrypt(each -> each.ciphertextBlob(made.ciphertextBlob()).encryptionContext(bound));
    expect(opened.plaintext().equals(made.plaintext()) && opened.keyId().equals(made.keyId()), "the data key");
    refused(InvalidCiphertextException.class, () -> kms.decrypt(each -> each.ciphertextBlob(made.ciphertextBlob())));
    byte[] altered = made.ciphertextBlob().asByteArray();
    altered[altered.length - 1] ^= 1;
    refused(InvalidCiphertextException.class,
        () -> kms.decrypt(each -> each.ciphertextBlob(SdkBytes.fromByteArray(altered)).encryptionContext(bound)));
  }

  private static void signature(KmsClient kms) throws Exception {
    String id = kms.createKey(each -> each.keySpec(KeySpec.ECC_NIST_P256).keyUsage(KeyUsageType.SIGN_VERIFY))
        .keyMetadata().keyId();
    SdkBytes message = SdkBytes.fromUtf8String("release");
    var algorithm = SigningAlgorithmSpec.ECDSA_SHA_256;
    var signed = kms.sign(each -> each.keyId(id).message(message).messageType(MessageType.RAW)
        .signingAlgorithm(algorithm)).signature();
    byte[] spki = kms.getPublicKey(each -> each.keyId(id)).publicKey().asByteArray();
    Signature verifier = Signature.getInstance("SHA256withECDSA");
    verifier.initVerify(KeyFactory.getInstance("EC").generatePublic(new X509EncodedKeySpec(spki)));
    verifier.update(message.asByteArray());
    expect(verifier.verify(signed.asByteArray()), "a valid signature");
    refused(KmsInvalidSignatureException.class, () -> kms.verify(each -> each.keyId(id).signature(signed)
        .message(SdkBytes.fromUtf8String("other")).signingAlgorithm(algorithm)));
  }

  private static void expect(boolean is, String what) {
    if (!is) throw new IllegalStateException("expected " + what);
  }

  private static void refused(Class<? extends KmsException> kind, Runnable call) {
    try {
      call.run();
    } catch (KmsException error) {
      expect(kind.isInstance(error), kind.getSimpleName() + ", got " + error);
      return;
    }
    throw new IllegalStateException("expected " + kind.getSimpleName());
  }

  private static void coded(String code, Runnable call) {
    try {
      call.run();
    } catch (KmsException error) {
      expect(error.awsErrorDetails().errorCode().equals(code), code + ", got " + error);
      return;
    }
    throw new IllegalStateException("expected " + code);
  }
}
