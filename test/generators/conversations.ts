import fc from 'fast-check'
import type {
  CacheMark,
  Conversation,
  MediaPart,
  Part,
  TextPart,
  Tool,
  ToolCallPart,
  ToolChoice,
  ToolResultPart,
  Turn,
} from '@sluice/wire/conversation'
import { names, objectTexts, words } from './json.ts'

const caches: fc.Arbitrary<{ cache?: CacheMark }> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(undefined, '5m' as const, '1h' as const).map((ttl) => ({ cache: { ttl } })),
  },
)

const textParts: fc.Arbitrary<TextPart> = fc
  .tuple(words(), caches)
  .map(([text, cache]) => ({ kind: 'text', text, ...cache }))

const base64 = fc
  .uint8Array({ minLength: 1, maxLength: 12 })
  .map((bytes) => Buffer.from(bytes).toString('base64'))

const mediaParts: fc.Arbitrary<MediaPart> = fc
  .tuple(fc.constantFrom('image/png', 'application/pdf'), base64, names(), caches)
  .map(([mediaType, data, name, cache]) => ({
    kind: 'media',
    source: { kind: 'inline', mediaType, data },
    ...(mediaType === 'application/pdf' && { name: `${name}.pdf` }),
    ...cache,
  }))

/** A user's turn with text and media. */
const spoken: fc.Arbitrary<Turn> = fc
  .array(fc.oneof({ weight: 3, arbitrary: textParts }, { weight: 1, arbitrary: mediaParts }), {
    minLength: 1,
    maxLength: 3,
  })
  .map((parts) => ({ role: 'user', parts }))

/** An assistant's turn and, where it called tools, the user's turn with their results. */
const rounds: fc.Arbitrary<Turn[]> = fc
  .record({
    said: fc.array(
      words().map((text): TextPart => ({ kind: 'text', text })),
      { maxLength: 2 },
    ),
    calls: fc.array(
      fc.record({ name: names(), input: objectTexts(), answer: fc.array(textParts, { maxLength: 2 }) }),
      {
        maxLength: 3,
      },
    ),
    turn: fc.nat(1e9),
    also: spoken,
  })
  .filter(({ said, calls }) => said.length + calls.length > 0)
  .map(({ said, calls, turn, also }) => {
    const ids = calls.map((_, i) => `call_${turn}_${i}`)
    const parts: Part[] = [
      ...said,
      ...calls.map(
        ({ name, input }, i): ToolCallPart => ({ kind: 'tool-call', id: ids[i] ?? '', name, input }),
      ),
    ]
    const results = calls.map(
      ({ answer }, i): ToolResultPart => ({
        kind: 'tool-result',
        callId: ids[i] ?? '',
        parts: answer,
        isError: false,
      }),
    )
    return [
      { role: 'assistant', parts },
      { role: 'user', parts: [...results, ...also.parts] },
    ]
  })

/** A schema that all providers enforce, with keys and digits that a parser would move or change. */
const STRICT_SCHEMA =
  '{"type": "object","properties":{"10":{"type":"string"},"2":{"type":"number","enum":[1.0,9007199254740993]}},' +
  '"required":["2","10"],"additionalProperties":false}'

const tools: fc.Arbitrary<Tool[]> = fc.uniqueArray(
  fc
    .record({
      name: names(),
      description: fc.option(words(), { nil: undefined }),
      rest: objectTexts(1),
      strict: fc.option(fc.boolean(), { nil: undefined }),
      cache: caches,
    })
    .map(
      ({ name, description, rest, strict, cache }): Tool => ({
        name,
        description,
        schema: strict ? STRICT_SCHEMA : `{"type":"object","properties":{},"x":${rest}}`,
        strict,
        ...cache,
      }),
    ),
  { selector: ({ name }) => name, minLength: 1, maxLength: 3 },
)

/** Choices among these tools; parallel calls can be forbidden only with a choice. */
const choiceOf = (
  offered: readonly Tool[],
): fc.Arbitrary<Pick<Conversation, 'toolChoice' | 'parallelTools'>> => {
  const choices: ToolChoice[] = [
    { kind: 'auto' },
    { kind: 'any' },
    ...offered.map(({ name }): ToolChoice => ({ kind: 'tool', name })),
  ]
  return fc.oneof(
    fc.constantFrom<ToolChoice | undefined>(undefined, { kind: 'none' }, ...choices).map((toolChoice) => ({
      toolChoice,
      parallelTools: undefined,
    })),
    fc.constantFrom(...choices).map((toolChoice) => ({ toolChoice, parallelTools: false })),
  )
}

const offers = fc.oneof(
  fc.constant({ tools: [] as Tool[], toolChoice: undefined, parallelTools: undefined }),
  tools.chain((offered) => choiceOf(offered).map((choice) => ({ tools: offered, ...choice }))),
)

const plain = fc.record({
  temperature: fc.option(fc.constantFrom(0, 0.3, 1), { nil: undefined }),
  topP: fc.option(fc.constantFrom(0.1, 0.9, 1), { nil: undefined }),
  thinking: fc.constant(undefined),
})

const thoughtful = fc.record({
  temperature: fc.constant(undefined),
  topP: fc.constant(undefined),
  thinking: fc
    .constantFrom('low' as const, 'medium' as const, 'high' as const)
    .map((effort) => ({ kind: 'adaptive' as const, effort })),
})

/** Conversations that both dialects can express in full. */
export function conversations(): fc.Arbitrary<Conversation> {
  return fc
    .record({
      stream: fc.boolean(),
      system: fc.array(textParts, { maxLength: 3 }),
      first: spoken,
      rounds: fc.array(rounds, { maxLength: 3 }),
      offer: offers,
      maxTokens: fc.integer({ min: 5000, max: 100_000 }),
      sampling: plain,
      stop: fc.array(words(), { maxLength: 4 }),
    })
    .map(({ first, rounds: more, offer, sampling, ...rest }) => ({
      ...rest,
      ...offer,
      ...sampling,
      model: 'model-1',
      turns: [first, ...more.flat()],
      topK: undefined,
      seed: undefined,
      presencePenalty: undefined,
      frequencyPenalty: undefined,
      webSearch: undefined,
      outputFormat: undefined,
      includeUsage: true,
    }))
}

/**
 * Conversations with thinking: the model then chooses its tools itself, and no round of tools is unfinished.
 */
export function thoughtfulConversations(): fc.Arbitrary<Conversation> {
  return fc.tuple(conversations(), thoughtful).map(([conversation, sampling]) => ({
    ...conversation,
    ...sampling,
    // The model's efforts have the same names in both dialects.
    model: 'claude-opus-5',
    turns: conversation.turns.slice(0, 1),
    toolChoice: undefined,
    parallelTools: undefined,
  }))
}
