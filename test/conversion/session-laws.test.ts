import { capabilitiesOf } from '@sluice/wire/model-capabilities'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  type MarkPlan,
  movingMarks,
  requestsOf,
  type Session,
  sessions,
  stayingMarks,
} from '../generators/sessions.ts'
import { upstreamDialect } from '../../src/call/dialects/conversion-dialects.ts'
import { channelOf } from '../samples/channel.ts'
import { lawRuns } from '../runner/tier.ts'
import { ALL_PROTOCOLS, requestAs } from './convert-through.ts'
import { convertedPrompt, type ConvertedPrompt, withoutMarks } from './converted-prompt.ts'

const UPSTREAMS = [...ALL_PROTOCOLS, 'converse'] as const
/** Names of models with different rules. */
const MODELS = ['gpt-5.6', 'claude-opus-5', 'deepseek-v4', 'mistral-large', 'gemini-2.5-pro', 'acme-1']

const PAIRS = ALL_PROTOCOLS.flatMap((from) =>
  UPSTREAMS.filter((to) => to !== from).map((to) => ({ from, to })),
)

type Pair = (typeof PAIRS)[number]

/** The prompts of a session's requests, as they are sent upstream. */
function promptsOf(
  { from, to }: Pair,
  model: string,
  requests: readonly string[],
  hasMarks: boolean,
): ConvertedPrompt[] {
  return requests.map((request) => {
    const converted = requestAs(from, to, Buffer.from(request), model, { hasMarks })
    const prompt = convertedPrompt(to, converted)
    if (!prompt) throw new Error(`refused: ${converted}`)
    return prompt
  })
}

function expectPrefixes(prompts: readonly ConvertedPrompt[]): void {
  for (const [number, prompt] of prompts.slice(1).entries()) {
    const before = prompts[number]!
    expect(prompt.front).toEqual(before.front)
    expect(prompt.history.slice(0, before.history.length)).toBe(before.history)
  }
}

describe.each(PAIRS)('the session of a client of $from at a channel of $to', (pair) => {
  test.each(MODELS)(
    'each converted request of a session to %s begins with the bytes of the previous request',
    (model) => {
      fc.assert(
        fc.property(sessions, (session) => {
          expectPrefixes(promptsOf(pair, model, requestsOf(pair.from, session), false))
        }),
        { numRuns: lawRuns(25) },
      )
    },
  )
})

/** A request with a mark for certain: few random plans may mark nothing. */
const MARKED: [Session, readonly MarkPlan[]] = [
  {
    system: 'be brief',
    rounds: [{ note: undefined, said: 'read', picture: false, again: undefined, steps: [], answer: 'done' }],
  },
  [{ tools: false, system: false, elements: [0], fromEnd: false, ttl: undefined, isBreakpoint: false }],
]

/** Gemini has no cache marks. */
const MARKING = PAIRS.filter(({ from }) => from !== 'gemini')

describe.each(MARKING)('the marked session of a client of $from at a channel of $to', (pair) => {
  test.each(MODELS)(
    'cache marks that move between requests to %s change no other byte of the converted requests',
    (model) => {
      let marks = 0
      fc.assert(
        fc.property(sessions, movingMarks, (session, plans) => {
          const prompts = promptsOf(pair, model, requestsOf(pair.from, session, plans), true)
          const plain = prompts.map(withoutMarks)
          marks += JSON.stringify(prompts).length - JSON.stringify(plain).length
          expectPrefixes(plain)
        }),
        { numRuns: lawRuns(25), examples: [MARKED] },
      )
      expect(marks > 0).toBe(takesMarks(pair, model))
    },
  )

  test.each(MODELS)(
    "a request to %s that keeps the cache marks of the previous request begins with that request's bytes",
    (model) => {
      fc.assert(
        fc.property(sessions, stayingMarks, (session, plan) => {
          expectPrefixes(promptsOf(pair, model, requestsOf(pair.from, session, [plan]), true))
        }),
        { numRuns: lawRuns(10) },
      )
    },
  )
})

function takesMarks({ to }: Pair, model: string): boolean {
  const dialect = upstreamDialect(to)
  return (
    dialect.cacheMarks(
      channelOf({ allow: new Set(['cache_control'] as const) }),
      capabilitiesOf(model, model),
    ) !== undefined
  )
}
