-- `text`: words of one language (256 each), the common ones by a square law.
WITH
    {words:Array(String)} AS words,
    (draw -> bitShiftRight(draw * draw, 24)) AS common_first,
    ((language, seed, length) -> arrayStringConcat(arrayMap(
        k -> words[1 + 256 * language + common_first(bitAnd(cityHash64(seed, k), 65535))],
        range(toUInt32(length))
    ), ' ')) AS text,
    (p -> text(p % 4, cityHash64(p, 'text'), 20 + cityHash64(p, 'length') % 100)) AS passage_text,
    (p -> concat('{"page":', toString(p % 40), '}')) AS passage_metadata,
    (p -> MD5(concat('passage ', toString(p)))) AS passage_hash
