import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Fixture } from '../fixtures/fixture.ts'
import { byTier, casesByTier } from '../runner/tier.ts'
import { DIALECTS, type Dialect, type Facts, type Finish, type ToolCall, UNREAD } from './facts.ts'
import { framesOf, streamFacts, wholeFacts } from './read-facts.ts'
import { recordedAnswers, type Recording } from './recordings.ts'
import { askedOf, startRoads } from './roads.ts'

/** All recorded responses at night, some of them by day. */
const RECORDINGS = casesByTier(16, recordedAnswers())
/**
 * The number of positions at which a stream breaks off: after each of its events at night, after some by day.
 */
const CUTS = byTier(3, Number.POSITIVE_INFINITY)

let fixture: Fixture
beforeAll(async () => {
  fixture = await startRoads()
})
afterAll(() => fixture?.close())

/** The facts that the client gets where the provider answers with this text. */
async function answered(client: Dialect, { dialect, streamed }: Recording, text: string): Promise<Facts> {
  const answer = await askedOf(fixture, { client, dialect, streamed }, text)
  if (answer.status !== 200) return { ...NOTHING, errors: 1 }
  return (streamed ? streamFacts : wholeFacts)(client, answer.text)
}
const NOTHING: Facts = streamFacts('chat', '')

describe.each(DIALECTS)('for a client of %s', (client) => {
  test.each(RECORDINGS)(
    'a recorded response has the same content for the client, whatever its dialect: $dialect: $name',
    async (recording) => {
      const { dialect, streamed, text } = recording
      const said = (streamed ? streamFacts : wholeFacts)(dialect, text)
      const got = await answered(client, recording, text)
      expect(got).toEqual(told(got, said, { client, dialect }))
    },
  )

  // A client of another dialect gets the first of several choices, which may end before the others.
  const streams = RECORDINGS.filter(({ streamed, name }) => streamed && !name.includes('multiple-choi'))
  test.each(streams)(
    'a recorded stream cut after an event keeps its content, and ends with an error if unfinished: $dialect: $name',
    async (recording) => {
      const { dialect } = recording
      const frames = framesOf(recording.text)
      const step = Math.max(1, Math.floor(frames.length / CUTS))
      for (let count = 1; count < frames.length; count += step) {
        const cut = frames.slice(0, count).join('')
        const said = streamFacts(dialect, cut)
        const got = await answered(client, recording, cut)
        const isComplete = said.finish !== undefined || said.ends > 0
        const expected = isComplete
          ? told(got, said, { client, dialect })
          : broken(got, said, { client, dialect })
        expect({ count, ...got }).toEqual({ count, ...expected })
      }
    },
  )
})

/**
 * How a response in which the model declined ends, for clients whose dialect does not separate these words.
 */
const REFUSAL_FINISH: Partial<Record<Dialect, Finish>> = { messages: 'filter', gemini: 'stop' }

interface Road {
  readonly client: Dialect
  readonly dialect: Dialect
}

/**
 * The facts that a client must get of a response. On a native channel these are the response's own. On other
 * channels, missing counts are the gateway's, calls without an id get one, a response without a reason ended
 * normally, and one with a call that was cut off ended at the maximum of output.
 */
function told(got: Facts, said: Facts, road: Road): Facts {
  const { client, dialect } = road
  const hasCounts = said.usage !== undefined && said.usage.output > 0
  const usage = hasCounts ? said.usage : got.usage
  if (client === dialect) return { ...said, usage }
  const content = { ...contentTold(got, said, road), usage }
  if (said.errors > 0) return { ...content, finish: undefined, ends: client === 'chat' ? 1 : 0 }
  const isRefusal = said.refusal !== '' && REFUSAL_FINISH[client] !== undefined
  const usual = said.calls.length > 0 ? 'tools' : 'stop'
  if (said.calls.some(isCut)) return { ...content, finish: 'length', ends: 1 }
  return { ...content, finish: isRefusal ? REFUSAL_FINISH[client] : (said.finish ?? usual), ends: 1 }
}

/** Texts and calls; a newline represents a signature for chat clients. */
function contentTold(got: Facts, said: Facts, { client, dialect }: Road): Facts {
  const isMarked = client === 'chat' && dialect === 'messages'
  const plain = ({ reasoning }: Facts): string => reasoning.replaceAll('\n', '')
  // Dialects that separate refusals have the provider's words about one as its text.
  const added = REFUSAL_FINISH[client] ? '' : said.explanation
  return {
    ...said,
    text: said.text + added,
    explanation: added === '' ? said.explanation : '',
    reasoning: isMarked && plain(got) === plain(said) ? got.reasoning : said.reasoning,
    refusal: REFUSAL_FINISH[client] ? '' : said.refusal + added,
    calls: said.calls.map((call, i) => ({
      ...call,
      id: call.id ?? got.calls[i]?.id,
      input: inputTold(call, got.calls[i], client),
    })),
  }
}

function inputTold(call: ToolCall, got: ToolCall | undefined, client: Dialect): unknown {
  if (call.input === UNREAD) return got?.input
  return client === 'gemini' && isCut(call) ? {} : call.input
}

/** Whether the arguments are not JSON, because they were cut off. */
const isCut = ({ input }: ToolCall): boolean => typeof input === 'string'

/**
 * The facts that a client must get of a stream that broke off: the same beginning, and one error in place of
 * an end. The last call may be missing, as some dialects have none before it is complete, and its arguments
 * are a part.
 */
function broken(got: Facts, said: Facts, road: Road): Facts {
  const calls = said.calls
    .map((call, i) => (i === said.calls.length - 1 ? { ...call, input: got.calls[i]?.input } : call))
    .slice(0, Math.max(got.calls.length, said.calls.length - 1))
  const content = road.client === road.dialect ? said : contentTold(got, { ...said, calls }, road)
  return { ...content, finish: undefined, usage: got.usage, ends: 0, errors: 1 }
}
