import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { manage } from '../fixtures/account.ts'
import {
  contentFrame,
  DONE_FRAME,
  finishFrame,
  roleFrame,
  usageFrame,
  usageText,
} from '../fixtures/behaviour.ts'
import { call, type FullResponse, streamedContent } from '../fixtures/client.ts'
import { ADMIN, ADMIN_USER, channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'
import { byTier } from '../runner/tier.ts'
import { type GuardServices, startGuardServices, type Trouble } from '../fixtures/guard-services.ts'

const TROUBLES: readonly Trouble[] = [
  'silent',
  'slow end',
  'redirect',
  'status 500',
  'no JSON',
  'no object',
  'unknown action',
  '2 MiB',
  'endless',
  'closed',
]
const KINDS = ['webhook', 'presidio', 'bedrock', 'lakera'] as const
type Kind = (typeof KINDS)[number]
const CODE = 'code-4711-x'
const TIMEOUT_MS = 400
/** What is waited for on a busy machine. */
const PATIENT = { timeout: 60_000, interval: 20 }

function matchOf(kind: Kind, url: string): Record<string, unknown> {
  const keys = ['AKIDEXAMPLE0000:wJalrXUtnFEMIK7MDENGbPxRfiCY']
  const matches = {
    webhook: { url },
    presidio: { url },
    bedrock: { base_url: url, region: 'us-east-1', guardrail: 'gr-1', version: 2, keys },
    lakera: { base_url: url, key: 'lakera-key' },
  }
  return { [kind]: matches[kind] }
}

const SIDES = { input: ['input'], output: ['output'] } as const
const FAILURES = ['block', 'pass'] as const

let services: GuardServices
let fixture: Fixture
beforeAll(async () => {
  services = await startGuardServices()
  const closed = await closedPort()
  const guards = [
    ...KINDS.flatMap((kind) =>
      Object.entries(SIDES).flatMap(([side, where]) =>
        FAILURES.map((failure) => ({
          name: `${kind}-${side}-${failure}`,
          do: 'block',
          where,
          match: matchOf(kind, services.url),
          timeout: `${TIMEOUT_MS}ms`,
          on_failure: failure,
        })),
      ),
    ),
    { name: 'away', do: 'redact', where: ['input'], match: matchOf('webhook', `http://127.0.0.1:${closed}`) },
    {
      name: 'watch',
      do: 'block',
      mode: 'monitor',
      match: matchOf('webhook', services.url),
      timeout: `${TIMEOUT_MS}ms`,
    },
    {
      name: 'patient',
      do: 'block',
      where: ['output'],
      match: matchOf('webhook', services.url),
      timeout: '60s',
    },
    {
      name: 'asking',
      do: 'block',
      where: ['input'],
      match: matchOf('webhook', services.url),
      timeout: '60s',
    },
    {
      name: 'early',
      do: 'redact',
      where: ['output'],
      match: matchOf('webhook', services.url),
      timeout: '60s',
      most_delay: 400,
    },
  ]
  fixture = await startFixture((upstream) => ({
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    guards: guards.map((guard) => ({ ...guard, tokens: [`token-${guard.name.replaceAll('-', '')}`] })),
    users: [
      ROOT,
      user(
        2,
        'ann',
        guards.map(({ name }) => token(name.replaceAll('-', ''))),
      ),
      ADMIN_USER,
    ],
  }))
})
afterAll(async () => {
  await fixture?.close()
  await services?.stop()
})
beforeEach(() => {
  services.asked.splice(0)
  services.trouble = undefined
  services.after = undefined
  fixture.upstream.script('m', { kind: 'whole', content: 'All is fine.', usage: usageText(100, 50) })
})

async function rowOf({ headers }: Pick<FullResponse, 'headers'>): Promise<Record<string, unknown>> {
  const query = `GET /api/log/${String(headers['x-request-id'])}` as const
  return (await manage<Record<string, unknown>>(fixture.gateway.url, ADMIN, query)).data
}

describe.each(TROUBLES)('a service that is or answers: %s', (trouble) => {
  // By day each kind of service has some of the troubles.
  const ofDay = KINDS[(TROUBLES.indexOf(trouble) + 1) % KINDS.length] as Kind
  const kinds: readonly Kind[] =
    trouble === 'silent' || trouble === 'endless' ? ['webhook'] : byTier<readonly Kind[]>([ofDay], KINDS)

  test.each(kinds)(
    'a request is refused and not sent upstream where the service %s of its guard fails',
    async (kind) => {
      services.trouble = trouble
      const answer = await fixture.chat(`${kind}inputblock`, ask('m'))
      expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, 'guard_blocked'])
      expect(answer.headers['x-gateway-guards']).toBe(`${kind}-input-block=failed_blocked;count=0`)
      expect(fixture.upstream.received('m')).toEqual([])
    },
  )

  test.each(kinds)(
    'a request passes although the service %s of its guard fails, where on_failure is pass',
    async (kind) => {
      services.trouble = trouble
      const answer = await fixture.chat(`${kind}inputpass`, ask('m'))
      expect([answer.status, answer.headers['x-gateway-guards']]).toEqual([
        200,
        `${kind}-input-pass=failed_passed;count=0`,
      ])
      expect(answer.text).toContain('All is fine.')
    },
  )

  test.each(kinds)(
    'an answer is withheld from the client, but charged, where the service %s of its guard fails',
    async (kind) => {
      services.trouble = trouble
      const answer = await fixture.chat(`${kind}outputblock`, ask('m'))
      expect(JSON.parse(answer.text).choices[0]).toMatchObject({ finish_reason: 'content_filter' })
      expect(answer.text).not.toContain('fine')
      expect(await rowOf(answer)).toMatchObject({
        quota: 300,
        note: 'guard_blocked',
        guards: `${kind}-output-block=failed_blocked;count=0`,
      })
    },
  )

  test.each(kinds)('a stream ends as a refusal where the service %s of its guard fails', async (kind) => {
    services.trouble = trouble
    fixture.upstream.script('m', {
      kind: 'stream',
      usage: usageText(100, 50),
      usageIn: 'always',
      word: 'fine ',
    })
    const answer = await fixture.chat(`${kind}outputblock`, askStream('m'))
    expect(answer.text).toContain('"finish_reason":"content_filter"')
    expect(answer.text).not.toContain('fine')
    expect(await rowOf(answer)).toMatchObject({
      quota: 300,
      guards: `${kind}-output-block=failed_blocked;count=0`,
    })
  })

  test('answers and streams pass although the service of their guard fails, where on_failure is pass', async () => {
    services.trouble = trouble
    const whole = await fixture.chat('webhookoutputpass', ask('m'))
    expect(whole.text).toContain('All is fine.')
    expect(await rowOf(whole)).toMatchObject({
      quota: 300,
      guards: 'webhook-output-pass=failed_passed;count=0',
    })
    fixture.upstream.script('m', { kind: 'stream', word: 'fine ' })
    const streamed = await fixture.chat('webhookoutputpass', askStream('m'))
    expect(streamedContent(streamed.text)).toBe('fine '.repeat(5))
  })

  test("a call under a guard in monitor mode passes although the guard's service fails", async () => {
    services.trouble = trouble
    const answer = await fixture.chat('watch', ask('m'))
    expect(answer.text).toContain('All is fine.')
    expect(answer.headers['x-gateway-guards']).toBe('watch=failed_passed;count=0')
  })
})

