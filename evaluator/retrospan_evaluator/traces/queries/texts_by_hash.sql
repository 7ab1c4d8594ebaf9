-- Texts and metadata of passages, by the hash that requests hold.
SELECT lower(hex(Hash)) AS HexHash, Text, Metadata
FROM passage_texts FINAL
WHERE Hash IN (SELECT toFixedString(unhex(arrayJoin({hashes:Array(String)})), 16))
