import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type ClientRequest, createServer, get, request, type RequestOptions, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { StoredResponse } from '../../src/domain/stored-response.ts'
import { ResponseStore } from '../../src/features/stored-responses/response-store.ts'
import { deriveSecrets } from '../../src/store/secrets.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import type { Store } from '../../src/store/store.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { GATEWAY_SECRET } from '../fixtures/program.ts'
import { residentBytes } from '../fixtures/resident-memory.ts'
import { family } from '../operations/process-family.ts'
import { keptStore, responseRow } from '../stores/kept.ts'
import { newToken } from '../stores/rows.ts'
import { byTier } from '../runner/tier.ts'

const MIB = 1024 * 1024
const KIB = 1024
/** The number of concurrent requests of one user. */
const PARALLEL = byTier(10, 60)
/** The maximum memory of all processes of the gateway together. */
const MAX_BYTES = 700 * MIB
/** The same for bodies that are converted: a user has 96 MiB of them, and the copies of a small one are not counted. */
const MAX_BYTES_OF_BODIES = 800 * MIB
/** Milliseconds that other work may add; by day other tests share the machine, and the times are only printed. */
const SLACK_MS = byTier(Number.POSITIVE_INFINITY, 50)
const UPSTREAM_MS = 50
/** Whether the bounds are close to what is needed: by day there are few requests, and no wait for a quiet gateway. */
const MEASURES_MEMORY = byTier(false, true)
/** Milliseconds in which an idle gateway is measured, and between two calls of another user. */
const IDLE_MS = byTier(100, 500)
const PAUSE_MS = 5
const ACCOUNT = { authorization: 'the-access-token-of-ann', 'gateway-user': '2' }
const ACCOUNT_OF_BOB = { authorization: 'the-access-token-of-bob', 'gateway-user': '3' }
const CHAIN = 1_000
/** Number of calls that continue the longest chain one after another. */
const TURNS = byTier(4, 16)
/** The maximum memory beyond that of an idle gateway: of one such call, of 28 MB, with its copies. */
const MAX_GROWTH_BYTES = 400 * MIB

const LARGE_INPUT = `resp_${'1'.repeat(44)}`
const LARGE_OUTPUT = `resp_${'2'.repeat(44)}`
const linkId = (n: number): string => `resp_${'3'.repeat(36)}${String(n).padStart(8, '0')}`

let upstream: Server
let gateway: RunningGateway
beforeAll(async () => {
  upstream = createServer((incoming, response) => {
    incoming.resume().on('end', () => {
      setTimeout(
        () => response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER),
        UPSTREAM_MS,
      )
    })
  })
  // This thread is busy for seconds, and would then close a connection on which a request has arrived.
  upstream.keepAliveTimeout = 0
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const { port } = upstream.address() as AddressInfo
  gateway = await startGateway({
    config: {
      rate_limits: {},
      options: { body_limit: '32MiB', keep_responses: '1h' },
      models: priced(['m']),
      channels: [channel('m', `http://127.0.0.1:${port}/v1`)],
      users: [
        ROOT,
        user(2, 'ann', [token('ann'), token('ann2')], { access_token: ACCOUNT.authorization }),
        user(3, 'bob', [token('bob')], { access_token: ACCOUNT_OF_BOB.authorization }),
      ],
    },
  })
  await gateway.stop()
  const path = join(gateway.dataDir, 'sluice.db')
  const store = await openSqliteStore({ path, secrets: deriveSecrets(GATEWAY_SECRET) })
  await fill(store)
  await store.close()
})
afterAll(async () => {
  await gateway?.discard()
  upstream?.close()
})

const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_700_000_000,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
})

/** A text that compression cannot shorten. */
const textOf = (bytes: number): string => randomBytes(bytes / 2).toString('hex')
const item = (bytes: number): object => ({
  id: `msg_${randomBytes(16).toString('hex')}`,
  type: 'message',
  role: 'user',
  content: [{ type: 'input_text', text: textOf(bytes) }],
})

