import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  backgroundConfiguration,
  begin,
  type Cases,
  CHARGE,
  charged,
  clientOf,
  holds,
  otherKey,
  type Stage,
  stageOf,
  usage,
} from '../fixtures/background-stage.ts'
import { call, CERTAINLY_GONE_MS, open, type LiveResponse } from '../fixtures/client.ts'
import { PLAIN_PRICE } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'

/** A limit that one call uses up, and one that two calls use up. */
const ONE_CALL = { tokens: 100, window: '1h' }
const TWO_CALLS = { tokens: 200, window: '1h' }
/** A channel that sends the tier that a client requests, which costs twice as much. */
const TIERED = {
  channel: { allow: ['service_tier'] },
  model: { price: { ...PLAIN_PRICE, service: { fast: 2 } } },
}
/** A channel that maps the model to another name, and whose price of cache writes depends on their lifetime. */
const RENAMED = {
  channel: { allow: ['prompt_cache_options'], model_mapping: { sent: 'real', older: 'real' } },
  model: { price: { ...PLAIN_PRICE, cache_write_5m: 4, cache_write_12h: 16 } },
}
/** Each key makes one call, except in the case of the key's limit. */
const CASES: Cases = {
  held: {},
  cancelled: {},
  deleted: {},
  key: {},
  model: { model: { rate_limit: ONE_CALL } },
  channel: { channel: { rate_limit: ONE_CALL } },
  uncounted: { model: { price: { ...PLAIN_PRICE, request: 0.002 } } },
  zeros: {},
  speechless: {},
  prompt: {},
  asked: { model: { fallback: ['answering'] } },
  answering: { model: { rate_limit: ONE_CALL } },
  down: { model: { fallback: ['standby'] } },
  standby: {},
  watched: {},
  stopped: {},
  repeated: {},
  unbelieved: {},
  sent: RENAMED,
  older: RENAMED,
  failed: {},
  streamed: {},
  replayed: {},
  read: {},
  left: {},
  parts: {},
  told: {},
  removed: {},
  killed: {},
  tier: TIERED,
  restarted: TIERED,
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    ...backgroundConfiguration(upstream, CASES),
    rate_limits: { key: TWO_CALLS },
    guards: [
      {
        name: 'words',
        do: 'flag',
        match: { regex: 'secret|Hello' },
        where: ['input', 'output'],
        tokens: ['token-standby', 'token-watched'],
      },
      { name: 'stop', do: 'block', match: { regex: 'Hello' }, where: ['output'], tokens: ['token-stopped'] },
    ],
  }))
})
afterAll(() => fixture?.close())

const stage = (name: string): Stage => stageOf(fixture, CASES, name)

