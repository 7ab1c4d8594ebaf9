-- Requests as the assembler writes them.
INSERT INTO requests
(
    ServiceName, Timestamp, TraceId, RootSpanId, SampleKey, AdjustedCount, Environment,
    SystemName, SystemVersion, IndexVersion, PromptVersion, Model, EmbeddingModel, DataSourceId,
    Script, Dialect, ReplayClass, RetrievalStatus, Status, ErrorType, ConversationId,
    UserHash, Input, Question, Answer,
    PassageId, PassageDocumentId, PassageHash, PassageScore, PassageTokens, CumTokens,
    PassagePromptPosition, PassageDroppedReason, PassageSourceVersion, PassageUpdatedAt,
    PassageAcl,
    StageSpanId, StageKind, StageName, StageErrorType, StageIds,
    Depth, TopK, TokenBudget, ContextTokens, BudgetRule, ScoreKind,
    Citations, CitedPositions, InputTokens, OutputTokens, FinishReason,
    DurationNs, RetrievalNs, GenerationNs, AssembledAt, Version
)
SELECT
    service_name, started, trace_id, span_ids[1], sample_key, 1, environment,
    service_name, '1.4.0', index_version, 'p-3', 'large-1', 'embedding-1', 'kb',
    if(language = 1, 'arabic', 'latin'), 'retrospan', 'full', 'recorded',
    if(failed, 'error', 'ok'), if(failed, 'TimeoutError', ''), conversation_id,
    user_hash, input, question, answer,
    ids, document_ids, hashes, scores, tokens, sums,
    places, reasons, arrayResize([''], length(ids)), arrayResize([''], length(ids)),
    arrayResize([''], length(ids)),
    arraySlice(span_ids, 2), ['retrieve', 'assemble', 'generate'],
    ['retrieval kb', 'assemble', 'chat large-1'],
    ['', '', if(failed, 'TimeoutError', '')],
    [ids, ids, []],
    20, top_k, token_budget, context_tokens, 'stop', 'similarity',
    if(failed, [], cited), if(failed OR kept = 0, [], [1]),
    if(failed, NULL, context_tokens + 150), if(failed, NULL, toUInt32(30 + generation_us % 90)),
    if(failed, '', 'stop'),
    duration_us * 1000, retrieval_us * 1000, generation_us * 1000, now64(3),
    toUnixTimestamp64Micro(now64(6))
FROM
(
${facts}
)
