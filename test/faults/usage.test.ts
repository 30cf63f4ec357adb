import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MODEL, fixtureOfBoth } from '../conversion/fixture.ts'
import { audit } from '../fixtures/auditor.ts'
import {
  type Behaviour,
  completionText,
  contentFrame,
  DONE_FRAME,
  finishFrame,
  usageFrame,
} from '../fixtures/behaviour.ts'
import { databaseOf, type UsageRow } from '../fixtures/database.ts'
import { eventFrame, STOP_FRAME } from '../fixtures/messages-behaviour.ts'
import { retryWhileOverloaded, type Fixture } from '../fixtures/fixture.ts'

const QUOTA = 400_000_000_000_000
const TEXT = 'Hello there, you.'

let fixture: Fixture
beforeAll(async () => {
  fixture = await fixtureOfBoth({}, { quota: QUOTA })
})
afterAll(() => fixture?.close())

/** Prompt and output as a whole response reports them, as JSON text; `whole usage` replaces the object. */
interface Reported {
  readonly prompt?: string
  readonly output?: string
  /** The usage; undefined omits it. */
  readonly usage?: string
}

/**
 * The charge: 1 unit for a prompt token, 4 for an output token; 'counted' where the gateway counts the tokens
 * itself.
 */
const CASES: Record<string, readonly [Reported, number | 'counted']> = {
  'that can be true': [{ prompt: '10', output: '5' }, 30],
  'written with a point': [{ prompt: '10.0', output: '5e0' }, 30],
  'of more than ten times the maximum': [{ prompt: '10', output: '600' }, 2410],
  'that is missing': [{}, 'counted'],
  'that is null': [{ usage: 'null' }, 'counted'],
  'that is an array': [{ usage: '[10,5]' }, 'counted'],
  'that is a text': [{ usage: '"much"' }, 'counted'],
  'that is empty': [{ usage: '{}' }, 'counted'],
  'of nothing at all': [{ prompt: '0', output: '0' }, 'counted'],
  'without a prompt': [{ prompt: '0', output: '5' }, 20],
  'without output, though there is a text': [{ prompt: '10', output: '0' }, 'counted'],
  'with a prompt below zero': [{ prompt: '-10', output: '5' }, 'counted'],
  'with output below zero': [{ prompt: '10', output: '-5' }, 'counted'],
  'with both below zero': [{ prompt: '-1000000', output: '-1000000' }, 'counted'],
  'in halves': [{ prompt: '10.5', output: '5' }, 'counted'],
  'in halves of output': [{ prompt: '10', output: '0.5' }, 'counted'],
  'of infinity': [{ prompt: '10', output: '1e400' }, 'counted'],
  'of infinity below zero': [{ prompt: '-1e400', output: '5' }, 'counted'],
  'in texts': [{ prompt: '"10"', output: '"5"' }, 'counted'],
  'of 2^63': [{ prompt: '10', output: '9223372036854775808' }, 'counted'],
  'of 2^53 and one': [{ prompt: '9007199254740993', output: '5' }, 'counted'],
  'of true and false': [{ prompt: 'true', output: 'false' }, 'counted'],
  'of objects': [{ prompt: '{"valueOf":10}', output: '[5]' }, 'counted'],
}

const NAMES = {
  chat: ['prompt_tokens', 'completion_tokens'],
  messages: ['input_tokens', 'output_tokens'],
} as const

function usageText(protocol: 'chat' | 'messages', { prompt, output, usage }: Reported): string | null {
  const [first, second] = NAMES[protocol]
  if (usage !== undefined) return usage
  return prompt === undefined ? null : `{"${first}":${prompt},"${second}":${output}}`
}

/** A response of `TEXT` with this usage: whole, or as a stream that reports it at its end. */
function answering(protocol: 'chat' | 'messages', stream: boolean, usage: string | null): Behaviour {
  const tail = usage === null ? '' : `,"usage":${usage}`
  if (protocol === 'chat') {
    if (!stream) return { kind: 'whole', body: completionText(TEXT, usage) }
    const last = usage === null ? [] : [usageFrame(usage)]
    return frames([contentFrame(TEXT), finishFrame(), ...last, DONE_FRAME])
  }
  const head = '"id":"msg_1","type":"message","role":"assistant","model":"x"'
  if (!stream)
    return {
      kind: 'whole',
      body: `{${head},"content":[{"type":"text","text":"${TEXT}"}],"stop_reason":"end_turn"${tail}}`,
    }
  return frames([
    `event: message_start\ndata: {"type":"message_start","message":{${head},"content":[]}}\n\n`,
    ...TEXT_FRAMES,
    `event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}${tail}}\n\n`,
    STOP_FRAME,
  ])
}