/** Starts the gateway for a test to which it does not matter what the gateway did before. */
async function untilRunning(): Promise<void> {
  if (!gateway.isRunning) await gateway.restart()
}

/** Restarts the gateway, and waits at night until it has released the memory that its start needed. */
async function freshlyStarted(): Promise<void> {
  await gateway.restart()
  let mostBytes = 0
  const part = (): number => {
    const bytes = residentOf(gateway.pid)
    mostBytes = Math.max(mostBytes, bytes)
    return bytes / mostBytes
  }
  if (MEASURES_MEMORY) await expect.poll(part).toBeLessThan(0.9)
}

/**
 * Writes keys with the longest texts, responses of 30 MB, and a chain of responses with the same total size.
 */
async function fill(store: Store): Promise<void> {
  for (let n = 0; n < byTier(0, 100); n += 1)
    await store.write(
      'createToken',
      newToken(2, {
        name: `long ${n}`,
        key: randomBytes(24).toString('hex'),
        model_limits: textOf(64 * KIB),
        allow_ips: textOf(16 * KIB),
        vendor_routes: textOf(2 * KIB),
      }),
    )
  const responses = new ResponseStore({
    rows: store,
    tag: () => '',
    kept: keptStore(store),
    onLost: () => {},
  })
  const input = JSON.stringify(Array.from({ length: byTier(0, 30) }, () => item(MIB)))
  await responses.keep(() => ({
    response: response(LARGE_INPUT),
    content: { input, response: '{"output":[]}' },
  }))
  const output = JSON.stringify({ id: LARGE_OUTPUT, output: [item(30 * MIB)] })
  await responses.keep(() => ({
    response: response(LARGE_OUTPUT),
    content: { input: '[]', response: output },
  }))
  for (let n = 0; n <= CHAIN; n += 1) {
    const content = {
      input: JSON.stringify([item(14 * KIB)]),
      response: JSON.stringify({ id: linkId(n), output: [item(14 * KIB)] }),
    }
    await responses.keep(() => ({ response: response(linkId(n), n === 0 ? null : linkId(n - 1)), content }))
  }
}

const response = (id: string, previousId: string | null = null): StoredResponse =>
  responseRow(id, { model: 'm', channel: 'm', previousId })

/** Makes a request, and discards its response. */
function asked(
  path: string,
  options: RequestOptions,
  body?: string,
): Promise<{ status: number; bytes: number }> {
  return new Promise((resolve, reject) => {
    const make = body === undefined ? get : request
    const sent = make(`${gateway.url}${path}`, { agent: false, ...options }, (answer) => {
      let bytes = 0
      answer.on('data', (chunk: Buffer) => (bytes += chunk.length))
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, bytes }))
      answer.on('error', reject)
    })
    sent.on('error', reject)
    if (body !== undefined) sent.end(body)
  })
}

const KEY = { headers: { authorization: 'Bearer sk-ann', 'content-type': 'application/json' } }
const continued = (n: number): Promise<{ status: number; bytes: number }> =>
  asked(
    '/v1/responses',
    { method: 'POST', ...KEY },
    JSON.stringify({ model: 'm', input: 'and?', previous_response_id: linkId(n), store: false }),
  )

/** A call that is converted for its channel, with so many bytes of text in turns of 64 KiB. */
const converted = (bytes: number): Promise<{ status: number; bytes: number }> =>
  asked(
    '/v1/messages',
    { method: 'POST', ...KEY },
    JSON.stringify({ model: 'm', max_tokens: 10, messages: turnsOf(bytes) }),
  )
const TURN = textOf(64 * KIB)
const turnsOf = (bytes: number): object[] =>
  Array.from({ length: bytes / (64 * KIB) }, (_, n) => ({
    role: n % 2 ? 'assistant' : 'user',
    content: TURN,
  }))

