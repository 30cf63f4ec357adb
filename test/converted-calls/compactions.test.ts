import { afterAll, beforeAll, expect, test } from 'vitest'
import { wholeChat } from '../fixtures/chat-behaviour.ts'
import { databaseOf } from '../fixtures/database.ts'
import { eventFrame, STOP_FRAME, wholeMessage } from '../fixtures/messages-behaviour.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { MODEL, fixtureOfBoth, sentTo } from '../conversion/fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await fixtureOfBoth()
})
afterAll(() => fixture?.close())

// Recorded from a provider: a conversation is read from the cache and summarized, and the summary is
// answered.
const TOP = {
  input_tokens: 180,
  output_tokens: 8,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: 0,
}
const COMPACTION = {
  type: 'compaction',
  input_tokens: 100,
  output_tokens: 83,
  cache_read_input_tokens: 55_096,
  cache_creation_input_tokens: 0,
}
const USAGE = { ...TOP, iterations: [COMPACTION, { type: 'message', ...TOP }] }
// One unit for each prompt token, four for each output token, a quarter for a cached one.
const QUOTA = 180 + 100 + 55_096 / 4 + (8 + 83) * 4

const { type: _, ...begun } = COMPACTION
const FRAMES = [
  eventFrame('message_start', {
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      usage: begun,
    },
  }),
  eventFrame('content_block_start', { index: 0, content_block: { type: 'compaction', content: null } }),
  eventFrame('content_block_delta', {
    index: 0,
    delta: { type: 'compaction_delta', content: 'They said hi.' },
  }),
  eventFrame('content_block_stop', { index: 0 }),
  eventFrame('content_block_start', { index: 1, content_block: { type: 'text', text: '' } }),
  eventFrame('content_block_delta', { index: 1, delta: { type: 'text_delta', text: 'Hello.' } }),
  eventFrame('content_block_stop', { index: 1 }),
  eventFrame('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: USAGE }),
  STOP_FRAME,
]

test.each([
  ['native, whole', '/v1/messages', false],
  ['native, streamed', '/v1/messages', true],
  ['converted, whole', '/v1/chat/completions', false],
  ['converted, streamed', '/v1/chat/completions', true],
])('the tokens for summarizing a conversation are charged: %s', async (mode, path, stream) => {
  const whole = wholeMessage([{ text: 'Hello.' }], { counts: USAGE })
  fixture.upstream.script(
    MODEL.messages,
    stream ? { kind: 'stream', ending: 'no done', frames: FRAMES } : whole,
  )
  const body = { model: MODEL.messages, max_tokens: 50, messages: [{ role: 'user', content: 'hi' }], stream }
  const shown = stream && mode.startsWith('converted') ? { stream_options: { include_usage: true } } : {}
  const answer = await fixture.chat('ann', { ...body, ...shown }, { path })
  expect(answer.status, answer.text).toBe(200)
  const row = databaseOf(fixture.gateway.dataDir).usageOf(String(answer.headers['x-request-id']))
  expect(row).toMatchObject({
    reason: 'complete',
    quota: QUOTA,
    input_tokens: 280,
    cache_read_tokens: 55_096,
    output_tokens: 91,
  })
  if (mode.startsWith('converted')) expect(answer.text).toContain(`"total_tokens":${280 + 55_096 + 91}`)
  else expect(answer.text).toContain(JSON.stringify(USAGE.iterations))
})

/** The messages that a chat channel gets for these of a messages client. */
async function asChat(messages: readonly object[]): Promise<unknown> {
  fixture.upstream.script(MODEL.chat, wholeChat({ text: 'Hello.' }))
  const body = { model: MODEL.chat, max_tokens: 50, system: 'Be brief.', messages }
  const answer = await fixture.chat('ann', body, { path: '/v1/messages' })
  expect([answer.status, answer.headers['x-gateway-dropped']]).toEqual([200, undefined])
  return sentTo(fixture, MODEL.chat)['messages']
}

test('the summary of a compacted conversation stands for what is before it at other providers too', async () => {
  const summary = { type: 'compaction', content: 'They said hi.' }
  const system = { role: 'system', content: 'Be brief.' }
  const said = { role: 'user', content: 'They said hi.' }
  const go = { role: 'user', content: 'go' }
  const hello = { type: 'text', text: 'Hello.' }
  const answered = { role: 'assistant', content: [summary, hello] }
  const answer = { role: 'assistant', content: 'Hello.' }
  expect(await asChat([{ role: 'user', content: 'hi' }, answered, go])).toEqual([system, said, answer, go])
  // Its client may leave out what is before it, and stop before the answer.
  expect(await asChat([answered, go])).toEqual([system, said, answer, go])
  expect(await asChat([{ role: 'assistant', content: [summary] }, go])).toEqual([system, said, go])
  const later = { role: 'assistant', content: [{ ...summary, content: 'They said go.' }, hello] }
  expect(await asChat([answered, go, later, go])).toEqual([
    system,
    { role: 'user', content: 'They said go.' },
    answer,
    go,
  ])
})

test('a call that a messages provider made by MCP is the call of a function and its result at other providers', async () => {
  const use = (id: string) => ({ type: 'mcp_tool_use', id, name: 'find', server_name: 's', input: { q: id } })
  const result = (id: string, content: unknown) => ({
    type: 'mcp_tool_result',
    tool_use_id: id,
    is_error: false,
    content,
  })
  const call = (id: string) => ({
    id,
    type: 'function',
    function: { name: 'find', arguments: JSON.stringify({ q: id }) },
  })
  const content = [
    { type: 'text', text: 'I look.' },
    use('m1'),
    use('m2'),
    result('m1', [{ type: 'text', text: 'one' }]),
    result('m2', 'two'),
    { type: 'text', text: 'Found.' },
  ]
  expect(
    await asChat([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content },
      { role: 'user', content: 'go' },
    ]),
  ).toEqual([
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'I look.', tool_calls: [call('m1'), call('m2')] },
    { role: 'tool', tool_call_id: 'm1', content: 'one' },
    { role: 'tool', tool_call_id: 'm2', content: 'two' },
    { role: 'assistant', content: 'Found.' },
    { role: 'user', content: 'go' },
  ])
})
