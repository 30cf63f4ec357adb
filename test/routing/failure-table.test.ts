import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FAILURES, type FailureKind, type FailureRule } from '../../src/call/failure-table.ts'
import { ACCOUNT_FAULTS } from '../../src/upstreams/account-fault-table.ts'
import { type Behaviour, errorBody } from '../fixtures/behaviour.ts'
import { channelHealth } from '../fixtures/channel-health.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { ask, askStream, type Fixture, startFixture } from '../fixtures/fixture.ts'

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8')

/** The cells of the table under a heading, without its head. */
function tableUnder(heading: string): string[][] {
  const [, section = ''] = PAGE.split(`\n### ${heading}\n`)
  const lines = section.slice(section.indexOf('\n|')).trim().split('\n')
  const table = lines.slice(
    0,
    lines.findIndex((line) => !line.startsWith('|')),
  )
  return table.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  )
}

/** What the cells of the table say, as the code names it. */
const BLAMED: Readonly<Record<string, FailureRule['blames']>> = {
  none: 'none',
  'the request': 'request',
  'the key': 'key',
  'the key for this model': 'key and model',
  'the channel for this model': 'model',
  'the channel': 'channel',
  'the gateway': 'gateway',
}
const RESTS: Readonly<Record<string, FailureRule['rest']>> = {
  '–': 'none',
  'a minute': 'minute',
  'as stated, or 1 s, doubling to 60 s': 'backoff',
  'after five in a row': 'breaker',
}
const NEXT: Readonly<Record<string, FailureRule['next']>> = {
  nothing: 'nothing',
  'the same key, once': 'same',
  'key, channel, model': 'keys',
  'channel, model': 'channels',
  '`context_fallback`': 'context_fallback',
  '`content_fallback`': 'content_fallback',
}
const CLIENT: Readonly<Record<string, FailureRule['client']>> = {
  'its status and words': 'words',
  '500': 'hidden',
  '429 with its words and `retry-after`': 'limited',
  "the gateway's error": 'own',
  nothing: 'nothing',
}

interface Row {
  readonly kind: string
  readonly came: string
  readonly rule: { readonly [Part in keyof FailureRule]: FailureRule[Part] | undefined }
}

const ROWS = tableUnder('Decisions after a failure').map(
  ([kind = '', came = '', blamed = '', rests = '', next = '', client = '', counted, alert = '']): Row => ({
    kind: kind.replaceAll('`', ''),
    came,
    rule: {
      blames: BLAMED[blamed],
      rest: RESTS[rests],
      next: NEXT[next],
      client: CLIENT[client],
      counts: counted === 'yes',
      alert: alert === '–' ? null : (alert.replaceAll('`', '') as FailureRule['alert']),
    },
  }),
)

test('the code has the rows of the table, and no others', () => {
  expect(Object.fromEntries(ROWS.map(({ kind, rule }) => [kind, rule]))).toEqual(FAILURES)
})

test('the page lists the answers about accounts that the code knows, and no others', () => {
  const blamed = {
    key_refused: 'the key',
    account_fault: 'the key',
    account_lacks_model: 'the key for this model',
    limited: 'only a limit',
  }
  const known = ACCOUNT_FAULTS.map(({ provider, source, status, codes, words, kind, isOnlyThere }) => {
    const parts = [
      status?.join(', '),
      codes?.map((code) => `\`${code}\``).join(', '),
      words === undefined ? undefined : `“${words}”`,
    ]
    const answer = parts.filter((part) => part !== undefined).join(' ')
    return [`[${provider}](${source})`, answer + (isOnlyThere ? ', only there' : ''), blamed[kind]]
  })
  expect(tableUnder('Faults of accounts')).toEqual(known)
})

const WORDS = 'canary words'

/** An answer whose only choice states an error beside its finish reason. */
function choiceWith(finish_reason: string): string {
  const message = { role: 'assistant', content: null }
  return JSON.stringify({ choices: [{ index: 0, message, finish_reason, error: { message: WORDS } }] })
}

