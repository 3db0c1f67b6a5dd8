"""Destroys a KMIP object through PyKMIP, as it is, while the server holds that until others approve it."""

import os

from kmip.core import enums
from kmip.pie.client import ProxyKmipClient

directory = os.environ["CLIENT"]
with ProxyKmipClient(
    hostname="localhost",
    port=int(os.environ["PORT"]),
    cert=f"{directory}/client.crt",
    key=f"{directory}/client.key",
    ca=os.environ["CA"],
    ssl_version="PROTOCOL_TLSv1_2",
    kmip_version=enums.KMIPVersion.KMIP_1_4,
) as client:
    key = client.create(enums.CryptographicAlgorithm.AES, 256, name="held")
    client.destroy(key)
print("destroyed")
