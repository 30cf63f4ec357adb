import { createOpenAI } from '@ai-sdk/openai'
import { generateText } from 'ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { DONE_FRAME, usageText } from '../fixtures/behaviour.ts'
import { streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import type { FullResponse } from '../fixtures/client.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { wholeMessage } from '../fixtures/messages-behaviour.ts'
import { patchedProgram } from '../fixtures/patched-copy.ts'
import { wholeResponse } from '../fixtures/responses-behaviour.ts'

const CALLS = [{ id: 'call_1', name: 'weather', input: '{"city":"Bern"}' }]
const tools = [{ type: 'function' as const, name: 'weather', parameters: { type: 'object' }, strict: false }]

let fixture: Fixture
let client: OpenAI
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    options: { keep_responses: '1h' },
    models: priced(['chat', 'messages', 'either', 'native']),
    channels: [
      channel('left', upstream.baseUrl('left'), { models: ['either'] }),
      channel('right', upstream.baseUrl('right'), { models: ['either'] }),
      channel('chat', upstream.baseUrl('chat')),
      channel('messages', upstream.baseUrl('messages'), { protocol: 'messages' }),
      channel('native', upstream.baseUrl('native'), { protocol: 'responses', system_prompt: 'Be kind.' }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')]), user(3, 'bob', [token('bob')])],
  }))
  client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
})
afterAll(() => fixture?.close())

const said = (text: string): ReturnType<typeof wholeChat> => wholeChat({ text, usage: usageText(10, 5) })

function messagesSent(lane = 'chat'): unknown {
  return JSON.parse(fixture.upstream.received(lane).at(-1)?.text ?? '{}').messages
}

const post = (fields: object, key = 'ann'): Promise<FullResponse> =>
  fixture.chat(key, { model: 'chat', input: 'hi', ...fields }, { path: '/v1/responses' })

