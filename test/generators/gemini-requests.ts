import fc from 'fast-check'
import { jsonText, names, objectTexts, Raw, texts, words } from './json.ts'

const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined | null> =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary },
    { weight: 1, arbitrary: fc.constant(null) },
  )

const base64 = fc
  .uint8Array({ minLength: 1, maxLength: 12 })
  .map((bytes) => Buffer.from(bytes).toString('base64'))
const novelties = names().map((name) => ({ [`secret_${name}`]: { secret: name } }))
const signatures = maybe(base64)

const media = base64.chain((data) =>
  fc.constantFrom(
    { inlineData: { mimeType: 'image/png', data } },
    { inline_data: { mime_type: 'application/pdf', data } },
    { inlineData: { mimeType: 'audio/wav', data } },
    { fileData: { fileUri: 'https://media.test/a.png', mimeType: 'image/png' } },
    { fileData: { fileUri: 'gs://secret/a.png' } },
  ),
)

const said = fc.oneof(
  fc.record({
    role: fc.constantFrom('user', undefined),
    parts: fc.array(
      fc.oneof(
        { weight: 4, arbitrary: texts().map((text) => ({ text })) },
        { weight: 1, arbitrary: media },
        { weight: 1, arbitrary: novelties },
      ),
      { maxLength: 3 },
    ),
  }),
  fc.record({
    role: fc.constant('model'),
    parts: fc.array(
      fc.oneof(
        fc.record({ text: texts(), thought: maybe(fc.boolean()), thoughtSignature: signatures }),
        words().map((code) => ({ executableCode: { language: 'PYTHON', code } })),
      ),
      { maxLength: 3 },
    ),
  }),
)

/** A step of calls, and their responses in any order. */
const rounds = fc
  .record({
    calls: fc.array(
      fc.record({
        id: fc.option(names(), { nil: undefined }),
        name: names(),
        args: fc.option(
          objectTexts().map((text) => new Raw(text)),
          { nil: undefined },
        ),
        signature: signatures,
        response: fc.oneof(
          objectTexts().map((text) => new Raw(text)),
          words().map((output) => ({ output })),
          words().map((error) => ({ error })),
        ),
      }),
      { minLength: 1, maxLength: 3 },
    ),
    reversed: fc.boolean(),
    snake: fc.boolean(),
  })
  .map(({ calls, reversed, snake }): unknown[] => {
    const given = calls.map(({ id, ...call }, at) => ({
      ...call,
      id: id === undefined ? undefined : `${id}_${at}`,
    }))
    const responses = given.map(({ id, name, response }) => ({ functionResponse: { id, name, response } }))
    return [
      {
        role: 'model',
        parts: given.map(({ id, name, args, signature }) =>
          snake
            ? { function_call: { id, name, args }, thought_signature: signature }
            : { functionCall: { id, name, args }, thoughtSignature: signature },
        ),
      },
      { role: 'user', parts: reversed ? responses.toReversed() : responses },
    ]
  })

const contents = fc
  .tuple(
    said,
    fc.array(
      fc.oneof(
        said.map((content): unknown[] => [content]),
        rounds,
      ),
      { maxLength: 3 },
    ),
  )
  .map(([first, rest]) => [first, ...rest.flat()])

const functions = fc.record({
  name: names(),
  description: maybe(texts()),
  parametersJsonSchema: maybe(objectTexts(1).map((text) => new Raw(text))),
  parameters: maybe(
    fc.constantFrom({ type: 'OBJECT', properties: { type: { type: 'STRING', enum: ['STRING'] } } }),
  ),
})
const tools = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.array(functions, { maxLength: 2 }).map((all) => ({ functionDeclarations: all })),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom({ googleSearch: {} }, { codeExecution: {} }, { codeExecution: null }),
    },
    { weight: 1, arbitrary: novelties },
  ),
  { maxLength: 3 },
)

const config = fc.record({
  maxOutputTokens: maybe(fc.integer({ min: 1, max: 100_000 })),
  temperature: maybe(fc.constantFrom(0, 0.5, 1)),
  topP: maybe(fc.constantFrom(0, 0.5, 1)),
  topK: maybe(fc.constantFrom(1, 40)),
  stopSequences: maybe(fc.array(words(), { maxLength: 4 })),
  candidateCount: maybe(fc.constantFrom(1, 2)),
  seed: maybe(fc.integer()),
  presencePenalty: maybe(fc.constantFrom(-2, 0, 1.5)),
  frequency_penalty: maybe(fc.constantFrom(-2, 0, 1.5)),
  responseMimeType: maybe(fc.constantFrom('application/json', 'text/plain', 'text/x.enum')),
  responseJsonSchema: maybe(objectTexts(1).map((text) => new Raw(text))),
  thinkingConfig: maybe(
    fc.constantFrom<object>(
      { thinkingBudget: 0 },
      { thinkingBudget: -1, includeThoughts: true },
      { thinking_budget: 2000 },
      { thinkingLevel: 'low' },
      { thinkingLevel: 'HIGH', includeThoughts: true },
      {},
    ),
  ),
  secret_field: maybe(fc.constant(1)),
})

/** Valid requests of the Gemini API, with what their path states, as JSON text. */
export function geminiRequests(): fc.Arbitrary<string> {
  return fc
    .record({
      model: fc.constantFrom('model-1', 'gemini-2.5-pro', 'gpt-5', 'claude-opus-5'),
      stream: fc.boolean(),
      contents,
      systemInstruction: maybe(
        fc.oneof(
          texts().map((text) => ({ parts: { text } })),
          fc.record({ role: fc.constant('user'), parts: fc.array(texts().map((text) => ({ text }))) }),
        ),
      ),
      tools: maybe(tools),
      toolConfig: maybe(
        fc
          .constantFrom('AUTO', 'any', 'NONE', 'VALIDATED')
          .map((mode) => ({ functionCallingConfig: { mode } })),
      ),
      generationConfig: maybe(config),
      safetySettings: maybe(fc.constant([])),
      serviceTier: maybe(fc.constantFrom('standard', 'flex')),
      cachedContent: maybe(fc.constant(undefined)),
      secret_field: maybe(fc.constant(1)),
    })
    .map(jsonText)
}
