import fc from 'fast-check'
import { jsonText, names, objectTexts, Raw, texts, words } from './json.ts'

const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined | null> =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary },
    { weight: 1, arbitrary: fc.constant(null) },
  )

const cacheControl = maybe(
  fc.constantFrom({ type: 'ephemeral' }, { type: 'ephemeral', ttl: '5m' }, { type: 'ephemeral', ttl: '1h' }),
)
const raw = objectTexts().map((text) => new Raw(text))
const base64 = fc
  .uint8Array({ minLength: 1, maxLength: 12 })
  .map((bytes) => Buffer.from(bytes).toString('base64'))
/** Values of unknown types. */
const novelties = names().map((name) => ({ type: `secret_${name}`, secret: name }))

// ---- chat

const chatText = fc.record({ type: fc.constant('text'), text: texts(), cache_control: cacheControl })
const chatMedia = base64.chain((data) =>
  fc.constantFrom(
    { type: 'image_url', image_url: { url: `data:image/png;base64,${data}`, detail: 'low' } },
    { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${data}` } },
    { type: 'file', file: { file_data: data } },
    { type: 'input_audio', input_audio: { data, format: 'wav' } },
    { type: 'video_url', video_url: { url: `data:video/mp4;base64,${data}` } },
  ),
)
const chatContent = fc.oneof(
  texts(),
  fc.array(
    fc.oneof(
      { weight: 4, arbitrary: chatText },
      { weight: 1, arbitrary: chatMedia },
      { weight: 1, arbitrary: novelties },
    ),
    {
      maxLength: 3,
    },
  ),
)
const chatCalls = fc.array(
  fc.record({
    id: fc.oneof(names(), fc.constant('functions.f:0')),
    type: fc.constant('function'),
    function: fc.record({
      name: names(),
      arguments: fc.oneof(objectTexts(), fc.constantFrom('', 'null', 'not json', '[1]')),
    }),
  }),
  { minLength: 1, maxLength: 3 },
)
const chatMessages = fc.array(
  fc.oneof(
    fc.record({ role: fc.constantFrom('system', 'developer'), content: texts() }),
    fc.record({ role: fc.constant('user'), content: chatContent, name: maybe(names()) }),
    fc.record({
      role: fc.constant('assistant'),
      content: fc.oneof(texts(), fc.constant(null)),
      tool_calls: maybe(chatCalls),
      reasoning_content: maybe(texts()),
      refusal: maybe(texts()),
    }),
    fc.record({
      role: fc.constant('tool'),
      tool_call_id: names(),
      content: fc.oneof(texts(), fc.array(chatText, { maxLength: 2 })),
    }),
    fc.record({ role: fc.constant('function'), name: names(), content: texts() }),
  ),
  { minLength: 1, maxLength: 5 },
)
const chatTools = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        type: fc.constant('function'),
        function: fc.record({
          name: names(),
          description: maybe(words()),
          parameters: maybe(raw),
          strict: maybe(fc.boolean()),
        }),
        cache_control: cacheControl,
      }),
    },
    { weight: 1, arbitrary: novelties },
  ),
  { maxLength: 3 },
)

const namedTools = names().map((name) => ({ type: 'function', function: { name } }))

/** Chat requests that pass the check, with every field of the table, as JSON text. */
export function chatRequests(): fc.Arbitrary<string> {
  return fc
    .record({
      model: fc.constantFrom(
        'claude',
        'claude-thinking',
        'claude-3-5-haiku',
        'claude-sonnet-4-5',
        'claude-opus-4-7-thinking',
        'claude-opus-5-5',
      ),
      messages: chatMessages,
      max_tokens: maybe(fc.integer({ min: 1, max: 100_000 })),
      max_completion_tokens: maybe(fc.integer({ min: 1, max: 100_000 })),
      stream: maybe(fc.boolean()),
      stream_options: maybe(fc.record({ include_usage: fc.boolean() })),
      n: maybe(fc.integer({ min: 1, max: 128 })),
      stop: maybe(fc.oneof(texts(), fc.array(texts(), { maxLength: 4 }))),
      temperature: maybe(fc.constantFrom(0, 0.7, 2)),
      top_p: maybe(fc.constantFrom(0, 0.5, 1)),
      top_k: maybe(fc.nat(100)),
      seed: maybe(fc.nat()),
      tools: maybe(chatTools),
      tool_choice: maybe(
        fc.oneof(
          fc.constantFrom('auto', 'required', 'none'),
          names().map((name) => ({ type: 'function', function: { name } })),
          fc
            .record({ mode: fc.constantFrom('auto', 'required'), tools: fc.array(namedTools) })
            .map((allowed_tools) => ({ type: 'allowed_tools', allowed_tools })),
        ),
      ),
      parallel_tool_calls: maybe(fc.boolean()),
      response_format: maybe(
        fc.oneof(
          fc.constantFrom({ type: 'text' }, { type: 'json_object' }),
          fc.record({
            type: fc.constant('json_schema'),
            json_schema: fc.record({ name: names(), schema: maybe(raw), strict: maybe(fc.boolean()) }),
          }),
        ),
      ),
      reasoning_effort: maybe(fc.constantFrom('none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max')),
      reasoning: maybe(fc.record({ max_tokens: maybe(fc.nat(50_000)), enabled: maybe(fc.boolean()) })),
      web_search_options: maybe(
        fc.record({ search_context_size: maybe(fc.constantFrom('low', 'medium', 'high')) }),
      ),
      user: maybe(fc.constant('secret user')),
      metadata: maybe(fc.constant({ secret: 'x' })),
      store: maybe(fc.boolean()),
      secret_field: maybe(raw),
    })
    .map(jsonText)
}

// ---- messages

const block = fc.record({ type: fc.constant('text'), text: texts(), cache_control: cacheControl })
const mediaBlock = base64.chain((data) =>
  fc.constantFrom(
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
    { type: 'image', source: { type: 'url', url: 'https://media.example/a.png' } },
    { type: 'image', source: { type: 'file', file_id: 'file_1' } },
    { type: 'document', title: 'A', source: { type: 'base64', media_type: 'application/pdf', data } },
    { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Hello' } },
  ),
)
const userBlocks = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: block },
    { weight: 1, arbitrary: mediaBlock },
    { weight: 1, arbitrary: novelties },
    {
      weight: 2,
      arbitrary: fc.record({
        type: fc.constant('tool_result'),
        tool_use_id: names(),
        content: maybe(fc.oneof(texts(), fc.array(fc.oneof(block, mediaBlock), { maxLength: 2 }))),
        is_error: maybe(fc.boolean()),
      }),
    },
  ),
  { maxLength: 4 },
)
/** A web search that the provider ran, and what it found. */
const searchBlocks = fc
  .record({ id: names(), query: texts(), url: names(), isForeign: fc.boolean() })
  .map(({ id, query, url, isForeign }): unknown[] => {
    const use = `srvtoolu_${isForeign ? 'sluice' : ''}${id}`
    const page = {
      type: 'web_search_result',
      url: `https://${url}.test/`,
      title: url,
      encrypted_content: 'x',
    }
    return [
      { type: 'server_tool_use', id: use, name: 'web_search', input: { query } },
      { type: 'web_search_tool_result', tool_use_id: use, content: [page] },
    ]
  })