test('a request is refused where the service of its guard cannot be reached', async () => {
  const answer = await fixture.chat('away', ask('m'))
  expect([answer.status, answer.headers['x-gateway-guards']]).toEqual([400, 'away=failed_blocked;count=0'])
})

test("a redirect by a guard's service is not followed", async () => {
  services.trouble = 'redirect'
  await fixture.chat('asking', ask('m'))
  expect(services.asked).toHaveLength(1)
})

test("a failure of a guard's service is in the log, the metrics and the statistics, without texts and keys", async () => {
  services.trouble = 'status 500'
  const said = 'a text that only I know'
  await fixture.chat('asking', ask('m', { messages: [{ role: 'user', content: said }] }))
  // The log is written later than the answer.
  await expect
    .poll(() => fixture.gateway.logs())
    .toMatch(/"guard":"asking","cause":"it answered with status 500","msg":"guard failed"/)
  expect(fixture.gateway.logs()).not.toContain(said)
  const { text } = await call(fixture.gateway.url, '', { path: '/metrics', method: 'GET' })
  expect(text).toMatch(/sluice_guard_verdicts_total\{guard="asking",verdict="failed_blocked"\} [1-9]/)
  const { data } = await manage<{ name: string; failed: number }[]>(
    fixture.gateway.url,
    ADMIN,
    'GET /api/guards',
  )
  expect(data.find(({ name }) => name === 'asking')?.failed).toBeGreaterThan(0)
  expect(JSON.stringify(data)).not.toMatch(/lakera-key|wJalr/)
})

