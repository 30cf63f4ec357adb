import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { BatchClient, type BatchBody, chatLine } from '../fixtures/batches.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const MIB = 1_048_576

type Reply = (response: ServerResponse, ids: readonly string[], number: number) => void

/** A provider each of whose steps can be answered in any way. `number` counts the requests of a step from 0. */
class HostileProvider {
  /** Ids of the lines of the last upload. */
  ids: string[] = []
  uploads: string[][] = []
  names: string[] = []
  asked: string[] = []
  lists: string[] = []
  replies: Readonly<Record<string, Reply>> = {}
  readonly #server: Server = createServer((request, response) => {
    void text(request).then((body) => {
      const step = stepOf(request.method ?? '', request.url ?? '')
      const number = this.count(step)
      this.asked.push(step)
      if (step === 'list') this.lists.push(request.url ?? '')
      if (step === 'upload') this.ids = [...body.matchAll(/"custom_id":"([^"]+)"/g)].map(([, id = '']) => id)
      if (step === 'upload') this.uploads.push(this.ids)
      if (step === 'create') this.names.push(String(JSON.parse(body).metadata.sluice_batch))
      const reply = this.replies[step]
      if (reply) return reply(response, this.ids, number)
      if (step === 'upload') return send(response, { id: 'file-in' })
      if (step === 'list') return send(response, { data: [], has_more: false })
      if (step === 'content') return response.end(this.ids.map((id) => resultOf(id)).join(''))
      send(response, { id: 'batch-there', status: 'completed', output_file_id: 'file-out' })
    })
  })

  count(step: string): number {
    return this.asked.filter((one) => one === step).length
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

function stepOf(method: string, url: string): string {
  if (url.startsWith('/trap')) return 'trap'
  if (url === '/v1/files') return 'upload'
  if (url.endsWith('/content')) return 'content'
  if (url.endsWith('/cancel')) return 'cancel'
  if (method === 'DELETE') return 'delete'
  if (url.startsWith('/v1/batches?')) return 'list'
  return method === 'POST' ? 'create' : 'get'
}

function send(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

const USAGE = '{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}'

/** A line of results; `usage` and `status` are texts in it. */
function resultOf(id: string, { usage = USAGE, status = '200' } = {}): string {
  const choices = '[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]'
  const body = `{"id":"c","object":"chat.completion","created":1,"model":"there","choices":${choices},"usage":${usage}}`
  return `{"custom_id":"${id}","response":{"status_code":${status},"body":${body}},"error":null}\n`
}

const provider = new HostileProvider()
let gateway: RunningGateway
beforeAll(async () => {
  const url = await provider.listen()
  gateway = await startGateway({
    config: {
      options: { batches: { poll: '20ms', poll_most: '50ms' } },
      rate_limits: { relay: { requests: 0 } },
      models: { m: { price: { input: '4', output: '16', service: { batch: '0.5' } } } },
      channels: [
        channel('hostile', `${url}/v1`, { batches: true, models: ['m'], model_mapping: { m: 'there' } }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
})
afterAll(async () => {
  await gateway?.discard()
  provider.close()
})
beforeEach(() => {
  provider.replies = {}
  provider.asked = []
  provider.lists = []
  provider.names = []
})

const ann = (): BatchClient => new BatchClient(gateway.url, 'ann')
const made = (names: readonly string[]): Promise<BatchBody> =>
  ann().make(
    names.map((name) => chatLine(name, 'm')),
    { metadata: {} },
  )

/** Makes a batch of these lines and waits for its end; resolves to how each line ended, and what it cost. */
async function ended(...names: string[]): Promise<{
  readonly batch: BatchBody
  readonly lines: Readonly<Record<string, unknown>>
  readonly quotas: Readonly<Record<string, number>>
}> {
  const batch = await ann().ended((await made(names)).id)
  const lines = [...(await ann().lines(batch.output_file_id)), ...(await ann().lines(batch.error_file_id))]
  const books = databaseOf(gateway.dataDir)
  const rows = books.usage().filter((row) => (row as unknown as { batch: string }).batch === batch.id)
  expect(books.openHolds()).toEqual([])
  return {
    batch,
    lines: Object.fromEntries(
      lines.map(({ custom_id: id, response, error }) => [id, error?.code ?? response?.status_code]),
    ),
    quotas: Object.fromEntries(
      rows.map((row) => [(row as unknown as { custom_id: string }).custom_id, row.quota]),
    ),
  }
}

const sending = (content: (ids: readonly string[]) => string | Buffer): Record<string, Reply> => ({
  content: (response, ids) => void response.end(content(ids)),
})

describe('docs/batches.md: Batches of providers', () => {
  test('a result that cannot be read is passed over, and its line is an error', async () => {
    const broken: Readonly<Record<string, (id: string) => string>> = {
      'no JSON': () => 'what\n',
      'a list': () => '[1]\n',
      'cut off': (id) => `${resultOf(id).slice(0, 100)}\n`,
      'without an id': (id) => resultOf(id).replace('custom_id', 'other_id'),
      'with a number as its id': () => resultOf('x').replace('"x"', '1'),
      'of a line of another batch': (id) => resultOf(id.replace(/^./, 'f')),
      'of no line': (id) => resultOf(id.replace(/\d+$/, '999')),
      'without an answer': (id) => `{"custom_id":"${id}","response":null,"error":null}\n`,
      'nested too deeply': (id) => `{"custom_id":"${id}","response":${'['.repeat(200_000)}}\n`,
      'of 65 MiB': (id) => resultOf(id).replace('"hi"', `"${'x'.repeat(65 * MIB)}"`),
    }
    const names = Object.keys(broken)
    provider.replies = sending((ids) =>
      ids.map((id, at) => (broken[names[at] ?? ''] ?? resultOf)(id)).join(''),
    )
    const { lines, quotas } = await ended(...names, 'good')
    expect(lines).toEqual({ ...Object.fromEntries(names.map((name) => [name, 'result_missing'])), good: 200 })
    expect(quotas).toEqual({ good: 15 })
  })

  test('a result with a status that is none, or that of no answer, is an error, and costs nothing', async () => {
    const statuses = [
      '0',
      '-5',
      '100',
      '101',
      '199',
      '301',
      '600',
      '999',
      '1000',
      '99999',
      '1e9',
      '200.5',
      'null',
    ]
    provider.replies = sending((ids) =>
      ids.map((id, at) => resultOf(id, { status: statuses[at] ?? '200' })).join(''),
    )
    const { batch, quotas } = await ended(...statuses, 'good')
    expect(batch.request_counts).toEqual({ total: 14, completed: 1, failed: 13 })
    expect(Object.entries(quotas).filter(([, quota]) => quota > 0)).toEqual([['good', 15]])
  })

  test('an error with status 200 is an error, and costs nothing, although it states usage', async () => {
    const failed = (id: string): string =>
      resultOf(id).replace('"hi"', '""').replace('"choices"', '"error":{"message":"no"},"choices"')
    provider.replies = sending(([id = '', good = '']) => failed(id) + resultOf(good))
    const { batch, quotas } = await ended('failed', 'good')
    expect(batch.request_counts).toEqual({ total: 2, completed: 1, failed: 1 })
    expect(quotas).toEqual({ failed: 0, good: 15 })
  })

  test('implausible and missing usage is replaced by an estimate, as for calls', async () => {
    const usages = [
      '{"prompt_tokens":-7,"completion_tokens":-2,"total_tokens":-9}',
      '{"prompt_tokens":7.5,"completion_tokens":2.5,"total_tokens":10}',
      '{"prompt_tokens":1e400,"completion_tokens":1e400,"total_tokens":1e400}',
      '{"prompt_tokens":1e15,"completion_tokens":9e15,"total_tokens":1e16}',
      '{"prompt_tokens":"7","completion_tokens":"2"}',
      'null',
    ]
    provider.replies = sending((ids) =>
      ids.map((id, at) => resultOf(id, { usage: usages[at] ?? '' })).join(''),
    )
    const { batch, quotas } = await ended(...usages)
    expect(batch.request_counts).toMatchObject({ completed: usages.length })
    // Some tokens at 1 unit in the prompt and 4 in the answer.
    for (const quota of Object.values(quotas)) {
      expect(Number.isSafeInteger(quota)).toBe(true)
      expect(quota).toBeGreaterThan(0)
      expect(quota).toBeLessThan(1_000)
    }
  })

  test('of several results of a line with different usage the first one counts', async () => {
    const other = '{"prompt_tokens":70000,"completion_tokens":20000,"total_tokens":90000}'
    provider.replies = sending(([id = '']) => resultOf(id) + resultOf(id, { usage: other }).repeat(50))
    const { batch, quotas } = await ended('a')
    expect(batch.request_counts).toEqual({ total: 1, completed: 1, failed: 0 })
    expect(quotas).toEqual({ a: 7 + 4 * 2 })
  })

  test('results that are cut off, redirected or of no provider are read again', async () => {
    provider.replies = {
      content(response, ids, number) {
        if (number === 0) {
          response.writeHead(200, { 'content-length': '100000' })
          response.write(resultOf(ids[0] ?? ''), () => response.destroy())
        } else if (number === 1) response.writeHead(302, { location: '/trap' }).end()
        else if (number === 2) response.writeHead(502, { 'content-type': 'text/html' }).end('<html>')
        else
          response.writeHead(200, { 'content-type': 'text/html' }).end(ids.map((id) => resultOf(id)).join(''))
      },
    }
    const { batch, quotas } = await ended('a', 'b')
    expect(batch.request_counts).toEqual({ total: 2, completed: 2, failed: 0 })
    expect(quotas).toEqual({ a: 15, b: 15 })
    expect(provider.count('trap')).toBe(0)
  })

  test('results without an end are read up to a limit', async () => {
    provider.replies = {
      content(response, ids) {
        response.write(resultOf(ids[0] ?? ''))
        const more = Buffer.from(resultOf('nobody').repeat(500))
        const write = (): void => {
          while (!response.destroyed && response.write(more));
          if (!response.destroyed) response.once('drain', write)
        }
        write()
      },
    }
    const { batch, lines } = await ended('a', 'b')
    expect(batch.request_counts).toEqual({ total: 2, completed: 1, failed: 1 })
    expect(lines).toEqual({ a: 200, b: 'result_missing' })
    expect(provider.count('content')).toBe(1)
  })

  test.each([
    ['a line', 'x'],
    ['a row of empty lines', '\n'],
  ])('%s without an end is read up to a limit, and the batch ends', async (_, byte) => {
    const more = Buffer.alloc(MIB, byte)
    provider.replies = {
      content(response, ids) {
        response.write(resultOf(ids[0] ?? ''))
        const write = (): void => {
          while (!response.destroyed && response.write(more));
          if (!response.destroyed) response.once('drain', write)
        }
        write()
      },
    }
    const { batch, lines, quotas } = await ended('a', 'b')
    expect(batch.request_counts).toEqual({ total: 2, completed: 1, failed: 1 })
    expect(lines).toEqual({ a: 200, b: 'result_missing' })
    expect(quotas).toEqual({ a: 15 })
    expect(provider.count('content')).toBe(1)
  })

  test('results that come slowly keep neither other batches nor a stop waiting, and are read again', async () => {
    provider.replies = {
      content(response, ids, number) {
        if (ids.length !== 2 || number > 0) return response.end(ids.map((id) => resultOf(id)).join(''))
        response.write(resultOf(ids[0] ?? ''))
        const timer = setInterval(() => response.write('{'), 20)
        response.once('close', () => clearInterval(timer))
      },
    }
    const { id } = await made(['slow', 'later'])
    await expect.poll(async () => (await ann().batch(id)).request_counts['completed']).toBe(1)
    const other = await made(['quick'])
    expect(await ann().ended(other.id)).toMatchObject({ request_counts: { completed: 1 } })
    expect(await gateway.stop()).toBe(0)
    provider.ids = provider.uploads.findLast((ids) => ids.length === 2) ?? []
    await gateway.restart()
    expect(await ann().ended(id)).toMatchObject({ request_counts: { total: 2, completed: 2, failed: 0 } })
    const books = databaseOf(gateway.dataDir)
    const rows = books.usage().filter((row) => (row as unknown as { batch: string }).batch === id)
    expect(rows.map(({ quota }) => quota)).toEqual([15, 15])
    expect(books.openHolds()).toEqual([])
  })

  test.each([
    ['its results', 'content'],
    ['the batch', 'get'],
  ])('when the provider has lost %s, the lines are errors, and cost nothing', async (_, step) => {
    provider.replies = { [step]: (response) => void response.writeHead(404).end('{}') }
    const { batch, lines, quotas } = await ended('a', 'b')
    expect(batch.status).toBe('completed')
    expect(lines).toEqual({ a: 'result_missing', b: 'result_missing' })
    expect(quotas).toEqual({})
    expect(provider.count('create')).toBe(1)
  })

  test('results are not read before the batch has ended, whatever it names', async () => {
    provider.replies = {
      get(response, _, number) {
        const status = number < 3 ? 'in_progress' : 'completed'
        if (number < 3) expect(provider.count('content')).toBe(0)
        send(response, { id: 'batch-there', status, output_file_id: 'file-out' })
      },
    }
    expect((await ended('a')).lines).toEqual({ a: 200 })
    expect(provider.count('content')).toBe(1)
  })

  test('a provider is asked first after poll, and then in growing intervals up to poll_most', async () => {
    const times: number[] = []
    provider.replies = {
      create(response) {
        times.push(performance.now())
        send(response, { id: 'batch-there', status: 'validating' })
      },
      get(response, _, number) {
        times.push(performance.now())
        const status = number < 4 ? 'in_progress' : 'completed'
        send(response, { id: 'batch-there', status, output_file_id: 'file-out' })
      },
    }
    expect((await ended('a')).lines).toEqual({ a: 200 })
    const waits = times.slice(1).map((time, at) => time - (times[at] ?? 0))
    // A timer may be a millisecond early.
    for (const [at, least] of [20, 40, 50, 50, 50].entries()) expect(waits[at]).toBeGreaterThan(least - 2)
    expect(waits).toHaveLength(5)
  })

  test('a provider that asks to wait for ages is not asked meanwhile, and a cancellation does not wait', async () => {
    provider.replies = {
      get(response, _, number) {
        if (number === 0) response.writeHead(429, { 'retry-after': '99999999999' }).end('{}')
        else send(response, { id: 'batch-there', status: 'cancelled' })
      },
    }
    const { id } = await made(['a'])
    await expect.poll(() => provider.count('get')).toBe(1)
    // Other batches go on, and this one is still left alone when they have ended.
    await ann().ask('/v1/batches')
    await expect.poll(async () => (await ann().batch(id)).status).toBe('in_progress')
    expect(provider.count('get')).toBe(1)
    await ann().ask(`/v1/batches/${id}/cancel`, 'POST')
    expect(await ann().ended(id)).toMatchObject({ status: 'cancelled' })
  })

  test('a batch that is made without an id is found by its name, and made once', async () => {
    provider.replies = {
      create: (response) => send(response, { status: 'validating' }),
      list: (response) =>
        send(response, {
          data: [{ id: 'batch-there', metadata: { sluice_batch: provider.names[0] } }],
          has_more: false,
        }),
    }
    expect((await ended('a')).lines).toEqual({ a: 200 })
    expect(provider.count('create')).toBe(1)
  })

  test('while a list of batches repeats, a batch in doubt is not made again', async () => {
    let isMended = false
    const foreign = { id: 'batch-other', created_at: 9e12, metadata: {} }
    provider.replies = {
      create: (response) => void response.destroy(),
      list(response) {
        const own = { id: 'batch-there', metadata: { sluice_batch: provider.names[0] } }
        send(response, { data: [isMended ? own : foreign], has_more: true })
      },
    }
    const { id } = await made(['a'])
    await expect.poll(() => provider.count('list')).toBeGreaterThan(5)
    expect(provider.count('create')).toBe(1)
    // A page is not requested again without a pause.
    expect(provider.lists.filter((url, at) => url === provider.lists[at - 1])).toEqual([])
    isMended = true
    expect(await ann().ended(id)).toMatchObject({ request_counts: { completed: 1 } })
    expect(provider.count('create')).toBe(1)
  })
})