/** Examples of the table that are not a status and perhaps a code. */
const EXAMPLES: Readonly<Record<string, Behaviour>> = {
  'a stream that begins with a 400': {
    kind: 'stream',
    frames: [`data: ${errorBody(WORDS)}\n\n`],
    ending: 'no done',
  },
  'a 200 with a 400': { kind: 'whole', body: errorBody(WORDS) },
  'a 200 with a 500': { kind: 'whole', body: errorBody(WORDS, 'server_error') },
  'an answer that ended with network_error': { kind: 'whole', body: choiceWith('network_error') },
  'an answer that ended with malformed_tool_use': { kind: 'whole', body: choiceWith('malformed_tool_use') },
  'no connection': { kind: 'drop' },
  'no answer in time': { kind: 'silence' },
  'a broken answer': { kind: 'raw', bytes: 'HTTP/1.1 200 OK\r\ncontent-', ending: 'close' },
}

interface Example {
  readonly kind: FailureKind
  readonly name: string
  readonly behaviour: Behaviour
  readonly status: number | undefined
  readonly isStream: boolean
}

/** The status that an error within an answer counts as. */
function statusOfExample(name: string): number | undefined {
  const [, stated] = /with a (\d{3})$/.exec(name) ?? []
  return stated === undefined ? (name.includes('ended') ? 500 : undefined) : Number(stated)
}

