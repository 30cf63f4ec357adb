import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { HoldOpening, SettledCall } from '../../domain/records/usage.ts'
import { packBatch, unpackBatch } from './packed-batch.ts'

const whole = fc.nat()
const text = fc.string()
const hold: fc.Arbitrary<HoldOpening> = fc.record({
  id: text,
  owner: text,
  token_id: whole,
  user_id: whole,
  amount: whole,
  prompt_amount: whole,
  started_ms: whole,
  model: text,
  channel: text,
  group: text,
  stream: fc.boolean(),
  price_version: text,
  kind: fc.constantFrom('chat', 'embeddings', ''),
  budgets: text,
  requested_model: text,
  session: text,
})
const call: fc.Arbitrary<SettledCall> = fc.record({
  id: text,
  token_id: whole,
  user_id: whole,
  model: text,
  group: text,
  stream: fc.boolean(),
  price_version: text,
  kind: fc.constantFrom('chat', 'embeddings', ''),
  budgets: text,
  requested_model: text,
  session: text,
  duration_ms: whole,
  quota: whole,
  reason: fc.constantFrom('complete', 'estimated', 'client_gone', 'cut', 'failed', 'crash'),
  delivered: fc.boolean(),
  ended_ms: whole,
  upstream_model: text,
  channel: text,
  first_byte_ms: fc.option(whole),
  usage: fc.record({
    input: whole,
    cacheRead: whole,
    cacheWrite5m: whole,
    cacheWrite1h: whole,
    cacheWrite30m: whole,
    cacheWrite12h: whole,
    output: whole,
    reasoning: whole,
    webSearches: whole,
    audioInput: whole,
    imageInput: whole,
    audioOutput: whole,
    imageOutput: whole,
    seconds: whole,
    characters: whole,
    images: whole,
    searchUnits: whole,
  }),
})
const provenance = fc.record({
  keyTag: text,
  reasoning: fc.array(text, { maxLength: 3 }),
  response: fc.option(fc.record({ id: text, upstreamId: text, tokens: whole, previousId: fc.option(text) })),
})
const operation = fc.oneof(
  fc.tuple(fc.constant('hold'), hold),
  fc.tuple(fc.constant('settle'), call),
  fc.tuple(
    fc.constant('settle'),
    fc.tuple(call, provenance).map(([plain, made]) => ({ ...plain, provenance: made })),
  ),
  fc.tuple(
    fc.constantFrom('growHold', 'countUsers'),
    fc.option(fc.record({ id: text, by: whole }), { nil: undefined }),
  ),
)

test('a batch of database writes is unchanged after it was sent to the database thread', () => {
  fc.assert(
    fc.property(fc.array(operation), (operations) => {
      expect(unpackBatch(structuredClone(packBatch(operations)) as unknown[])).toEqual(operations)
    }),
  )
})
