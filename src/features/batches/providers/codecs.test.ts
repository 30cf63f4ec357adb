import { expect, test } from 'vitest'
import { channelOf } from '../../../../test/samples/channel.ts'
import { linesOf } from '../piece-reader.ts'
import { anthropic } from './anthropic.ts'
import { azureBatches } from './azure.ts'
import { type BatchConnection, ProviderRefused } from './connection.ts'
import { gemini } from './gemini.ts'
import { openai } from './openai.ts'
import type { BatchApiOfProvider } from './provider-batches.ts'

const BODY = Buffer.from('{"model":"m",\r\n "messages":[]}')
const ON_ONE_LINE = '{"model":"m",  "messages":[]}'

/** The line of a request as the provider gets it. */
function written(api: BatchApiOfProvider, fields: object, path: string): string {
  return api.written(channelOf(fields), 'id-1', path, BODY).toString()
}

/** What is read of a content: the id and the answer of each line, with bodies as texts. */
async function resultsIn(api: BatchApiOfProvider, content: string): Promise<unknown[]> {
  // The bytes arrive in pieces that end anywhere.
  async function* read(): AsyncGenerator<Buffer> {
    const bytes = Buffer.from(content)
    for (let at = 0; at < bytes.length; at += 50) yield bytes.subarray(at, at + 50)
  }
  async function* lines(_: string, maxBytes: number): AsyncGenerator<Buffer | undefined> {
    for await (const { bytes: line } of linesOf(read(), maxBytes)) yield line
  }
  const at = { lines, below: () => at } as unknown as BatchConnection
  const found: unknown[] = []
  for await (const result of api.results(at, 'files/out')) {
    if (!result) found.push(undefined)
    else if (typeof result.answer === 'string') found.push([result.id, result.answer])
    else found.push([result.id, result.answer.status, result.answer.body.toString()])
  }
  return found
}

test.each([
  [
    'OpenAI',
    openai,
    {},
    '/chat/completions',
    `{"custom_id":"id-1","method":"POST","url":"/v1/chat/completions","body":${ON_ONE_LINE}}\n`,
  ],
  [
    'Azure with an api_version',
    azureBatches,
    { provider: 'azure', api_version: '2024-10-21' },
    '/chat/completions',
    `{"custom_id":"id-1","method":"POST","url":"/chat/completions","body":${ON_ONE_LINE}}\n`,
  ],
  [
    'Azure without one',
    azureBatches,
    { provider: 'azure', api_version: null },
    '/chat/completions',
    `{"custom_id":"id-1","method":"POST","url":"/v1/chat/completions","body":${ON_ONE_LINE}}\n`,
  ],
  ['Anthropic', anthropic, {}, '/messages', `,{"custom_id":"id-1","params":${ON_ONE_LINE}}\n`],
  ['Gemini', gemini, {}, '/models/m:generateContent', `{"key":"id-1","request":${ON_ONE_LINE}}\n`],
] as const)('a request is one line in the form of %s', (_, api, fields, path, line) => {
  expect(written(api, fields, path)).toBe(line)
})

const COMPLETION =
  '{"id":"chatcmpl-123","object":"chat.completion","created":1711652795,"model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"Hello."},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":22,"completion_tokens":2,"total_tokens":24}}'
const MESSAGE =
  '{"id":"msg_014VwiXbi91y3JMjcpyGBHX5","type":"message","role":"assistant","model":"claude-opus-4-1","content":[{"type":"text","text":"Hello again!"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":11,"output_tokens":36}}'
const GENERATED =
  '{"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":1,"totalTokenCount":4}}'
const TOO_LATE = 'This request could not be executed before the completion window expired.'

test('results of OpenAI are read as its documentation has them', async () => {
  const content = [
    `{"id":"batch_req_123","custom_id":"request-2","response":{"status_code":200,"request_id":"req_123","body":${COMPLETION}},"error":null}`,
    '{"id":"batch_req_4","custom_id":"request-1","response":{"status_code":400,"request_id":"req_4","body":{"error":{"message":"no"}}},"error":null}',
    `{"id":"batch_req_123","custom_id":"request-3","response":null,"error":{"code":"batch_expired","message":"${TOO_LATE}"}}`,
    '{"id":"batch_req_5","custom_id":"request-4","response":null,"error":{"code":"batch_cancelled","message":"x"}}',
    '{"id":"batch_req_6","custom_id":"request-5","response":null,"error":{"code":"other","message":"x"}}',
  ].join('\n')
  expect(await resultsIn(openai, content)).toEqual([
    ['request-2', 200, COMPLETION],
    ['request-1', 400, '{"error":{"message":"no"}}'],
    ['request-3', 'expired'],
    ['request-4', 'cancelled'],
    ['request-5', 500, '{"error":{"code":"other","message":"x"}}'],
  ])
})

test('results of Anthropic are read as its documentation has them', async () => {
  const error = '{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens"}}'
  const content = [
    `{"custom_id":"second","result":{"type":"succeeded","message":${MESSAGE}}}`,
    `{"custom_id":"first","result":{"type":"errored","error":${error}}}`,
    '{"custom_id":"third","result":{"type":"expired"}}',
    '{"custom_id":"fourth","result":{"type":"canceled"}}',
    '{"custom_id":"fifth","result":{"type":"of tomorrow"}}',
    '{"custom_id":"sixth","result":{"type":"errored","error":{"error":{"type":"constructor"}}}}',
  ].join('\n')
  expect(await resultsIn(anthropic, content)).toEqual([
    ['second', 200, MESSAGE],
    ['first', 400, error],
    ['third', 'expired'],
    ['fourth', 'cancelled'],
    undefined,
    ['sixth', 500, '{"error":{"type":"constructor"}}'],
  ])
})

test('results of Gemini are read as its documentation has them', async () => {
  const content = [
    `{"key":"request-1","response":${GENERATED}}`,
    '{"key":"request-2","error":{"code":3,"message":"Invalid argument"}}',
    '{"key":"request-3","error":{"code":4,"message":"Deadline exceeded"}}',
    '{"key":"request-4","error":{"code":1,"message":"Cancelled"}}',
    '{"key":"request-5"}',
  ].join('\n')
  expect(await resultsIn(gemini, content)).toEqual([
    ['request-1', 200, GENERATED],
    ['request-2', 400, '{"error":{"code":3,"message":"Invalid argument"}}'],
    ['request-3', 'expired'],
    ['request-4', 'cancelled'],
    undefined,
  ])
})

test.each([
  ['seconds', '7', 7_000],
  ['a date, at most an hour ahead', 'Wed, 21 Oct 2099 07:28:00 GMT', 3_600_000],
  ['a date that is over', 'Wed, 21 Oct 2015 07:28:00 GMT', undefined],
  ['anything else', 'soon', undefined],
])('a provider that states %s is asked again after it', (_, header, ms) => {
  expect(new ProviderRefused(429, Buffer.alloc(0), header).retryAfterMs).toBe(ms)
})

test.each([
  ['OpenAI', openai, (status: string) => ({ status })],
  ['Gemini', gemini, (state: string) => ({ metadata: { state: `BATCH_STATE_${state}` } })],
] as const)('a batch of %s in a state that is not known has not ended', async (_, api, batch) => {
  for (const state of ['constructor', 'toString', '__proto__', 'of tomorrow']) {
    const at = { get: () => Promise.resolve(batch(state)) } as unknown as BatchConnection
    expect(await api.look(at, 'batches/1')).toMatchObject({ ended: undefined })
  }
})