/** The examples in a row, as the behaviour of a provider. */
function examplesOf({ kind, came }: Row): Example[] {
  return [...came.matchAll(/`([^`]+)`/g)].flatMap(([, name = '']) => {
    const [, digits, code] = /^(\d{3})(?: (\S+))?$/.exec(name) ?? []
    const status = digits === undefined ? statusOfExample(name) : Number(digits)
    const behaviour =
      digits === undefined
        ? EXAMPLES[name]
        : ({
            kind: 'status',
            status: Number(digits),
            body: errorBody(WORDS, 'invalid_request_error', code ?? null),
          } as const)
    return behaviour
      ? [{ kind: kind as FailureKind, name, behaviour, status, isStream: name.includes('stream') }]
      : []
  })
}

const CASES = ROWS.flatMap((row) =>
  examplesOf(row).map((example, at) => ({ ...example, rule: row.rule, at })),
)
/** Longer than this test takes, so that what rests still rests when it is asked. */
const LONG_REST = { 'retry-after': '60' }
const laneOf = ({ kind, at }: { kind: string; at: number }): string => `${kind}-${at}`

let fixture: Fixture
beforeAll(async () => {
  const lanes = CASES.map(laneOf)
  fixture = await startFixture((upstream) => ({
    models: {
      ...priced(lanes.flatMap((lane) => [`${lane}-other`, `${lane}-alone`, `${lane}-reason`])),
      ...Object.fromEntries(
        lanes.map((lane) => [
          lane,
          {
            price: { input: 2, output: 8 },
            context_fallback: [`${lane}-reason`],
            content_fallback: [`${lane}-reason`],
          },
        ]),
      ),
    },
    channels: CASES.flatMap((one) => {
      const lane = laneOf(one)
      // Others may answer late on a busy machine.
      const short = one.behaviour.kind === 'silence' && { timeouts: { first_byte: '300ms' } }
      return [
        channel(lane, upstream.baseUrl(lane), {
          models: [lane, `${lane}-other`],
          keys: ['one', 'two'],
          priority: 1,
          ...short,
        }),
        channel(`${lane}-next`, upstream.baseUrl(`${lane}-next`), { models: [lane, `${lane}-other`] }),
        channel(`${lane}-alone`, upstream.baseUrl(`${lane}-alone`), { ...short }),
        channel(`${lane}-reason`, upstream.baseUrl(`${lane}-reason`)),
      ]
    }),
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
})
afterAll(() => fixture?.close())

test('each kind of failure of a provider has an example', () => {
  const tried = new Set<string>(CASES.map(({ kind }) => kind))
  // Failures that the gateway, an operator or the client causes are tested elsewhere.
  const others = ['connection_lost', 'endpoint_missing', 'undeliverable', 'unwritten', 'stopping']
  const untried = Object.keys(FAILURES).filter((kind) => !tried.has(kind))
  expect(untried).toEqual([...others, 'call_stopped', 'client_left'])
})

describe.each(CASES)('$kind: $name', ({ kind, at, behaviour, status, isStream, rule }) => {
  const lane = laneOf({ kind, at })
  const call = (model: string) => fixture.chat('ann', isStream ? askStream(model) : ask(model))
  const keysAsked = (): string[] =>
    fixture.upstream.received(lane).map(({ headers }) => (headers.authorization ?? '').replace('Bearer ', ''))
  const count = (suffix: string): number => fixture.upstream.received(`${lane}-${suffix}`).length

  test('what is tried next, and what rests, is as the table says', async () => {
    const failing: Behaviour =
      behaviour.kind === 'status' && rule.rest === 'backoff'
        ? { ...behaviour, headers: LONG_REST }
        : behaviour
    // Only the first key fails.
    fixture.upstream.decide(lane, ({ headers }) =>
      headers.authorization === 'Bearer one' ? failing : { kind: isStream ? 'stream' : 'whole' },
    )
    const answer = await call(lane)
    const asked = { keys: keysAsked(), next: count('next'), reason: count('reason') }
    const OUTCOMES = {
      nothing: { keys: ['one'], next: 0, reason: 0 },
      same: { keys: ['one', 'one'], next: 0, reason: 0 },
      keys: { keys: ['one', 'two'], next: 0, reason: 0 },
      channels: { keys: ['one'], next: 1, reason: 0 },
      context_fallback: { keys: ['one'], next: 0, reason: 1 },
      content_fallback: { keys: ['one'], next: 0, reason: 1 },
    }
    expect(asked).toEqual(OUTCOMES[rule.next ?? 'nothing'])
    expect(answer.status).toBe(rule.next === 'nothing' ? status : 200)

    // What rests now: four more calls of the model, and four of another one at the same channel.
    const askedNow = async (model: string): Promise<{ one: number; next: number }> => {
      fixture.upstream.forget(lane)
      fixture.upstream.forget(`${lane}-next`)
      for (let more = 0; more < 4; more += 1) await call(model)
      return { one: keysAsked().filter((key) => key === 'one').length, next: count('next') }
    }
    const same = await askedNow(lane)
    const other = await askedNow(`${lane}-other`)
    // Every other call begins with the first key.
    if (rule.blames === 'key')
      expect([same, other]).toEqual([
        { one: 0, next: 0 },
        { one: 0, next: 0 },
      ])
    else if (rule.blames === 'key and model') {
      expect(same).toEqual({ one: 0, next: 0 })
      expect(other.one).toBeGreaterThan(0)
    } else if (rule.blames === 'model') {
      expect(same).toEqual({ one: 0, next: 4 })
      expect(other.one).toBeGreaterThan(0)
    } else expect(same.one).toBeGreaterThan(0)
  })

  test('what the client gets if nothing else answers is as the table says', async () => {
    fixture.upstream.script(`${lane}-alone`, behaviour)
    const { status: got, headers, text } = await call(`${lane}-alone`)
    const retryAfter = headers['retry-after']
    if (rule.client === 'words') {
      expect([got, retryAfter]).toEqual([status ?? 400, undefined])
      expect(text).toContain(WORDS)
    } else if (rule.client === 'limited') {
      expect([got, retryAfter]).toEqual([429, '1'])
      expect(text).toContain(WORDS)
    } else {
      expect([got, retryAfter]).toEqual([500, undefined])
      expect(text).not.toContain(WORDS)
      expect(JSON.parse(text).error.type).toBe('api_error')
    }
  })

  test('the breaker of the channel is as the table says', async () => {
    const model = `${lane}-other`
    fixture.upstream.script(lane, behaviour)
    for (let calls = 0; calls < 8; calls += 1) await call(model)
    fixture.upstream.forget(lane)
    await call(model)
    // The rest of a breaker may be over by now; its next attempt then decides.
    if (rule.rest === 'breaker')
      expect((await channelHealth(fixture.gateway.url, lane))?.state).toMatch(/^(resting|probing)$/)
    // A channel whose keys rest, or that lacks the model, is not asked either.
    if (rule.rest === 'none') expect(fixture.upstream.received(lane).length).toBeGreaterThan(0)
  })

  test('the metrics count it as the table says', async () => {
    const metrics = await (await fetch(`${fixture.gateway.url}/metrics`)).text()
    const isCounted = metrics.includes(`sluice_upstream_errors_total{channel="${lane}"`)
    expect(isCounted).toBe(rule.counts)
  })
})
