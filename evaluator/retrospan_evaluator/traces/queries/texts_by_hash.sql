-- Texts and metadata of passages, by the hash that requests hold; a hash has one text for ever, so
-- any of its rows will do.
SELECT lower(hex(Hash)) AS HexHash, Text, Metadata
FROM passage_texts
PREWHERE Hash IN (SELECT toFixedString(unhex(arrayJoin({hashes:Array(String)})), 16))
LIMIT 1 BY Hash
