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
const novelties = names().map((name) => ({ type: `secret_${name}`, secret: name }))

const media = base64.chain((data) =>
  fc.constantFrom(
    { type: 'input_image', image_url: `data:image/png;base64,${data}`, detail: 'high' },
    { type: 'input_image', image_url: 'https://media.test/a.png' },
    { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${data}` },
    { type: 'input_file', file_url: 'https://media.test/a.pdf' },
    { type: 'input_audio', input_audio: { data, format: 'wav' } },
  ),
)
const content = (type: string): fc.Arbitrary<unknown> =>
  fc.oneof(
    texts(),
    fc.array(
      fc.oneof(
        { weight: 4, arbitrary: fc.record({ type: fc.constant(type), text: texts() }) },
        {
          weight: 1,
          arbitrary:
            type === 'input_text' ? media : fc.record({ type: fc.constant('refusal'), refusal: texts() }),
        },
        { weight: 1, arbitrary: novelties },
      ),
      { maxLength: 3 },
    ),
  )

const said = fc.oneof(
  fc.record({ role: fc.constantFrom('user', 'system', 'developer'), content: texts() }),
  fc.record({ type: fc.constant('message'), role: fc.constant('user'), content: content('input_text') }),
  fc.record({
    type: fc.constant('message'),
    role: fc.constant('assistant'),
    content: content('output_text'),
  }),
  fc.record({
    type: fc.constant('reasoning'),
    summary: fc.array(
      words().map((text) => ({ type: 'summary_text', text })),
      { maxLength: 2 },
    ),
    encrypted_content: maybe(words()),
  }),
  novelties,
  fc.record({
    type: fc.constant('web_search_call'),
    status: fc.constantFrom('completed', 'failed'),
    action: maybe(fc.record({ type: fc.constantFrom('search', 'open_page'), query: texts() })),
  }),
  fc.constantFrom({ type: 'item_reference', id: 'msg_1' }, { type: 'compaction', encrypted_content: 'x' }),
)

/** A call, anything in between, and its output. */
const rounds = fc
  .record({
    id: fc.nat(1e9).map((id) => `call_${id}`),
    kind: fc.constantFrom('function', 'custom', 'namespaced', 'local_shell', 'apply_patch', 'tool_search'),
    name: names(),
    input: fc.oneof(objectTexts(), fc.constantFrom('', 'null', 'not json', '[1]')),
    object: objectTexts().map((text) => new Raw(text)),
    text: texts(),
    output: content('input_text'),
    between: fc.array(said, { maxLength: 1 }),
  })
  .map(({ id, kind, name, input, object, text, output, between }): unknown[] => {
    const call_id = id
    const result = { type: 'function_call_output', call_id, output }
    switch (kind) {
      case 'custom':
        return [
          { type: 'custom_tool_call', call_id, name, input: text },
          ...between,
          { type: 'custom_tool_call_output', call_id, output },
        ]
      case 'local_shell':
        return [
          {
            type: 'local_shell_call',
            id: 'lsh_1',
            call_id,
            action: { type: 'exec', command: [name], env: {} },
          },
          ...between,
          { type: 'local_shell_call_output', id, output: text },
        ]
      case 'apply_patch':
        return [
          { type: 'apply_patch_call', call_id, operation: { type: 'create_file', path: name, diff: text } },
          ...between,
          { type: 'apply_patch_call_output', call_id, status: 'completed', output: text },
        ]
      case 'tool_search':
        return [
          { type: 'tool_search_call', call_id, execution: 'client', arguments: object },
          ...between,
          { type: 'tool_search_output', call_id, execution: 'client', tools: [{ type: 'function', name }] },
        ]
      case 'function':
      case 'namespaced': {
        const namespace = kind === 'namespaced' ? { namespace: `ns ${name}` } : {}
        return [{ type: 'function_call', call_id, name, arguments: input, ...namespace }, ...between, result]
      }
    }
  })

const items = fc
  .array(
    fc.oneof(
      said.map((item): unknown[] => [item]),
      rounds,
    ),
    { minLength: 1, maxLength: 4 },
  )
  .map((all) => all.flat())

const functions = fc.record({
  type: fc.constant('function'),
  name: names(),
  description: maybe(texts()),
  parameters: maybe(objectTexts(1).map((text) => new Raw(text))),
  strict: maybe(fc.boolean()),
})
const customs = fc.record({
  type: fc.constant('custom'),
  name: names(),
  description: maybe(texts()),
  format: maybe(
    fc.oneof(
      fc.constant({ type: 'text' }),
      words().map((definition) => ({ type: 'grammar', syntax: 'lark', definition })),
    ),
  ),
})
const tools = fc.array(
  fc.oneof(
    functions,
    customs,
    fc.record({
      type: fc.constant('namespace'),
      name: texts(),
      description: texts(),
      tools: fc.array(fc.oneof(functions, customs), { maxLength: 2 }),
    }),
    fc.constantFrom(
      { type: 'local_shell' },
      { type: 'shell' },
      { type: 'apply_patch' },
      { type: 'tool_search', execution: 'client' },
      { type: 'web_search', search_context_size: 'low' },
      { type: 'image_generation' },
    ),
    novelties,
  ),
  { maxLength: 4 },
)

/** Valid requests of the Responses API, as JSON text. */
export function responsesRequests(): fc.Arbitrary<string> {
  return fc
    .record({
      model: fc.constantFrom('model-1', 'gpt-5', 'claude-opus-5', 'claude-3-5-haiku'),
      input: fc.oneof(
        texts().map((text) => text || 'word'),
        items,
      ),
      instructions: maybe(texts()),
      stream: maybe(fc.boolean()),
      store: maybe(fc.boolean()),
      max_output_tokens: maybe(fc.integer({ min: 1, max: 100_000 })),
      temperature: maybe(fc.constantFrom(0, 0.5, 1, 2)),
      top_p: maybe(fc.constantFrom(0, 0.5, 1)),
      tools: maybe(tools),
      tool_choice: maybe(fc.constantFrom('auto', 'required', 'none')),
      parallel_tool_calls: maybe(fc.boolean()),
      reasoning: maybe(
        fc.constantFrom({ effort: 'high', summary: 'auto' }, { effort: 'none' }, { effort: null }, {}),
      ),
      text: maybe(
        fc.oneof(
          fc.constantFrom(
            { format: { type: 'text' } },
            { verbosity: 'low' },
            { format: { type: 'json_object' } },
          ),
          objectTexts(1).map((schema) => ({
            format: { type: 'json_schema', name: 'n', schema: new Raw(schema) },
          })),
        ),
      ),
      include: maybe(fc.constantFrom([], ['reasoning.encrypted_content'])),
      metadata: maybe(fc.constantFrom({}, { a: 'b' })),
      service_tier: maybe(fc.constantFrom('auto', 'flex')),
      truncation: maybe(fc.constantFrom('auto', 'disabled')),
      secret_field: maybe(fc.constant(1)),
    })
    .map(jsonText)
}