/** Another user's client in a separate thread, so that work in this thread does not delay it. */
const PROBE = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { request, Agent } = require('node:http')
  const agent = new Agent({ keepAlive: true })
  let isOver = false
  parentPort.once('message', () => { isOver = true })
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })
  const headers = { authorization: 'Bearer sk-bob', 'content-type': 'application/json' }
  const ask = () => new Promise((resolve, reject) => {
    const sent = request(workerData + '/v1/chat/completions', { method: 'POST', agent, headers }, (answer) =>
      answer.resume().on('end', () => resolve(answer.statusCode)))
    sent.on('error', reject)
    sent.end(body)
  })
  ;(async () => {
    const waits = []
    const statuses = new Set()
    do {
      const started = performance.now()
      statuses.add(await ask())
      waits.push(performance.now() - started)
      await new Promise((resolve) => setTimeout(resolve, ${PAUSE_MS}))
    } while (!isOver || waits.length < 15)
    parentPort.postMessage({ waits, statuses: [...statuses] })
  })()
`

/** The latency of another user's calls while the work is done, and the maximum memory of the gateway. */
async function beside(work: () => Promise<unknown>) {
  const probe = new Worker(PROBE, { eval: true, workerData: gateway.url })
  const { promise, resolve, reject } = Promise.withResolvers<{ waits: number[]; statuses: number[] }>()
  probe.once('message', resolve)
  probe.once('error', reject)
  let peakBytes = 0
  const sampling = setInterval(() => {
    const bytes = family(gateway.pid).reduce((sum, pid) => sum + residentOf(pid), 0)
    peakBytes = Math.max(peakBytes, bytes)
  }, 50)
  try {
    const beganMs = performance.now()
    await work()
    const tookMs = performance.now() - beganMs
    probe.postMessage('over')
    const { waits, statuses } = await promise
    const medianMs = waits.toSorted((a, b) => a - b)[waits.length >> 1] ?? 0
    return { medianMs, statuses, peakBytes, tookMs }
  } finally {
    clearInterval(sampling)
    await probe.terminate()
  }
}

function residentOf(pid: number): number {
  try {
    return residentBytes(pid)
  } catch {
    // The process has ended in the meantime.
    return 0
  }
}

describe(`${PARALLEL} concurrent requests of one user`, () => {
  const CONVERTED = 'that are converted'
  const attacks: Record<string, () => Promise<{ status: number; bytes: number }>> = {
    'for a kept response of 30 MB': () => asked(`/v1/responses/${LARGE_OUTPUT}`, KEY),
    // By day other tests share the machine, and sending so many bytes takes all the time that a body may take.
    ...byTier(
      {},
      {
        // The number of reads at once bounds this, which the last test of this file checks by day.
        'for a page of 100 keys with the longest texts': () =>
          asked('/api/token/?page_size=100', { headers: ACCOUNT }),
        'for the items of a response of 30 MB': () =>
          asked(`/v1/responses/${LARGE_INPUT}/input_items?limit=100`, KEY),
        'that continue a chain of 1,000 kept responses': () => continued(CHAIN - 1),
        [`of 28 MB ${CONVERTED}`]: () => converted(28 * MIB),
        [`of 4 MB ${CONVERTED}`]: () => converted(4 * MIB),
      },
    ),
  }

  test.each(Object.keys(attacks))(
    'concurrent requests %s take bounded memory, and calls of another user continue',
    async (name) => {
      const ask = attacks[name] as (typeof attacks)[string]
      // Each is measured separately, because the heap keeps the garbage of the previous one until it needs
      // the space.
      await freshlyStarted()
      const alone = await beside(() => sleep(IDLE_MS))
      const during = await beside(async () => {
        const all = await Promise.all(Array.from({ length: PARALLEL }, ask))
        const statuses = Map.groupBy(all, ({ status }) => status)
        console.log(
          `${name}: ${[...statuses].map(([status, those]) => `${those.length} × ${status}`).join(', ')};`,
          `${(all.reduce((sum, { bytes }) => sum + bytes, 0) / MIB).toFixed(0)} MiB`,
        )
        expect([...statuses.keys()].filter((status) => ![200, 408, 429, 503].includes(status))).toEqual([])
        expect(statuses.get(200)?.length).toBeGreaterThan(0)
      })
      const after = await beside(() => sleep(IDLE_MS))
      const aloneMs = Math.max(alone.medianMs, after.medianMs)
      console.log(
        `peak ${(during.peakBytes / MIB).toFixed(0)} MiB in ${(during.tookMs / 1000).toFixed(1)} s;`,
        `another user's median ${aloneMs.toFixed(0)} ms alone, ${during.medianMs.toFixed(0)} ms beside`,
      )
      expect(during.statuses).toEqual([200])
      expect(during.peakBytes).toBeLessThan(name.endsWith(CONVERTED) ? MAX_BYTES_OF_BODIES : MAX_BYTES)
      expect(during.medianMs).toBeLessThan(2 * aloneMs + SLACK_MS)
    },
  )

  test('continuing a chain of 1,000 stored responses again and again takes the memory of one call', async () => {
    // The growth is measured: what the start has needed is used again.
    await gateway.restart()
    const alone = await beside(() => sleep(IDLE_MS))
    const during = await beside(async () => {
      for (let turn = 0; turn < TURNS; turn += 1) expect((await continued(CHAIN - 1)).status).toBe(200)
    })
    const grown = during.peakBytes - alone.peakBytes
    console.log(
      `${TURNS} turns: ${(grown / MIB).toFixed(0)} MiB more in ${(during.tookMs / 1000).toFixed(1)} s`,
    )
    expect(grown).toBeLessThan(MAX_GROWTH_BYTES)
  })

  test('continuing a chain of more than 1,000 stored responses is refused with 400 and a message that says so', async () => {
    await untilRunning()
    expect((await continued(CHAIN)).status).toBe(400)
  })
})