const assistantBlocks = fc
  .array(
    fc.oneof(
      { weight: 1, arbitrary: searchBlocks },
      { weight: 4, arbitrary: block },
      { weight: 1, arbitrary: novelties },
      {
        weight: 1,
        arbitrary: fc.record({ type: fc.constant('thinking'), thinking: texts(), signature: words() }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          type: fc.constant('tool_use'),
          id: names(),
          name: names(),
          input: fc.oneof(raw, fc.constantFrom(null, '')),
        }),
      },
    ),
    { maxLength: 4 },
  )
  .map((blocks) => blocks.flat())
const messages = fc.array(
  fc.oneof(
    fc.record({ role: fc.constant('user'), content: fc.oneof(texts(), userBlocks) }),
    fc.record({ role: fc.constant('assistant'), content: fc.oneof(texts(), assistantBlocks) }),
  ),
  { minLength: 1, maxLength: 5 },
)
const messagesTools = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        name: names(),
        description: maybe(words()),
        input_schema: raw,
        cache_control: cacheControl,
      }),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        { type: 'bash_20250124', name: 'bash' },
        { type: 'web_search_20250305', name: 'web_search' },
      ),
    },
  ),
  { maxLength: 3 },
)

/** Messages requests that pass the check, with every field of the table, as JSON text. */
export function messagesRequests(): fc.Arbitrary<string> {
  return fc
    .record({
      model: fc.constantFrom('gpt', 'gpt-thinking', 'gpt-4o-mini', 'gpt-6-sol', 'o3'),
      max_tokens: fc.integer({ min: 1, max: 100_000 }),
      messages,
      system: maybe(fc.oneof(texts(), fc.array(block, { maxLength: 3 }))),
      stream: maybe(fc.boolean()),
      temperature: maybe(fc.constantFrom(0, 0.7, 1)),
      top_p: maybe(fc.constantFrom(0, 0.5, 1)),
      top_k: maybe(fc.nat(100)),
      stop_sequences: maybe(fc.array(texts(), { maxLength: 6 })),
      tools: maybe(messagesTools),
      tool_choice: maybe(
        fc.oneof(
          fc.record({
            type: fc.constantFrom('auto', 'any', 'none'),
            disable_parallel_tool_use: maybe(fc.boolean()),
          }),
          fc.record({
            type: fc.constant('tool'),
            name: names(),
            disable_parallel_tool_use: maybe(fc.boolean()),
          }),
        ),
      ),
      thinking: maybe(
        fc.oneof(
          fc.constantFrom({ type: 'disabled' }, { type: 'adaptive' }),
          fc.record({ type: fc.constant('enabled'), budget_tokens: fc.integer({ min: 1, max: 50_000 }) }),
        ),
      ),
      output_config: maybe(
        fc.record({ format: maybe(raw.map((schema) => ({ type: 'json_schema', schema }))) }),
      ),
      metadata: maybe(fc.constant({ user_id: 'secret user' })),
      service_tier: maybe(fc.constant('auto')),
      secret_field: maybe(raw),
    })
    .map(jsonText)
}
