import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BatchClient, chatLine } from '../fixtures/batches.ts'
import { contentOf } from '../fixtures/content.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

/** A request in a line as the provider got it. */
interface SentLine {
  readonly custom_id: string
  readonly body: {
    readonly messages: readonly { readonly content: string }[]
    readonly [name: string]: unknown
  }
}

/** A provider whose batches are over at once. Each answer repeats the last message. Objects name another address. */
class EchoProvider {
  readonly files: string[] = []
  readonly made: Record<string, unknown>[] = []
  /** Set when it answers nothing any more. */
  isSilent = false
  readonly #server: Server = createServer((request, response) => {
    void text(request).then((body) => {
      const answer = this.#answer(`${request.method} ${request.url}`, body)
      if (this.isSilent) return
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(typeof answer === 'string' ? answer : JSON.stringify(answer))
    })
  })

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  get lines(): SentLine[] {
    const last = this.files.at(-1) ?? ''
    return last
      .split('\r\n')
      .filter((part) => part.startsWith('{'))
      .flatMap((part) => part.trim().split('\n'))
      .map((line) => JSON.parse(line) as SentLine)
  }

  #answer(asked: string, body: string): object | string {
    if (asked === 'POST /v1/files') {
      this.files.push(body)
      return { id: 'file-in' }
    }
    if (asked.startsWith('GET /v1/batches?')) return { data: [], has_more: false }
    if (asked === 'POST /v1/batches') this.made.push(JSON.parse(body) as Record<string, unknown>)
    if (asked.endsWith('/content')) return this.lines.map(resultOf).join('\n')
    return { id: 'batch-there', status: 'completed', output_file_id: 'file-out', url: 'http://10.0.0.1/' }
  }
}

/** A line of results, with a number that a JavaScript program would change. */
function resultOf({ custom_id, body: { messages } }: SentLine): string {
  const message = { role: 'assistant', content: messages.at(-1)?.content }
  const usage = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 }
  const body = {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'there',
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage,
    service_tier: 'default',
    large: 0,
  }
  const result = { custom_id, response: { status_code: 200, body }, error: null }
  return JSON.stringify(result).replace('"large":0', '"large":12345678901234567890')
}

const CYD = { id: 4, accessToken: 'the-access-token-of-cyd' }

