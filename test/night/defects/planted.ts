import type { Patch } from '../../fixtures/patch.ts'

/** A defect, the patch that makes it, and the cheapest test of the day that fails because of it: its file and a part of its title. */
type Defect = readonly [name: string, patch: Patch, file: string, title: string]

/** Defects that a careless change might make. */
export const PLANTED_DEFECTS: readonly Defect[] = [
  // Ledger
  [
    'the hold of a call is released twice',
    {
      file: 'src/accounts/ledger/ledger.ts',
      text: 'releaseHold(hold, hold.amount)\n    const payer',
      by: 'releaseHold(hold, hold.amount)\n    releaseHold(hold, hold.amount)\n    const payer',
    },
    'src/accounts/ledger/ledger.test.ts',
    'a hold grows only within free quota, and its end releases all of it',
  ],
  [
    'balances in memory are charged the hold of a call, not its cost',
    {
      file: 'src/accounts/ledger/ledger.ts',
      text: 'chargeBalances(payer, settlement.quota)',
      by: 'chargeBalances(payer, hold.amount)',
    },
    'src/accounts/ledger/ledger.test.ts',
    'a response that costs more than its hold is charged in full, even below zero',
  ],
  [
    'a call that needs exactly what is left is refused',
    {
      file: 'src/accounts/ledger/ledger.ts',
      text: '&& amount > affordableAmountInTurn(',
      by: '&& amount >= affordableAmountInTurn(',
    },
    'src/accounts/ledger/ledger.test.ts',
    "the ledger admits exactly as many calls in one turn of the event loop as the key's quota affords",
  ],
  [
    'tokens are counted although the provider has reported them',
    {
      file: 'src/call/price-usage.ts',
      text: 'const isUsable = isComplete && reported && isCredible(reported, basis)',
      by: 'const isUsable = false',
    },
    'test/responses/charges.test.ts',
    'tokens written to a prompt cache are charged at their own price, for a client of chat',
  ],
  [
    'the charge of a call of plain text is rounded down',
    {
      file: 'src/domain/charge.ts',
      text: ' + text.parts\n',
      by: '\n',
    },
    'src/domain/charge.test.ts',
    'a charge is rounded once, half away from zero',
  ],
  [
    'any other charge is rounded down',
    {
      file: 'src/domain/charge.ts',
      text: 'return (2n * digits + unit) / (2n * unit)\n}\n\n/** Kinds',
      by: 'return digits / unit\n}\n\n/** Kinds',
    },
    'src/domain/charge.test.ts',
    'a charge includes the price per call and tool uses',
  ],
  [
    'a call that a crash ends is not charged',
    {
      file: 'src/store/sqlite/hold-statements.ts',
      text: 'quota: Math.min(amount, prompt_amount + progress_amount)',
      by: 'quota: 0',
    },
    'src/store/sqlite/ledger-rows.test.ts',
    'recovery after a crash charges an open hold for its prompt and recorded output, at most the held amount',
  ],
  [
    'a call that a crash ends is charged more than its hold',
    {
      file: 'src/store/sqlite/hold-statements.ts',
      text: 'quota: Math.min(amount, prompt_amount + progress_amount)',
      by: 'quota: prompt_amount + progress_amount',
    },
    'src/store/sqlite/ledger-rows.test.ts',
    'recovery after a crash charges an open hold for its prompt and recorded output, at most the held amount',
  ],
  [
    'the output of a call whose client left is not counted',
    {
      file: 'src/call/price-usage.ts',
      text: 'const isReportedMore = reportedOutput',
      by: 'const isReportedMore = true || reportedOutput',
    },
    'test/streams/stopped-calls.test.ts',
    'a chat stream that is stopped after its first words is charged for the prompt and what had arrived',
  ],
  [
    'a hold counts as durable before it is written, so that content is sent',
    {
      file: 'src/accounts/ledger/open-hold.ts',
      text: 'get isDurable(): boolean {\n    return this.#isDurable',
      by: 'get isDurable(): boolean {\n    return true',
    },
    'src/accounts/ledger/ledger.test.ts',
    'waiting until a hold is durable ends only after it was written',
  ],
  [
    'a whole response is sent before its charge is written',
    {
      file: 'src/call/whole-response.ts',
      text: 'const [charged] = await Promise.all([charging, keeping])',
      by: 'const charged = undefined as never',
    },
    'test/faults/kill-before-first-byte.test.ts',
    'of an answer that arrives at once, streamed or whole, nothing is sent before its charge is durable',
  ],
  [
    'a call is admitted although its budgets are used up',
    {
      file: 'src/accounts/ledger/charged-balances.ts',
      text: 'for (const one of budgets) free =',
      by: 'for (const one of NO_BUDGETS) free =',
    },
    'test/http/budgets.test.ts',
    'a call that exceeds the budget of its key is refused until the period ends',
  ],
  [
    'a call is charged to the budgets of groups that did not answer it',
    { file: 'src/domain/budget.ts', text: "return !owner.startsWith('g:') ||", by: 'return true ||' },
    'src/domain/budget.test.ts',
    'a call is charged to the budgets of its user, its key and the one group that served it',
  ],
  [
    'a budget counts as unused after a start',
    {
      file: 'src/accounts/ledger/local-accounts.ts',
      text: 'new Balance(0, amount - used, used)',
      by: 'new Balance(0, amount, used)',
    },
    'src/accounts/ledger/budgets.test.ts',
    'calls with clock jumps and process kills, each budget is the sum of the calls that began in its period',
  ],
  [
    'a call is not charged to its budgets in the file',
    { file: 'src/store/sqlite/ledger-rows.ts', text: "if (call.budgets !== '') this", by: 'if (false) this' },
    'test/management/budgets.test.ts',
    'a budget of a key that is set over HTTP applies from the next call, and is shown with the amount used',
  ],
  [
    'a charge that a node reports again is counted again',
    {
      file: 'src/store/postgres/bank/charge.sql',
      text: 'select given.* from given join logged using (id)',
      by: 'select given.* from given',
    },
    'src/store/postgres/bank.test.ts',
    'the quota bank counts a call once however often a node reports it, alone and in a batch',
  ],

  // Conversion
  [
    'the pieces of all tool calls belong to the first one',
    {
      file: 'packages/wire/src/chat/stream/encoder.ts',
      text: '"tool_calls":[{"index":${number},',
      by: '"tool_calls":[{"index":0,',
    },
    'packages/wire/src/chat/stream/encoder.test.ts',
    'tool input is encoded as arguments of chat chunks, a missing one as an empty object',
  ],
  [
    'an answer that was cut at its maximum ends as if it were complete',
    {
      file: 'packages/wire/src/chat/stop-reasons.ts',
      text: "length: 'length',",
      by: "length: 'stop',",
    },
    'packages/wire/src/chat/stream/encoder.test.ts',
    'the stop reason length is encoded as the finish_reason length of chat',
  ],
  [
    'tokens that were read from a cache are counted as input, too',
    {
      file: 'packages/wire/src/reported-usage.ts',
      text: 'const uncached = input - cacheRead - cacheWrite',
      by: 'const uncached = input - cacheWrite',
    },
    'packages/wire/src/chat/usage.test.ts',
    'cached tokens in a chat usage are subtracted from the prompt, whatever name they have',
  ],
  [
    'the signature of a streamed thought is lost',
    {
      file: 'packages/wire/src/messages/stream/decoder.ts',
      text: "if (proof.value !== '') this.emit",
      by: "if (proof.value === '') this.emit",
    },
    'packages/wire/src/messages/reply-codec.test.ts',
    'a messages stream is decoded with its blocks, their deltas, pings and the end',
  ],
  [
    'the content of an answer with tool calls alone is an empty text, not null',
    {
      file: 'packages/wire/src/chat/encode/reply.ts',
      text: "content: content === '' && (calls.length > 0 || refusal !== '') ? null : content",
      by: 'content',
    },
    'packages/wire/src/chat/stream/encoder.test.ts',
    'the content of an encoded chat reply is null if it has only tool calls, and empty if it has nothing',
  ],
  [
    'a member without a stop sequence is an empty text, not null',
    {
      file: 'packages/wire/src/messages/stop-reasons.ts',
      text: 'stop_sequence: sequence ?? null',
      by: "stop_sequence: sequence ?? ''",
    },
    'packages/wire/src/messages/reply-codec.test.ts',
    'a whole messages reply is encoded in the documented order and form',
  ],
  [
    'a tool result that is an error becomes one that is not',
    { file: 'packages/wire/src/messages/decode/request.ts', text: 'isError:', by: 'isError: false && ' },
    'packages/wire/src/messages/request-codec.test.ts',
    'tool results in a messages request are decoded with text and media, and may be errors',
  ],
  [
    'a field with an unexpected value is an internal error when the request is converted',
    {
      file: 'packages/wire/src/responses/decode/request.ts',
      text: "requireObject(text, 'text')['verbosity']",
      by: "(text as Record<string, Record<string, unknown>>)['format']['verbosity']",
    },
    'test/fidelity/other-fields.test.ts',
    'a request with an unexpected value of the field text is converted for another dialect or is a 400, and never a 500',
  ],
  [
    'the end of an event that is cut between two reads is not found',
    {
      file: 'packages/wire/src/sse/frame-splitter.ts',
      text: 'const SEAM_BYTES = 3',
      by: 'const SEAM_BYTES = 0',
    },
    'packages/wire/src/sse/frame-splitter.test.ts',
    'a stream that arrives byte by byte gives the same frames as in one piece',
  ],
  [
    'the input of a tool that is held back is sent in part',
    {
      file: 'packages/wire/src/tool-input.ts',
      text: 'this.#pending.delete(part)\n    return text',
      by: 'this.#pending.delete(part)\n    return piece',
    },
    'packages/wire/src/tool-input.test.ts',
    'a streamed tool input keeps its text, however it is divided and whatever else arrives',
  ],

  // Isolation
  [
    'a stored response is found for any user',
    {
      file: 'src/store/operations/stored-responses.ts',
      text: "    .where('stored_responses.user_id', '=', lookUp.userId)\n",
      by: '',
    },
    'src/store/operations/stored-responses.test.ts',
    'stored responses are readable by their user until they expire',
  ],
  [
    'a conversation continues responses of any user',
    {
      file: 'src/store/operations/stored-responses.ts',
      text: 'sql`response.user_id = ${userId} and response.expires_ms',
      by: 'sql`response.expires_ms',
    },
    'src/store/operations/stored-responses.test.ts',
    'the chain of a stored response ends before a response of another user',
  ],
  [
    'an answer from the cache is given to any user',
    {
      file: 'src/features/equal-calls/sharable-call.ts',
      text: '[options.scope, owner, first.group.name]',
      by: '[options.scope, first.group.name]',
    },
    'test/faults/answer-cache-scopes.test.ts',
    'a call gets a cached answer only if it was made for the same owner, model, body and prices',
  ],
  [
    'an answer from the cache is given to any group',
    {
      file: 'src/features/equal-calls/sharable-call.ts',
      text: '[options.scope, owner, first.group.name]',
      by: '[options.scope, owner]',
    },
    'test/faults/answer-cache-scopes.test.ts',
    'a call gets a cached answer only if it was made for the same owner, model, body and prices',
  ],
  [
    'an idempotency key gives the answer to another API key',
    {
      file: 'src/features/equal-calls/idempotent-calls.ts',
      text: '`idempotency\\n${caller.token.id}\\n${key}`',
      by: '`idempotency\\n${key}`',
    },
    'test/equal-calls/idempotency.test.ts',
    'an idempotency key belongs to its API key',
  ],
  [
    'the usage log of a user has the calls of all users',
    {
      file: 'src/management/usage/list-usage.ts',
      text: '...callFilterOf(query, userId)',
      by: '...callFilterOf(query)',
    },
    'test/management/usage.test.ts',
    'the usage log of an account has only its own calls, without channel and upstream model',
  ],
  [
    'the API key of another user is forbidden, not missing',
    {
      file: 'src/management/tokens/token-object.ts',
      text: "GatewayError('not_found', 'you have",
      by: "GatewayError('role_too_low', 'you have",
    },
    'test/management/tokens-delete.test.ts',
    "DELETE /api/token/:id of another user's token, and of an unknown one, is the same 404, and deletes nothing",
  ],

  [
    'a kept answer is found for any user',
    {
      file: 'src/store/operations/read-kept.ts',
      text: "rulesOf(kind).readers === 'owner' ? live.where('user_id', '=', userId) : live",
      by: 'live',
    },
    'src/store/kept-store.test.ts',
    'an entry is found by other users only if its kind is for everybody who can compute the key',
  ],
  [
    'a call is shown to any user who knows its id',
    {
      file: 'src/store/operations/usage-log.ts',
      text: 'if (!entry || (userId !== undefined && entry.user_id !== userId)) return null',
      by: 'if (!entry) return null',
    },
    'test/management/call-detail.test.ts',
    'members see the details of their own calls only, and without the attempts at upstreams',
  ],
  [
    'encrypted reasoning of another user is recognised',
    {
      file: 'src/features/stored-responses/response-store.ts',
      text: "this.#tag('reasoning', `${userId}\\n${content}`)",
      by: "this.#tag('reasoning', content)",
    },
    'src/features/stored-responses/response-store.slow.test.ts',
    'encrypted reasoning leads only calls of the user who received it to the account that made it',
  ],
  [
    'a kept response is read as a whole before it is sent',
    {
      file: 'src/features/stored-responses/response-requests.ts',
      text: 'return answerPieces(incoming, parts)',
      by: "return answerPieces(incoming, (async function* () { yield (await Array.fromAsync(parts)).join('') })())",
    },
    'test/faults/store-reads.test.ts',
    'concurrent requests for a kept response of 30 MB take bounded memory',
  ],
  [
    'a user may have more than eight reads at once',
    { file: 'src/limits/store-reads.ts', text: 'const MAX_RUNNING = 8', by: 'const MAX_RUNNING = 100' },
    'test/faults/store-reads.test.ts',
    'a user has at most eight database reads at once',
  ],

  // Limits
  [
    'one call more than its limit is admitted in a window',
    {
      file: 'src/limits/sliding-window.ts',
      text: 'allowed: amount <= free',
      by: 'allowed: amount <= free + 1',
    },
    'src/limits/sliding-window.test.ts',
    'a sliding window admits calls up to the limit, and then none until the oldest one has expired',
  ],
  [
    'a use is forgotten before its window has passed',
    {
      file: 'src/limits/sliding-window.ts',
      text: '+ windowMs <= nowMs) {',
      by: '+ windowMs / 2 <= nowMs) {',
    },
    'src/limits/sliding-window.test.ts',
    'a sliding window admits calls up to the limit, and then none until',
  ],
  [
    'a failed call keeps its slot',
    {
      file: 'src/call/relay.ts',
      text: '      throw this.refusal(error, dialects, body, incoming, caller, settings)\n    } finally {\n      body?.release()\n      leave?.()\n    }',
      by: '      body?.release()\n      throw this.refusal(error, dialects, body, incoming, caller, settings)\n    }\n    body?.release()\n    leave?.()',
    },
    'test/http/budgets.test.ts',
    'calls that have failed do not count as calls in flight',
  ],
  [
    'a call that is refused for the calls in flight of its user keeps a slot of its key',
    { file: 'src/call/call-limits.ts', text: '        leave()\n        throw', by: '        throw' },
    'test/http/budgets.test.ts',
    'calls that are refused for the calls in flight of their user do not count for their key',
  ],
  [
    'the output of a call does not count against limits of tokens',
    {
      file: 'src/call/call-limits.ts',
      text: 'this.#spend(LIMIT_NAMES.model, model.name, model.rate_limit, tokens, nowMs)\n',
      by: '',
    },
    'test/http/rate-limits.test.ts',
    'the token rate limit of a model counts the calls of all clients',
  ],
  [
    'a key that its provider has limited is used again at once',
    {
      file: 'src/upstreams/account-rests.ts',
      text: 'let endMs = nowMs + (stated ?? 0)',
      by: 'let endMs = nowMs',
    },
    'src/upstreams/account-rests.test.ts',
    'after a 429 that asks for 7000 ms the account rests for 7000 ms',
  ],
  [
    'an event may be larger than its maximum',
    {
      file: 'packages/wire/src/sse/frame-splitter.ts',
      text: 'if (this.#held.length + piece.length > this.#maxEventBytes) this.#tooLarge()',
      by: '',
    },
    'packages/wire/src/sse/frame-splitter.test.ts',
    'a stream event above the maximum size is an upstream error, however it arrives',
  ],

  // Guards
  [
    'results of tools are not checked as such',
    {
      file: 'packages/wire/src/messages/shape.ts',
      text: "content: 'result | Block'",
      by: "content: 'text | Block'",
    },
    'test/guards/input.test.ts',
    'a guard that checks only one kind of content of a request, such as tool results, does not check other kinds',
  ],
  [
    'a match that two events share is not found',
    {
      file: 'src/features/guards/guarded-streamed-text.ts',
      text: '(stream) => stream.push(text), text)',
      by: '(stream) => stream.push(text) + stream.end(), text)',
    },
    'src/features/guards/guarded-tap.test.ts',
    'a guard checks the streamed arguments of each tool call as a separate text, by the index of the call',
  ],
  [
    'a stored response is read without the guards',
    {
      file: 'src/features/stored-responses/response-requests.ts',
      text: 'check: this.#services.lifeCycle.kept({ incoming, caller, settings, ...response }),',
      by: 'check: undefined,',
    },
    'test/guards/traces.test.ts',
    'a stored response is redacted by the guards of the key that made it, and at each read by those of the key that reads it',
  ],
  [
    'a cached answer is given without the guards of the call',
    {
      file: 'src/features/equal-calls/sharable-call.ts',
      text: 'admitted.decisions?.answerDependsOn ?? [],',
      by: '[],',
    },
    'test/guards/answer-cache.test.ts',
    'calls share a cached answer only with calls that the same guards check',
  ],
  [
    'a text file in base64 is not decoded',
    {
      file: 'packages/wire/src/files-in-values.ts',
      text: 'if (isDataUrl(value)) return DATA_READINGS',
      by: 'if (isDataUrl(value)) return NOTHING',
    },
    'test/guards/files.test.ts',
    'is redacted and encoded again, whatever its media type states',
  ],
  [
    'events that a guard adds to a stream repeat names as the provider wrote them',
    {
      file: 'src/features/guards/event-screen.ts',
      text: "return this.#served.get(given) ?? this.#stream.guards.repeat(given, found) ?? ''",
      by: 'return given',
    },
    'src/features/guards/guarded-tap.test.ts',
    'events that a guard adds to a stream have no names that it has changed or blocked',
  ],
  [
    "a service's decision about an event that is held back is not waited for",
    {
      file: 'src/features/guards/held-events.ts',
      text: 'if (texts.some(({ next }) => next === undefined)) break',
      by: 'for (const text of texts) text.next ??= text.given',
    },
    'src/features/guards/stream-bounds.slow.test.ts',
    'the memory of the part of a stream that a guard holds back is counted',
  ],
  [
    'a guard that blocks an answer lets the rest of its stream pass',
    {
      file: 'src/features/guards/guarded-streamed-text.ts',
      text: 'return this.#screened?.blockedBy !== undefined',
      by: 'return false',
    },
    'src/features/guards/guarded-tap.test.ts',
    "(chat, block) is sent as the guard's rules leave it, however it is cut into events and bytes",
  ],
]
