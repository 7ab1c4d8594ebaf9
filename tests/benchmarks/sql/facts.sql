-- One row a request, number 0 the newest: everything that spans and requests say of it. All of it
-- follows from the number, so that two makings of a store differ in their times only.
${definitions},
    (salt -> cityHash64(number, salt) % 100) AS drawn
SELECT
    number AS n,
    multiIf(drawn('language') < 55, 0, drawn('language') < 80, 1, drawn('language') < 90, 2, 3)
        AS language,
    multiIf(
        drawn('service') < 40, 1, drawn('service') < 60, 2, drawn('service') < 75, 3,
        drawn('service') < 85, 4, drawn('service') < 91, 5, drawn('service') < 95, 6,
        drawn('service') < 98, 7, 8
    ) AS service,
    [
        'help-desk', 'shop-assistant', 'hr-portal', 'legal-search', 'clinic-questions',
        'bank-help', 'campus-guide', 'city-services'
    ][service] AS service_name,
    if(drawn('environment') < 95, 'production', 'staging') AS environment,
    drawn('failure') = 0 AS failed,

    lower(hex(MD5(concat('trace ', toString(n))))) AS trace_id,
    reinterpretAsUInt64(
        reverse(substring(SHA256(concat('retrospan:sample:v1\0', trace_id)), 1, 8))
    ) AS sample_key,
    arrayMap(
        step -> substring(lower(hex(MD5(concat(step, toString(n))))), 1, 16),
        ['request ', 'retrieve ', 'assemble ', 'generate ']
    ) AS span_ids,
    lower(hex(MD5(concat('user ', toString(cityHash64(n, 'user') % 200000))))) AS user_hash,
    substring(lower(hex(MD5(concat('talk ', toString(intDiv(n, 3)))))), 1, 16) AS conversation_id,

    {newest_us:Int64} - n * {gap_us:Int64} - toInt64(cityHash64(n, 'time') % {gap_us:Int64})
        AS started_us,
    fromUnixTimestamp64Micro(started_us, 'UTC') AS started,
    20000 + cityHash64(n, 'retrieval') % 80000 AS retrieval_us,
    400000 + cityHash64(n, 'generation') % 2600000 AS generation_us,
    retrieval_us + generation_us + 8000 AS duration_us,

    [5, 8, 6, 10, 4, 8, 5, 6][service] AS top_k,
    [500, 800, 600, 900, 350, 800, 400, 700][service] AS token_budget,
    arrayMap(
        i -> toUInt32({corpus:UInt32} * pow(cityHash64(n, i) / 18446744073709551616., 2)),
        range(10 + cityHash64(n, 'passages') % 11)
    ) AS passages,
    arrayMap(p -> concat('kb-', toString(intDiv(p, 8)), '#', toString(p % 8)), passages) AS ids,
    arrayMap(p -> concat('kb-', toString(intDiv(p, 8))), passages) AS document_ids,
    arrayMap(p -> passage_hash(p), passages) AS hashes,
    arrayMap(
        i -> round(0.95 - 0.03 * i - (cityHash64(n, i, 'score') % 1000) * 0.00003, 4),
        range(length(passages))
    ) AS scores,
    arrayMap(p -> toUInt32(40 + cityHash64(p, 'tokens') % 120), passages) AS tokens,
    CAST(arrayCumSum(tokens), 'Array(UInt32)') AS sums,
    arrayMap(
        (i, total) -> toUInt16(if(i <= top_k AND total <= token_budget, i, 0)),
        arrayEnumerate(sums), sums
    ) AS places,
    arrayMap(
        (i, place) -> multiIf(i > top_k, 'top_k', place = 0, 'budget', ''),
        arrayEnumerate(places), places
    ) AS reasons,
    arrayCount(place -> place > 0, places) AS kept,
    if(kept = 0, 0, sums[kept]) AS context_tokens,

    concat(text(language, cityHash64(n, 'question'), 6 + drawn('question') % 9), '?') AS question,
    concat('{"question": "', question, '"}') AS input,
    if(failed, '', text(language, cityHash64(n, 'answer'), 25 + drawn('answer') % 40)) AS answer,
    concat('kb-', formatDateTime(toMonday(started), '%F')) AS index_version,
    if(kept = 0, [], [ids[1]]) AS cited
FROM numbers({first:UInt64}, {count:UInt64})
