-- The texts of a collection. The hash is a stand-in: only its being the key matters here.
INSERT INTO passage_texts (Hash, Text, Metadata, LastSeen)
${definitions}
SELECT passage_hash(number), passage_text(number), passage_metadata(number), today()
FROM numbers({corpus:UInt32})