/** Lets the provider complete a response with this usage. */
function completeWith({ name, provider, upstream }: Stage, reported: string): void {
  provider.backgroundStatus = 'completed'
  upstream.decide(name, (request) => {
    const decided = provider.decision(request)
    if (decided.kind !== 'whole') return decided
    const body = String(decided.body).replace(/"usage":\{.*?\}\s*,"x_big/, `"usage":${reported},"x_big`)
    return { ...decided, body }
  })
}

describe('a response in the background', () => {
  test('a background response keeps its hold until a GET shows that it is done, and is charged once by its usage', async () => {
    const on = stage('held')
    const { id, status } = await begin(on)
    expect(status).toBe('in_progress')
    expect(usage(on)).toHaveLength(0)
    expect(holds(on)).toHaveLength(1)
    expect((await on.client.responses.retrieve(id)).status).toBe('in_progress')
    expect(usage(on)).toHaveLength(0)
    on.provider.backgroundStatus = 'completed'
    expect((await on.client.responses.retrieve(id)).status).toBe('completed')
    expect(await charged(on)).toMatchObject({ quota: CHARGE, reason: 'complete' })
    await Promise.all(Array.from({ length: 5 }, () => on.client.responses.retrieve(id)))
    expect(usage(on)).toHaveLength(1)
    await on.client.responses.delete(id)
    await expect(on.client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
  })

  test('a background response that is cancelled is charged for its prompt where the upstream reports no usage', async () => {
    const on = stage('cancelled')
    const { id } = await begin(on)
    expect(await on.client.responses.cancel(id)).toMatchObject({ id, status: 'cancelled' })
    const row = await charged(on)
    expect(row.reason).toBe('client_gone')
    expect(row.quota).toBeGreaterThan(0)
    expect(row.quota).toBeLessThan(100)
    expect(row.input_tokens).toBe(row.quota)
  })

  test('a background response cannot be deleted while it is made, and is charged before it is deleted', async () => {
    const on = stage('deleted')
    const { id } = await begin(on)
    await expect(on.client.responses.delete(id)).rejects.toMatchObject({ status: 400 })
    on.provider.backgroundStatus = 'completed'
    await on.client.responses.delete(id)
    expect(await charged(on)).toMatchObject({ quota: CHARGE })
    expect(on.provider.made).toHaveLength(0)
  })

  test.each([
    ['its key', 'key', 2, 'key'],
    ['its model', 'model', 1, 'ann'],
    ['its channel', 'channel', 1, 'ann'],
  ])(
    'a background response counts against the token limit of %s once it is settled',
    async (_, name, calls, nextKey) => {
      const on = stage(name)
      for (let made = 1; made <= calls; made += 1) {
        on.provider.backgroundStatus = 'in_progress'
        const { id } = await begin(on)
        on.provider.backgroundStatus = 'completed'
        await on.client.responses.retrieve(id)
        await vi.waitFor(() => expect(usage(on)).toHaveLength(made), 60_000)
      }
      expect(usage(on)[0]).toMatchObject({ quota: CHARGE })
      const next = { ...on, client: clientOf(on.gateway, nextKey) }
      await expect(begin(next)).rejects.toMatchObject({ status: 429 })
    },
  )

  test("a background response without usage is charged by the gateway's own token count, and the price per call once", async () => {
    const on = stage('uncounted')
    const { id } = await begin(on)
    completeWith(on, 'null')
    await on.client.responses.retrieve(id)
    const row = await charged(on)
    expect(row.reason).toBe('estimated')
    expect(row.output_tokens).toBeGreaterThan(0)
    expect(row.quota).toBe(row.input_tokens + 4 * row.output_tokens + 1_000)
  })

  test.each([
    ['zeros', '{"input_tokens":0,"output_tokens":0,"total_tokens":0}'],
    ['speechless', '{"input_tokens":50,"output_tokens":0,"total_tokens":50}'],
    ['prompt', '{"input_tokens":50}'],
  ])(
    'the output of a background response is counted if its usage cannot be right or lacks it, and its prompt unless that alone was reported: %s',
    async (name, reported) => {
      const on = stage(name)
      const { id } = await begin(on)
      completeWith(on, reported)
      await on.client.responses.retrieve(id)
      const row = await charged(on)
      expect(row.reason).toBe('estimated')
      expect(row.output_tokens).toBeGreaterThan(0)
      if (name === 'prompt') expect(row.input_tokens).toBe(50)
      else expect(row.input_tokens).toBeLessThan(20)
      expect(row.quota).toBe(row.input_tokens + 4 * row.output_tokens)
    },
  )

  test('a background response of a fallback counts against the token limit of the model that answered', async () => {
    const on = stage('answering')
    on.upstream.script('asked', { kind: 'status', status: 503, body: '{}' })
    const { id } = await begin({ ...on, name: 'asked' })
    on.provider.backgroundStatus = 'completed'
    await on.client.responses.retrieve(id)
    expect(await charged(on)).toMatchObject({ quota: CHARGE })
    await expect(begin(on)).rejects.toMatchObject({ status: 429 })
  })

  test('the row of a background response has the verdicts of guards, the failed attempts and what was not sent, also after a restart', async () => {
    const on = stage('standby')
    on.upstream.script('down', { kind: 'status', status: 503, body: '{}' })
    const { id } = await on.client.responses.create({
      model: 'down',
      input: 'a secret',
      background: true,
      ...({ route: 'fallback' } as object),
    })
    await fixture.gateway.stop()
    await fixture.gateway.restart()
    on.provider.backgroundStatus = 'completed'
    await clientOf(fixture.gateway, 'standby').responses.retrieve(id)
    const row = await charged(on)
    expect(row).toMatchObject({ quota: CHARGE, guards: 'words=flagged;count=1' })
    const { attempts, particulars } = row as unknown as Record<'attempts' | 'particulars', string>
    expect(JSON.parse(attempts)).toMatchObject([
      { channel: 'down', status: 503 },
      { channel: 'standby', status: 200, cause: null },
    ])
    expect(JSON.parse(particulars)).toMatchObject({ dropped: ['route'] })
  })

  test('the row of a streamed background response has the verdicts of guards on what was streamed', async () => {
    const on = stage('watched')
    const body = { model: on.name, input: 'hi', background: true, stream: true } as const
    on.upstream.decide(on.name, (request) => {
      const decided = on.provider.decision(request)
      if (decided.kind !== 'stream') return decided
      // The stream breaks off before its end, so that the response goes on.
      return { ...decided, frames: decided.frames?.slice(0, -1) ?? [], ending: 'close' }
    })
    const live = await open(on.gateway.url, body, { key: on.name, path: '/v1/responses' })
    const { text } = await live.end()
    const [, id = ''] = /"id":"(resp_[0-9a-f]{44})"/.exec(text) ?? []
    on.provider.backgroundStatus = 'completed'
    await on.client.responses.retrieve(id)
    expect((await charged(on)).guards).toBe('words=flagged;count=1')
  })

  test('the row of a streamed background response whose stream a guard blocked has the note guard_blocked', async () => {
    const on = stage('stopped')
    const body = { model: on.name, input: 'hi', background: true, stream: true } as const
    const live = await open(on.gateway.url, body, { key: on.name, path: '/v1/responses' })
    const { text } = await live.end()
    const [, id = ''] = /"id":"(resp_[0-9a-f]{44})"/.exec(text) ?? []
    on.provider.backgroundStatus = 'completed'
    await call(on.gateway.url, undefined, { key: on.name, method: 'GET', path: `/v1/responses/${id}` })
    expect(await charged(on)).toMatchObject({ guards: 'stop=blocked;count=1', note: 'guard_blocked' })
  })

  test.each(['repeated', 'unbelieved'])(
    'the row of a background response states its idempotency key and what was not sent, also after a restart: %s',
    async (name) => {
      const on = stage(name)
      const body = { model: name, input: 'hi', background: true, route: 'fallback' }
      const headers = { 'idempotency-key': name }
      const begun = await call(on.gateway.url, body, { key: name, path: '/v1/responses', headers })
      await fixture.gateway.stop()
      await fixture.gateway.restart()
      if (name === 'repeated') on.provider.backgroundStatus = 'completed'
      else completeWith(on, '{"input_tokens":1000000000,"output_tokens":9}')
      await clientOf(fixture.gateway, name).responses.retrieve(begun.json().id)
      const row = await charged(on)
      const { note, particulars } = row as unknown as Record<'note' | 'particulars', string>
      expect(note).toBe(name === 'repeated' ? '' : 'usage_implausible')
      expect(JSON.parse(particulars)).toMatchObject({ dropped: ['route'], idempotent: true })
    },
  )

  test('a background response without a cache lifetime is charged by that of its request, unless an earlier version stored it', async () => {
    const [on, older] = [stage('sent'), stage('older')]
    const ids: string[] = []
    for (const { name, client } of [on, older]) {
      const more = { prompt_cache_options: { ttl: '12h' } } as object
      ids.push((await client.responses.create({ model: name, input: 'hi', background: true, ...more })).id)
    }
    await fixture.gateway.stop()
    const forget = `UPDATE stored_responses SET rate = json_remove(rate, '$.sent.upstreamModel', '$.sent.cacheLifetime') WHERE id = ?`
    databaseOf(fixture.gateway.dataDir).write(forget, ids[1] ?? '')
    await fixture.gateway.restart()
    const written = '{"input_tokens":100,"input_tokens_details":{"cache_write_tokens":60},"output_tokens":50}'
    for (const [at, each] of [on, older].entries()) {
      completeWith(each, written)
      await clientOf(fixture.gateway, each.name).responses.retrieve(ids[at] ?? '')
    }
    expect(await charged(on)).toMatchObject({ quota: 40 + 8 * 60 + 4 * 50, upstream_model: 'real' })
    expect(await charged(older)).toMatchObject({ quota: 40 + 2 * 60 + 4 * 50, upstream_model: 'older' })
  })

  test.each(['tier', 'restarted'])(
    'a background response is charged at the service tier that its request named, also after a restart: %s',
    async (name) => {
      const on = stage(name)
      const { client } = on
      const { id } = await client.responses.create({
        model: name,
        input: 'hi',
        background: true,
        service_tier: 'priority',
      })
      if (name === 'restarted') {
        await fixture.gateway.stop()
        await fixture.gateway.restart()
      }
      on.provider.backgroundStatus = 'completed'
      await clientOf(fixture.gateway, name).responses.retrieve(id)
      expect(await charged(on)).toMatchObject({
        quota: 2 * CHARGE,
        service_tier: 'fast',
        requested_service_tier: 'fast',
      })
    },
  )

  test('a failed background response costs nothing', async () => {
    const on = stage('failed')
    const { id } = await begin(on)
    on.provider.backgroundStatus = 'failed'
    await on.client.responses.retrieve(id)
    expect(await charged(on)).toMatchObject({ quota: 0, reason: 'failed' })
  })

  test('a background response whose stream ends is charged once, by the usage at its end', async () => {
    const on = stage('streamed')
    const events = await on.client.responses.create({
      model: on.name,
      input: 'hi',
      background: true,
      stream: true,
    })
    let id = ''
    for await (const event of events) if (event.type === 'response.completed') ({ id } = event.response)
    on.provider.backgroundStatus = 'completed'
    await on.client.responses.retrieve(id)
    expect(await charged(on)).toMatchObject({ quota: CHARGE })
  })
})

/** Two hundred tokens in any tokenizer, in events of ten. */
const EVENTS = 20
const TOKENS = 10 * EVENTS
const delta = (number: number): string =>
  `event: response.output_text.delta\ndata: ${JSON.stringify({
    type: 'response.output_text.delta',
    sequence_number: number,
    output_index: 0,
    content_index: 0,
    delta: ' banana'.repeat(10),
  })}\n\n`

describe('a response in the background that is cancelled', () => {
  /**
   * Scripts the provider to stream the words and then pause, and to answer a cancel with or without usage.
   */
  const scripted = (name: string, usage = 'null'): Stage => {
    const on = stage(name)
    on.upstream.decide(name, (request) => {
      const decided = on.provider.decision(request)
      const { pathname, searchParams } = new URL(request.path, 'http://upstream')
      if (pathname.endsWith('/cancel') && decided.kind === 'whole') {
        const body = String(decided.body).replace('"usage":null', `"usage":${usage}`)
        return { ...decided, body }
      }
      if (decided.kind !== 'stream') return decided
      const after = Number(searchParams.get('starting_after') ?? 1)
      const words = Array.from({ length: EVENTS }, (_, n) => delta(n + 2)).slice(Math.max(0, after - 1))
      const begun = after === 1 ? (decided.frames ?? []).slice(0, 2) : []
      return { kind: 'stream', frames: [...begun, ...words], ending: 'stall' }
    })
    return on
  }
  const stream = async ({ gateway, name }: Stage, id: string, after = ''): Promise<LiveResponse> => {
    const path = `/v1/responses/${id}?stream=true${after}`
    const live = await open(gateway.url, undefined, { key: name, method: 'GET', path })
    await live.until(`"sequence_number":${EVENTS + 1}`)
    // Directly after a request, a client that closes its sending side may still be reading.
    await new Promise((resolve) => setTimeout(resolve, CERTAINLY_GONE_MS))
    return live
  }
  /** Checks prompt and output of the row: "hi" is a few tokens. */
  const expectCharged = async (on: Stage): Promise<void> => {
    const row = await charged(on)
    expect(row.reason).toBe('client_gone')
    expect(row.input_tokens).toBeGreaterThan(0)
    expect(row.input_tokens).toBeLessThan(20)
    expect(row.output_tokens).toBeGreaterThanOrEqual(TOKENS)
    expect(row.output_tokens).toBeLessThanOrEqual(TOKENS + 5)
    expect(row.quota).toBe(row.input_tokens + 4 * row.output_tokens)
  }

  test('a cancelled background response is charged for what was streamed to a reader that left', async () => {
    const on = scripted('replayed')
    const { id } = await begin(on)
    const live = await stream(on, id)
    live.abort()
    await on.client.responses.cancel(id)
    await expectCharged(on)
  })

  test('a cancelled response is charged for what was streamed to a reader still connected, with another key of its user', async () => {
    const on = scripted('read')
    const { id } = await begin(on)
    const live = await stream(on, id)
    await clientOf(on.gateway, otherKey(on.name)).responses.cancel(id)
    await expectCharged(on)
    live.abort()
  })

  test('a cancelled background response is charged for what the stream that created it delivered before the client left', async () => {
    const on = scripted('left')
    const body = { model: on.name, input: 'hi', background: true, stream: true, max_output_tokens: 300 }
    const live = await open(on.gateway.url, body, { key: on.name, path: '/v1/responses' })
    await live.until(`"sequence_number":${EVENTS + 1}`)
    const [, id = ''] = /"id":"(resp_[0-9a-f]{44})"/.exec(live.text()) ?? []
    await new Promise((resolve) => setTimeout(resolve, CERTAINLY_GONE_MS))
    live.abort()
    await on.upstream.received(on.name).at(-1)?.ended
    await on.client.responses.cancel(id)
    await expectCharged(on)
  })

  test.each(['its client leaves', 'the gateway is killed'])(
    'a background response that is deleted while its stream is open is charged by its usage when %s',
    async (end) => {
      const on = scripted(end === 'its client leaves' ? 'removed' : 'killed')
      const body = { model: on.name, input: 'hi', background: true, stream: true, max_output_tokens: 100 }
      const live = await open(on.gateway.url, body, { key: on.name, path: '/v1/responses' })
      await live.until(`"sequence_number":${EVENTS + 1}`)
      const [, id = ''] = /"id":"(resp_[0-9a-f]{44})"/.exec(live.text()) ?? []
      on.provider.backgroundStatus = 'completed'
      await on.client.responses.delete(id)
      expect(holds(on)).toHaveLength(1)
      if (end === 'its client leaves') live.abort()
      else {
        await on.gateway.kill()
        await on.gateway.restart()
      }
      expect(await charged(on)).toMatchObject({ quota: CHARGE, reason: 'complete' })
    },
  )

  test('a cancelled background response is charged once for each event, where clients read its events repeatedly', async () => {
    const on = scripted('parts')
    const { id } = await begin(on)
    for (const after of ['&starting_after=11', '&starting_after=11', '', '&starting_after=6']) {
      const live = await stream(on, id, after)
      live.abort()
    }
    await on.client.responses.cancel(id)
    await expectCharged(on)
  })

  test('a cancelled background response is charged by the usage that its provider reports, whatever was streamed', async () => {
    const usage = '{"input_tokens":40,"output_tokens":70,"total_tokens":110}'
    const on = scripted('told', usage)
    const { id } = await begin(on)
    const live = await stream(on, id)
    live.abort()
    await clientOf(on.gateway, otherKey(on.name)).responses.cancel(id)
    expect(await charged(on)).toMatchObject({ quota: 40 + 4 * 70, reason: 'client_gone' })
  })
})
