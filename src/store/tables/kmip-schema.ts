// The tables of KMIP's objects: the step that makes them. Statements of a released step never change.
export const kmipSchema: readonly string[] = [
  // One row for each managed key that a KMIP client made or described. `object_type` is KMIP's number, `owner` the API
  // key that made it. `attributes` are values in TTLV by the attribute's name, `shape` is the object in TTLV without
  // its value, and `form` says where the key's bytes stand in it.
  `CREATE TABLE kmip_objects (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    key_id TEXT NOT NULL UNIQUE REFERENCES managed_keys (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    object_type INTEGER NOT NULL,
    form TEXT NOT NULL,
    shape TEXT NOT NULL,
    attributes TEXT NOT NULL
  )`,
  `CREATE INDEX kmip_objects_by_owner ON kmip_objects (owner, seq)`,
  // Names are one client's and of one type of objects. Those of a deleted object stay, in case that it is restored.
  `CREATE TABLE kmip_names (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    key_id TEXT NOT NULL REFERENCES managed_keys (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    object_type INTEGER NOT NULL,
    name TEXT NOT NULL
  )`,
  `CREATE INDEX kmip_names_by_key ON kmip_names (key_id)`,
  `CREATE INDEX kmip_names_by_name ON kmip_names (name, owner, object_type)`,
];