describe('a converted response that is kept', () => {
  test('a response kept by the gateway can be continued: the upstream gets the whole conversation', async () => {
    fixture.upstream.script('chat', said('Hello.'))
    const first = await client.responses.create({ model: 'chat', input: 'hi', instructions: 'be short' })
    expect(first).toMatchObject({ store: true })
    fixture.upstream.script('chat', streamedChat({ calls: CALLS, usage: usageText(20, 5) }))
    const second = await client.responses
      .stream({ model: 'chat', input: 'weather?', previous_response_id: first.id, tools })
      .finalResponse()
    expect(second.previous_response_id).toBe(first.id)
    expect(messagesSent()).toEqual([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'Hello.' },
      { role: 'user', content: 'weather?' },
    ])
    fixture.upstream.script('chat', said('Rain.'))
    const third = await client.responses.create({
      model: 'chat',
      input: [{ type: 'function_call_output', call_id: 'call_1', output: 'rain' }],
      previous_response_id: second.id,
    })
    expect(third.output_text).toBe('Rain.')
    expect(messagesSent()).toMatchObject([
      { content: 'hi' },
      { content: 'Hello.' },
      { content: 'weather?' },
      { role: 'assistant', tool_calls: [{ id: 'call_1' }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'rain' },
    ])
    const items = await client.responses.inputItems.list(third.id, { order: 'asc', limit: 3 })
    expect(items.data.map(({ type }) => type)).toEqual(['message', 'message', 'message'])
    expect(items.has_more).toBe(true)
    const all = []
    for await (const item of client.responses.inputItems.list(third.id, { limit: 2 })) all.push(item)
    expect(all.map(({ type }) => type)).toEqual([
      'function_call_output',
      'function_call',
      'message',
      'message',
      'message',
    ])
    expect(new Set(all.map(({ id }) => id)).size).toBe(5)
  })

  test('the tokens of a kept response are counted by the gateway, with everything that it continues', async () => {
    fixture.upstream.script('chat', said('whale '.repeat(1_000)))
    const first = await client.responses.create({ model: 'chat', input: 'word '.repeat(1_000) })
    const asked = fixture.upstream.received('chat').length
    const count = (fields: object): Promise<{ input_tokens: number }> =>
      client.responses.inputTokens.count({ model: 'chat', input: 'and?', ...fields })
    const alone = (await count({})).input_tokens
    const whole = (await count({ previous_response_id: first.id })).input_tokens
    expect(whole - alone).toBeGreaterThan(2_000)
    expect(whole - alone).toBeLessThan(3_500)
    expect(fixture.upstream.received('chat')).toHaveLength(asked)
    const elsewhere = count({ previous_response_id: first.id, conversation: 'conv_1' })
    await expect(elsewhere).rejects.toMatchObject({ status: 400 })
  })

  test('items of a kept response may be referred to by its user only', async () => {
    const calls = [{ id: 'call_1', name: 'shout', input: '{"input":"HEY"}' }]
    const custom = [{ type: 'custom' as const, name: 'shout' }]
    fixture.upstream.script('chat', wholeChat({ text: 'Now.', calls, usage: usageText(10, 5) }))
    const made = await client.responses.create({ model: 'chat', input: 'shout', tools: custom })
    expect(made.output.map(({ type }) => type)).toEqual(['message', 'custom_tool_call'])
    const items = (...references: (string | undefined)[]): object[] => [
      { role: 'user', content: 'shout' },
      ...references.map((id) => ({ type: 'item_reference', id })),
    ]
    const ids = made.output.map(({ id }) => id)
    const output = { type: 'custom_tool_call_output', call_id: 'call_1', output: 'ok' }
    fixture.upstream.script('chat', said('Done.'))
    const answer = await post({ input: [...items(...ids), output], tools: custom })
    expect(answer.headers['x-gateway-dropped']).toBeUndefined()
    expect(messagesSent()).toMatchObject([
      { role: 'user', content: 'shout' },
      { role: 'assistant', content: 'Now.', tool_calls: [{ id: 'call_1' }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'ok' },
    ])
    const next = await post({ input: 'and?', previous_response_id: answer.json().id })
    expect(next.status).toBe(200)
    expect(messagesSent()).toMatchObject([{}, { content: 'Now.' }, {}, { content: 'Done.' }, {}])
    const [text = ''] = ids
    for (const [id, key] of [
      [text, 'bob'],
      [text.replace(/...$/, '009'), 'ann'],
      ['msg_1', 'ann'],
    ] as const) {
      const without = await post({ input: items(id) }, key)
      expect(without.headers['x-gateway-dropped']).toBe('input.item_reference')
      expect(messagesSent()).toEqual([{ role: 'user', content: 'shout' }])
    }
  })

  test.each([false, true])(
    'the usage row of a call notes arguments that were cut off, also if its response is stored (streamed: %s)',
    async (stream) => {
      const calls = [{ id: 'call_1', name: 'weather', input: '{"city":"B' }]
      const answered = { calls, usage: usageText(10, 5) }
      fixture.upstream.script('chat', stream ? streamedChat(answered) : wholeChat(answered))
      const { status, headers } = await post({ tools, stream })
      expect(status).toBe(200)
      const account = { id: 1, accessToken: ROOT.access_token }
      const row = await manage(
        fixture.gateway.url,
        account,
        `GET /api/log/${String(headers['x-request-id'])}`,
      )
      expect(row.data).toMatchObject({ note: 'cut_arguments' })
    },
  )

  test('the AI SDK can refer to items of a kept response, and the upstream gets the items themselves', async () => {
    const model = createOpenAI({ baseURL: `${fixture.gateway.url}/v1`, apiKey: 'sk-ann' }).responses('chat')
    fixture.upstream.script('chat', said('A whale told me.'))
    const prompt = [{ role: 'user' as const, content: 'who told you?' }]
    const { response } = await generateText({ model, messages: prompt, maxRetries: 0 })
    const again = [...prompt, ...response.messages, { role: 'user' as const, content: 'sure?' }]
    await generateText({ model, messages: again, maxRetries: 0 })
    expect(messagesSent()).toEqual([
      { role: 'user', content: 'who told you?' },
      { role: 'assistant', content: 'A whale told me.' },
      { role: 'user', content: 'sure?' },
    ])
  })

  test('a kept response is unchanged when it is retrieved, and gone when it is deleted', async () => {
    fixture.upstream.script('messages', wholeMessage([{ text: 'Hello.' }], {}))
    const made = await client.responses.create({ model: 'messages', input: 'hi' })
    const { output_text: _, ...again } = await client.responses.retrieve(made.id)
    expect(made).toMatchObject(again)
    await expect(client.responses.cancel(made.id)).rejects.toMatchObject({ status: 400 })
    await client.responses.delete(made.id)
    await expect(client.responses.retrieve(made.id)).rejects.toMatchObject({ status: 404 })
    await expect(client.responses.inputItems.list(made.id)).rejects.toMatchObject({ status: 404 })
    const next = client.responses.create({ model: 'messages', input: 'go on', previous_response_id: made.id })
    await expect(next).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found' })
  })

  test('a kept conversation stays at its channel, and goes on at another one, as a whole, if that one fails', async () => {
    for (const lane of ['left', 'right']) fixture.upstream.script(lane, said('Hello.'))
    const turn = async (previous?: string): Promise<string> => {
      const made = await post({ model: 'either', previous_response_id: previous })
      expect(made.status).toBe(200)
      return made.json().id
    }
    let last = await turn()
    const [own = '', other = ''] =
      fixture.upstream.received('left').length > 0 ? ['left', 'right'] : ['right', 'left']
    for (let next = 0; next < 6; next += 1) last = await turn(last)
    expect(fixture.upstream.received(own)).toHaveLength(7)
    fixture.upstream.script(own, { kind: 'status', status: 503, body: '{}' })
    await turn(last)
    expect(messagesSent(other)).toHaveLength(15)
  })

  test('a kept response whose beginning was deleted cannot be continued', async () => {
    fixture.upstream.script('chat', said('Hello.'))
    const first = await client.responses.create({ model: 'chat', input: 'hi' })
    const second = await client.responses.create({
      model: 'chat',
      input: 'and?',
      previous_response_id: first.id,
    })
    await client.responses.delete(first.id)
    const next = client.responses.create({ model: 'chat', input: 'go on', previous_response_id: second.id })
    await expect(next).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found' })
  })

  test('a kept response can be neither continued nor retrieved by another user', async () => {
    fixture.upstream.script('chat', said('Hello.'))
    const { id } = await client.responses.create({ model: 'chat', input: 'hi' })
    const answer = await post({ previous_response_id: id }, 'bob')
    expect(answer.status).toBe(400)
    const path = `/v1/responses/${id}`
    expect((await fixture.chat('bob', undefined, { path, method: 'GET' })).status).toBe(404)
  })

  test('a response with store: false is not kept by the gateway', async () => {
    fixture.upstream.script('chat', said('Hello.'))
    const made = await client.responses.create({ model: 'chat', input: 'hi', store: false })
    const { id } = made
    expect(made).toMatchObject({ store: false })
    await expect(client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
    const answer = await post({ previous_response_id: id })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain('store: false')
  })

  test('a background response is refused where the gateway would have to keep it', async () => {
    const answer = await post({ background: true })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain(`Invalid 'background'`)
  })

  test('a kept response is encrypted on the disk, and survives a kill', async () => {
    fixture.upstream.script('chat', said('A whale told me.'))
    const { id } = await client.responses.create({ model: 'chat', input: 'who told you' })
    await fixture.gateway.kill()
    const { readFileSync, readdirSync } = await import('node:fs')
    for (const file of readdirSync(fixture.gateway.dataDir).filter((name) => name.includes('.db'))) {
      const bytes = readFileSync(`${fixture.gateway.dataDir}/${file}`)
      expect(bytes.includes('whale')).toBe(false)
      expect(bytes.includes('who told you')).toBe(false)
    }
    await fixture.gateway.restart()
    const later = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
    expect(await later.responses.retrieve(id)).toMatchObject({ id, output_text: 'A whale told me.' })
  })
})

describe('a kept response with more JSON values than a request may have', () => {
  /** Twenty candidates for one token, with 201,000 values together. */
  const logprobs = {
    content: [
      {
        token: 'Hello.',
        logprob: -1,
        bytes: [72],
        top_logprobs: Array.from({ length: 20 }, (_, at) => ({
          token: `t${at}`,
          logprob: -2,
          bytes: Array.from({ length: 10_050 }, () => 7),
        })),
      },
    ],
  }
  const large = (stream: boolean): void => {
    const choice = { index: 0, logprobs, finish_reason: 'stop' }
    const head = { id: 'chatcmpl-1', created: 1_700_000_000, model: 'upstream-model' }
    const content = { role: 'assistant', content: 'Hello.' }
    const usage = JSON.parse(usageText(10, 5))
    const whole = { ...head, object: 'chat.completion', choices: [{ ...choice, message: content }], usage }
    const chunk = {
      ...head,
      object: 'chat.completion.chunk',
      choices: [{ ...choice, delta: content }],
      usage,
    }
    fixture.upstream.script(
      'chat',
      stream
        ? { kind: 'stream', frames: [`data: ${JSON.stringify(chunk)}\n\n`, DONE_FRAME], ending: 'no done' }
        : { kind: 'whole', body: JSON.stringify(whole) },
    )
  }
  /** The ids of such a response and of its only item. */
  async function made(stream: boolean): Promise<{ id: string; item: string | undefined }> {
    large(stream)
    const request = {
      model: 'chat',
      input: 'hi',
      include: ['message.output_text.logprobs' as const],
      top_logprobs: 20,
    }
    const { id, output } = stream
      ? await client.responses.stream(request).finalResponse()
      : await client.responses.create(request)
    expect(output).toMatchObject([{ content: [{ text: 'Hello.', logprobs: logprobs.content }] }])
    return { id, item: output[0]?.id }
  }

  test.each([false, true])('is delivered, and can be continued (streamed: %s)', async (stream) => {
    const { id } = await made(stream)
    fixture.upstream.script('chat', said('Well.'))
    const next = await client.responses.create({ model: 'chat', input: 'and?', previous_response_id: id })
    expect(next.output_text).toBe('Well.')
    expect(messagesSent()).toEqual([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'Hello.' },
      { role: 'user', content: 'and?' },
    ])
  })

  test('can be referred to, also for a provider of this protocol', async () => {
    const { item } = await made(false)
    fixture.upstream.script('native', wholeResponse({ text: 'Well.' }))
    const answer = await post({ model: 'native', input: [{ type: 'item_reference', id: item }] })
    expect(answer.status, answer.text).toBe(200)
    const { input } = JSON.parse(fixture.upstream.received('native').at(-1)?.text ?? '{}')
    expect(input).toMatchObject([{ type: 'message', content: [{ logprobs: logprobs.content }] }])
  })
})

test('a stored response that a call continues or refers to counts, until the call ends, in the memory limit for request bodies', async () => {
  const copy = await patchedProgram([
    { file: 'src/limits/request-memory.ts', text: 'SHARED_BYTES = 192 * MIB', by: 'SHARED_BYTES = 2 * MIB' },
  ])
  onTestFinished(() => copy.discard())
  const small = await startGateway({
    root: copy.root,
    config: {
      options: { keep_responses: '1h', body_limit: '512KiB' },
      models: priced(['chat']),
      channels: [channel('chat', fixture.upstream.baseUrl('chat'))],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
  onTestFinished(() => small.discard())
  const ann = new OpenAI({ apiKey: 'sk-ann', baseURL: `${small.url}/v1`, maxRetries: 0 })
  fixture.upstream.script('chat', said('Hello.'))
  const { id, output } = await ann.responses.create({ model: 'chat', input: 'word '.repeat(80_000) })
  const refer = (times: number): Promise<unknown> => {
    const item = { type: 'item_reference' as const, id: output[0]?.id ?? '' }
    return ann.responses.create({ model: 'chat', input: Array.from({ length: times }, () => item) })
  }
  const next = (): Promise<unknown> =>
    ann.responses.create({ model: 'chat', input: 'and?', previous_response_id: id })
  /** Makes a call again that was refused because the gateway was halted while it waited for memory of earlier calls. */
  const admitted = async (call: () => Promise<unknown>): Promise<unknown> => {
    for (;;) {
      try {
        return await call()
      } catch (error) {
        if ((error as { code?: unknown }).code !== 'too_many_reads') throw error
      }
    }
  }
  const answered = Promise.withResolvers<void>()
  onTestFinished(() => answered.resolve())
  fixture.upstream.script('chat', { ...said('Hello.'), after: answered.promise })
  // One client gets 7 of the 8 parts of 2 MiB.
  const before = fixture.upstream.received('chat').length
  const calls = Array.from({ length: 4 }, () => admitted(next))
  await vi.waitFor(() => expect(fixture.upstream.received('chat')).toHaveLength(before + 4), 60_000)
  const further = [next(), refer(1_500)].map((call) =>
    expect(call).rejects.toMatchObject({ status: 429, code: 'too_many_reads' }),
  )
  await Promise.all(further)
  answered.resolve()
  await Promise.all(calls)
  await Promise.all([admitted(next), admitted(() => refer(1_500))])
  await expect(refer(4_000)).rejects.toMatchObject({ status: 413 })
})

describe('options.keep_responses', () => {
  let ann: OpenAI
  const configured = (options: Record<string, unknown>): Configuration => ({
    options,
    models: priced(['chat']),
    channels: [channel('chat', fixture.upstream.baseUrl('chat'))],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  })
  beforeAll(() => {
    ann = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
  })

  test('options.keep_responses deletes a kept response when its time is over', async () => {
    await fixture.gateway.apply(configured({ keep_responses: '300ms' }))
    fixture.upstream.script('chat', said('Hello.'))
    const { id } = await ann.responses.create({ model: 'chat', input: 'hi' })
    await vi.waitFor(() => expect(ann.responses.retrieve(id)).rejects.toMatchObject({ status: 404 }), {
      timeout: 60_000,
      interval: 50,
    })
  })

  test('with options.keep_responses of 0 no response is kept, and the refusal to continue one names the option', async () => {
    await fixture.gateway.apply(configured({}))
    fixture.upstream.script('chat', said('Hello.'))
    const { id } = await ann.responses.create({ model: 'chat', input: 'hi' })
    await expect(ann.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
    await expect(
      ann.responses.create({ model: 'chat', input: 'hi', previous_response_id: id }),
    ).rejects.toThrow(/options\.keep_responses/)
  })
})