test('a user has at most eight database reads at once, over all keys and sessions, and other users can read meanwhile', async () => {
  await untilRunning()
  const running: ClientRequest[] = []
  const keys = '/api/token/?page_size=1'
  /** Requests a large response, and reads nothing of it. */
  const unread = (key: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer sk-${key}` }
      const path = `/v1/responses/${LARGE_OUTPUT}`
      const sent = get(`${gateway.url}${path}`, { agent: false, headers }, ({ statusCode }) =>
        statusCode === 200 ? resolve() : reject(new Error(`the read is answered with ${statusCode}`)),
      )
      sent.on('error', reject)
      running.push(sent)
    })
  /** The status of a ninth read while eight run, undefined if it waits; and its status after one of them has ended. */
  const ofNinth = async (): Promise<(number | undefined)[]> => {
    try {
      await Promise.all(['ann', 'ann', 'ann', 'ann', 'ann2', 'ann2', 'ann2', 'ann2'].map(unread))
      let early: number | undefined
      const ninth = asked(keys, { headers: ACCOUNT }).then(({ status }) => (early = status))
      const ofAnother = { headers: { authorization: 'Bearer sk-bob' } }
      expect((await asked(`/v1/responses/${LARGE_OUTPUT}`, ofAnother)).status).toBe(404)
      // As long as the ninth takes if it need not wait.
      expect((await asked(keys, { headers: ACCOUNT_OF_BOB })).status).toBe(200)
      const during = early
      running[0]?.destroy()
      return [during, await ninth]
    } finally {
      for (const one of running.splice(0)) one.destroy()
    }
  }
  let statuses: (number | undefined)[] = []
  // Repeated, because a read that has waited for ten seconds is refused, and a halt may last as long.
  await expect.poll(async () => (statuses = await ofNinth())).not.toContain(429)
  expect(statuses).toEqual([undefined, 200])
})