const TEXT_FRAMES = [
  eventFrame('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
  eventFrame('content_block_delta', { index: 0, delta: { type: 'text_delta', text: TEXT } }),
  eventFrame('content_block_stop', { index: 0 }),
]

const frames = (all: readonly string[]): Behaviour => ({ kind: 'stream', frames: all, ending: 'no done' })

interface DialectPair {
  readonly client: 'chat' | 'messages'
  readonly upstream: 'chat' | 'messages'
  readonly stream: boolean
}

const PAIRS: readonly DialectPair[] = (['chat', 'messages'] as const).flatMap((client) =>
  (['chat', 'messages'] as const).flatMap((upstream) =>
    [false, true].map((stream) => ({ client, upstream, stream })),
  ),
)

const nameOf = ({ client, upstream, stream }: DialectPair): string =>
  `${client} client, ${upstream} upstream, ${stream ? 'stream' : 'whole'}`

/** Makes one call. Returns its response and its charge. */
async function charged({ client, upstream, stream }: DialectPair, behaviour: Behaviour): Promise<UsageRow> {
  fixture.upstream.script(MODEL[upstream], behaviour)
  const answer = await retryWhileOverloaded(() =>
    fixture.chat(
      'ann',
      { model: MODEL[upstream], max_tokens: 50, stream, messages: [{ role: 'user', content: 'hi' }] },
      { path: client === 'chat' ? '/v1/chat/completions' : '/v1/messages' },
    ),
  )
  expect(answer.status, answer.text).toBe(200)
  expect(answer.text).toContain('Hello')
  const row = databaseOf(fixture.gateway.dataDir).usageOf(String(answer.headers['x-request-id']))
  if (!row) throw new Error('there is no row')
  return row
}

/** Asserts that the charge is what a prompt of one word and `TEXT` may be counted as, in units. */
function isCounted(row: UsageRow, pair: string): void {
  expect(row.reason, pair).toBe('estimated')
  expect(row.output_tokens, pair).toBeGreaterThanOrEqual(3)
  expect(row.output_tokens, pair).toBeLessThanOrEqual(8)
  expect(row.quota, pair).toBeGreaterThan(4 * row.output_tokens)
  expect(row.quota, pair).toBeLessThan(4 * row.output_tokens + 20)
}

describe('reported usage', () => {
  test.each(Object.entries(CASES))(
    'usage that an upstream reports as %s is charged as reported if it is possible, and else counted by the gateway',
    async (_, [reported, expected]) => {
      for (const pair of PAIRS) {
        const row = await charged(
          pair,
          answering(pair.upstream, pair.stream, usageText(pair.upstream, reported)),
        )
        if (expected === 'counted') isCounted(row, nameOf(pair))
        else expect(row, nameOf(pair)).toMatchObject({ quota: expected, reason: 'complete' })
      }
    },
  )
})

/**
 * Usage with one unusual detail, by the dialect that reports it, and its charge: a cached token costs ¼, a
 * written one 1¼.
 */
const ODD_DETAILS: Record<string, readonly ['chat' | 'messages', string, number]> = {
  'more cached tokens than the prompt has': [
    'chat',
    '{"prompt_tokens":300,"completion_tokens":5,"total_tokens":305,"prompt_tokens_details":{"cached_tokens":387}}',
    95,
  ],
  'more reasoning than output': [
    'chat',
    '{"prompt_tokens":10,"completion_tokens":16,"total_tokens":26,"completion_tokens_details":{"reasoning_tokens":19}}',
    74,
  ],
  'a prompt both read from a cache and written to it': [
    'chat',
    '{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25,"prompt_tokens_details":{"cached_tokens":12,"cache_write_tokens":12}}',
    37,
  ],
  'fewer cached tokens than none (chat)': [
    'chat',
    '{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-5}}',
    30,
  ],
  'fewer cached tokens than none (messages)': [
    'messages',
    '{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":-5}',
    30,
  ],
}

describe('usage with one unusual detail', () => {
  test.each(Object.entries(ODD_DETAILS))(
    'usage that an upstream reports with one unusual detail is charged as reported: %s',
    async (_, [upstream, usage, quota]) => {
      for (const pair of PAIRS.filter((each) => each.upstream === upstream))
        expect(await charged(pair, answering(upstream, pair.stream, usage)), nameOf(pair)).toMatchObject({
          quota,
          reason: 'complete',
        })
    },
  )
})

describe('usage that a stream reports more than once', () => {
  const chat = (...usages: string[]): Behaviour =>
    frames([
      contentFrame(TEXT),
      finishFrame(usages[0]),
      ...usages.slice(1).map((usage) => usageFrame(usage)),
      DONE_FRAME,
    ])
  const start = (usage: string): string =>
    `event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"x","content":[],"usage":${usage}}}\n\n`
  const delta = (usage: string): string =>
    `event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":${usage}}\n\n`
  const messages = (first: string, ...more: string[]): Behaviour =>
    frames([start(first), ...TEXT_FRAMES, ...more.map(delta), STOP_FRAME])
  const streams = (upstream: 'chat' | 'messages'): DialectPair[] =>
    PAIRS.filter((pair) => pair.stream && pair.upstream === upstream)

  test('the usage that a stream reports last is charged, even if an earlier report was higher', async () => {
    for (const pair of streams('chat')) {
      const shrinking = chat(
        '{"prompt_tokens":10,"completion_tokens":9}',
        '{"prompt_tokens":8,"completion_tokens":5}',
      )
      expect(await charged(pair, shrinking), nameOf(pair)).toMatchObject({ quota: 28, reason: 'complete' })
    }
    for (const pair of streams('messages')) {
      const shrinking = messages('{"input_tokens":10,"output_tokens":9}', '{"output_tokens":5}')
      expect(await charged(pair, shrinking), nameOf(pair)).toMatchObject({ quota: 30, reason: 'complete' })
    }
  })

  test('usage of a stream counts as missing if the last report is impossible, whatever was reported before', async () => {
    for (const last of [
      '{"output_tokens":-5}',
      '{"output_tokens":1e400}',
      '{"output_tokens":"5"}',
      '{"output_tokens":0.5}',
    ]) {
      for (const pair of streams('messages'))
        isCounted(
          await charged(pair, messages('{"input_tokens":10,"output_tokens":1}', last)),
          `${nameOf(pair)} ${last}`,
        )
    }
  })

  test('usage of a stream counts as missing if only the beginning of the stream reports it, before any output', async () => {
    for (const pair of streams('messages'))
      isCounted(await charged(pair, messages('{"input_tokens":10,"output_tokens":1}', 'null')), nameOf(pair))
  })
})

/** Usage with a prompt of a thousand tokens, 400 of them cached at a quarter, and an impossible output. */
const PROMPTS: Record<'chat' | 'messages', readonly string[]> = {
  chat: [
    '{"prompt_tokens":1000,"completion_tokens":null,"prompt_tokens_details":{"cached_tokens":400}}',
    '{"prompt_tokens":1000,"completion_tokens":2000000000,"prompt_tokens_details":{"cached_tokens":400}}',
  ],
  messages: [
    '{"input_tokens":600,"cache_read_input_tokens":400}',
    '{"input_tokens":600,"cache_read_input_tokens":400,"output_tokens":-5}',
  ],
}

describe('a prompt that is reported without its output', () => {
  const isKept = (row: UsageRow, reason: string, pair: string): void => {
    expect(row, pair).toMatchObject({ reason, cache_read_tokens: 400 })
    expect(row.output_tokens, pair).toBeGreaterThanOrEqual(3)
    expect(row.output_tokens, pair).toBeLessThanOrEqual(8)
    expect(row.quota, pair).toBe(600 + 400 / 4 + 4 * row.output_tokens)
  }

  test('a prompt reported without its output is charged as reported, and the output as counted by the gateway', async () => {
    for (const pair of PAIRS)
      for (const usage of PROMPTS[pair.upstream])
        isKept(
          await charged(pair, answering(pair.upstream, pair.stream, usage)),
          'estimated',
          `${nameOf(pair)} ${usage}`,
        )
  })

  test('a prompt that a stream reports only at its beginning is charged as reported, also if the stream is cut off', async () => {
    const [inChat = '', inMessages = ''] = [PROMPTS.chat[0], PROMPTS.messages[0]]
    const start = `event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"x","content":[],"usage":${inMessages}}}\n\n`
    const delta =
      'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'
    const began = { chat: [usageFrame(inChat), contentFrame(TEXT)], messages: [start, ...TEXT_FRAMES] }
    const ended = { chat: [finishFrame(), DONE_FRAME], messages: [delta, STOP_FRAME] }
    for (const pair of PAIRS.filter(({ stream }) => stream)) {
      const { upstream } = pair
      const whole = frames([...began[upstream], ...ended[upstream]])
      isKept(await charged(pair, whole), 'estimated', nameOf(pair))
      const cut: Behaviour = { kind: 'stream', frames: began[upstream], ending: 'close' }
      isKept(await charged(pair, cut), 'cut', `${nameOf(pair)}, cut`)
    }
  })
})

test('after all odd usage reports the balance, the sums and the usage log agree, and no charge is negative', async () => {
  const granted = { tokens: new Map([['token-ann', QUOTA]]), users: new Map([['ann', QUOTA]]) }
  await expect.poll(() => audit(fixture.gateway.dataDir, [], granted)).toEqual([])
})