describe('a client that leaves while a service is asked', () => {
  test('when the client leaves while its request is checked, the check is aborted, and nothing is sent upstream', async () => {
    services.trouble = 'silent'
    const leaving = await abandoned('asking', ask('m'))
    await vi.waitFor(() => expect(services.asked).toHaveLength(1), PATIENT)
    leaving.abort()
    await vi.waitFor(() => expect(services.open()).toBe(0), PATIENT)
    expect(fixture.upstream.received('m')).toEqual([])
  })

  test.each([false, true])(
    'when the client leaves while its answer is checked, the check is aborted, and the answer charged (stream: %s)',
    async (stream) => {
      services.trouble = 'silent'
      if (stream)
        fixture.upstream.script('m', { kind: 'stream', usage: usageText(100, 50), usageIn: 'always' })
      const before = await usedQuota()
      const leaving = await abandoned('patient', stream ? askStream('m') : ask('m'))
      await vi.waitFor(() => expect(services.asked).toHaveLength(1), PATIENT)
      leaving.abort()
      await vi.waitFor(() => expect(services.open()).toBe(0), PATIENT)
      await vi.waitFor(async () => expect(await usedQuota()).toBeGreaterThan(before), PATIENT)
      if (!stream) expect((await usedQuota()) - before).toBe(300)
    },
  )
})

describe('a stream that is checked in windows', () => {
  const letters = (length: number, from = 0): string =>
    Array.from({ length }, (_, index) => String.fromCharCode(97 + ((from + index) % 26))).join('')

  test('a stream that a guard checks in windows is sent one window late, and matches across windows are redacted', async () => {
    const text = `${letters(390)}${CODE}${letters(700)}`
    const pieces = text.match(/.{1,10}/gs) ?? []
    let goOn = (): void => {}
    const after = new Promise<void>((resolve) => (goOn = resolve))
    fixture.upstream.script('m', {
      kind: 'stream',
      frames: [roleFrame(), ...pieces.slice(0, 60).map(contentFrame)],
      rest: {
        after,
        frames: [
          ...pieces.slice(60).map(contentFrame),
          finishFrame(),
          usageFrame(usageText(1, 1)),
          DONE_FRAME,
        ],
      },
      ending: 'no done',
    })
    const live = await fixture.live('early', askStream('m'))
    await vi.waitFor(() => expect(streamedContent(live.text()).length).toBeGreaterThanOrEqual(200), 60_000)
    expect(streamedContent(live.text()).length).toBeLessThan(600)
    goOn()
    expect(streamedContent((await live.end()).text)).toBe(text.replace(CODE, '<code>'))
    const sizes = services.asked.map(({ body }) => body.texts.join('').length)
    expect(sizes.length).toBeGreaterThan(2)
    // A match in the overlap waits for the rest, up to twice a window.
    expect(Math.max(...sizes)).toBeLessThan(820)
  })
})

test("a stream that waits for a guard's service gets comments that keep its connection alive", async () => {
  let goOn = (): void => {}
  const after = new Promise<void>((resolve) => (goOn = resolve))
  fixture.upstream.script('m', {
    kind: 'stream',
    frames: [roleFrame(), contentFrame('It is ')],
    rest: { after, frames: [contentFrame('fine.'), finishFrame(), DONE_FRAME] },
    ending: 'no done',
  })
  const live = await fixture.live('patient', askStream('m'))
  await live.until(': checking')
  expect(streamedContent(live.text())).toBe('')
  goOn()
  expect(streamedContent((await live.end()).text)).toBe('It is fine.')
})

async function usedQuota(): Promise<number> {
  const { data } = await manage<{ used_quota: number }>(fixture.gateway.url, ADMIN, 'GET /api/user/2')
  return data.used_quota
}

async function abandoned(key: string, body: object): Promise<AbortController> {
  const leaving = new AbortController()
  void fetch(`${fixture.gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer sk-${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: leaving.signal,
  })
    .then((answer) => answer.text())
    .catch(() => {})
  return leaving
}

/** A port at which nothing listens. */
async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => void server.close(resolve))
  return port
}