const provider = new EchoProvider()
let gateway: RunningGateway
beforeAll(async () => {
  const url = await provider.listen()
  gateway = await startGateway({
    config: {
      options: { batches: { poll: '20ms' } },
      content_log: { what: 'none', keep: '1d', readers: 100 },
      models: { m: { price: { input: '4', output: '16', service: { batch: '0.5' } } } },
      channels: [
        channel('echo', url, {
          batches: true,
          models: ['m'],
          model_mapping: { m: 'there' },
          service_tier: 'flex',
          override: { set: { temperature: 0.25 } },
        }),
      ],
      guards: [{ name: 'mask', do: 'replace', match: { pii: ['email'] }, tokens: ['token-bob'] }],
      users: [
        ROOT,
        user(2, 'ann', [token('ann')]),
        user(3, 'bob', [token('bob')]),
        user(CYD.id, 'cyd', [token('cyd')], {
          content_log: { what: 'full' },
          access_token: CYD.accessToken,
        }),
      ],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  provider.close()
})

const clientOf = (key: string): BatchClient => new BatchClient(gateway.url, key)
const saying = (customId: string, content: string, fields = {}): object =>
  chatLine(customId, 'm', { messages: [{ role: 'user', content }], ...fields })

describe('docs/batches.md: Batches of providers', () => {
  test('the provider gets the body of a call on the channel, and neither ids nor metadata of the client', async () => {
    const ann = clientOf('ann')
    const lines = [saying('secret-id', 'hello', { service_tier: 'priority' })]
    const { id } = await ann.make(lines, { metadata: { note: 'secret-note' } })
    const batch = await ann.ended(id)
    expect(batch.request_counts).toEqual({ total: 1, completed: 1, failed: 0 })
    const [line] = provider.lines
    expect(line?.body).toEqual({
      model: 'there',
      messages: [{ role: 'user', content: 'hello' }],
      max_tokens: 100,
      temperature: 0.25,
    })
    expect(provider.files.join() + JSON.stringify(provider.made)).not.toContain('secret')
    const [result] = await ann.lines(batch.output_file_id)
    expect((result as unknown as Record<string, unknown>)['x_gateway_dropped']).toContain('service_tier')
    const [row] = databaseOf(gateway.dataDir).usage()
    // 7 and 2 tokens at half of 2 and 8 quota units, whatever tier the answer states.
    expect([row?.quota, (row as unknown as Record<string, unknown>)['service_tier']]).toEqual([15, 'batch'])
  })

  test('the bytes of an answer in the protocol of the client are not changed', async () => {
    const ann = clientOf('ann')
    const batch = await ann.ended((await ann.make([saying('a', 'hello')], { metadata: {} })).id)
    const { text: content } = await ann.ask(`/v1/files/${batch.output_file_id}/content`)
    expect(content).toContain('"large":12345678901234567890')
  })

  test('the content log has what the provider got and answered for a line', async () => {
    const cyd = clientOf('cyd')
    const batch = await cyd.ended(
      (await cyd.make([saying('a', 'hello', { service_tier: 'priority' })], { metadata: {} })).id,
    )
    const [line] = await cyd.lines(batch.output_file_id)
    const { parts } = await contentOf(gateway.url, CYD, line?.response?.request_id ?? '')
    const sent = JSON.parse(parts.request_sent?.text ?? '') as object
    expect(sent).toEqual(provider.lines[0]?.body)
    expect(sent).toMatchObject({ model: 'there', temperature: 0.25 })
    expect(sent).not.toHaveProperty('service_tier')
    expect(parts.request_received?.text).toContain('"service_tier":"priority"')
    expect(JSON.parse(parts.answer_received?.text ?? '')).toMatchObject({ model: 'there' })
  })

  test('replaced values are not sent, and are in the answer again', async () => {
    const bob = clientOf('bob')
    const batch = await bob.ended(
      (await bob.make([saying('a', 'Write to jo@example.com')], { metadata: {} })).id,
    )
    expect(provider.files.at(-1)).not.toContain('jo@example.com')
    expect(provider.files.at(-1)).toMatch(/\[\[EMAIL_[0-9a-f]{8}\]\]/)
    const [line] = await bob.lines(batch.output_file_id)
    expect(JSON.stringify(line?.response?.body)).toContain('Write to jo@example.com')
    const row = databaseOf(gateway.dataDir)
      .usage()
      .find(({ user_id: userId }) => userId === 3)
    expect((row as unknown as Record<string, unknown>)['guards']).toBe('mask=redacted;count=1')
  })

  test('a line that has more JSON values than a body of a client, because it was converted, is sent', async () => {
    const ann = clientOf('ann')
    // Nine values each, of which fourteen are made.
    const input = Array.from({ length: 20_000 }, (_, at) => [
      { type: 'function_call', call_id: `c${at}`, name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: `c${at}`, output: 'done' },
    ]).flat()
    const body = { model: 'm', input, max_output_tokens: 100, service_tier: 'priority' }
    const line = { custom_id: 'a', method: 'POST', url: '/v1/responses', body }
    const made = await ann.make([line], { endpoint: '/v1/responses', metadata: {} })
    const batch = await ann.ended(made.id)
    expect(batch.request_counts).toEqual({ total: 1, completed: 1, failed: 0 })
    expect(provider.lines[0]?.body.messages).toHaveLength(40_000)
    expect(provider.lines[0]?.body).not.toHaveProperty('service_tier')
  })

  test('a gateway stops while a provider does not answer, and the batch goes on after its start', async () => {
    const ann = clientOf('ann')
    const uploads = provider.files.length
    provider.isSilent = true
    const { id } = await ann.make([saying('a', 'hello')], { metadata: {} })
    await expect.poll(() => provider.files.length).toBe(uploads + 1)
    expect(await gateway.stop()).toBe(0)
    provider.isSilent = false
    await gateway.restart()
    const batch = await clientOf('ann').ended(id)
    expect(batch.request_counts).toEqual({ total: 1, completed: 1, failed: 0 })
  })
})
