/** Text and tool calls of a response, as a client reads them. */
export interface Seen {
  readonly text: string
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[]
}

/**
 * A client of one dialect. Its request has an image, a tool call with its result, and tools for the next
 * call.
 */
export interface ConversingClient {
  path(model: string, stream: boolean): string
  body(model: string, stream: boolean): object
  /** Reads a response, whole or as the events of a stream. */
  read(text: string, stream: boolean): Seen
  /** Whether the client regards a stream as complete. */
  isFinished(text: string): boolean
}

/** The bytes of the image in base64, and the result of the earlier call. */
export const PICTURE =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
export const RESULT = 'seen at noon'

const SCHEMA = { type: 'object', properties: { at: { type: 'integer' } }, required: ['at'] }
const DATA_URL = `data:image/png;base64,${PICTURE}`
const EARLIER = { id: 'c0', name: 'look', input: { at: 0 } }

type Json = ReturnType<typeof JSON.parse>

const events = (text: string): Json[] =>
  text
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data: {'))
    .map((line): Json => JSON.parse(line.slice('data: '.length)))

/** The clients by dialect. */
export const CLIENTS: Readonly<Record<'chat' | 'messages' | 'responses' | 'gemini', ConversingClient>> = {
  chat: {
    path: () => '/v1/chat/completions',
    body: (model, stream) => ({
      model,
      stream,
      max_tokens: 100,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'hi' },
            { type: 'image_url', image_url: { url: DATA_URL } },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            {
              id: EARLIER.id,
              type: 'function',
              function: { name: EARLIER.name, arguments: JSON.stringify(EARLIER.input) },
            },
          ],
        },
        { role: 'tool', tool_call_id: EARLIER.id, content: RESULT },
      ],
      tools: [{ type: 'function', function: { name: 'look', parameters: SCHEMA } }],
    }),
    read(text, stream) {
      const messages = stream
        ? events(text).flatMap(({ choices }) => choices.map(({ delta }: Json) => delta))
        : [JSON.parse(text).choices[0].message]
      const calls: { id: string; name: string; input: string }[] = []
      for (const call of messages.flatMap(({ tool_calls: made = [] }) => made as Json[])) {
        const at = call['index'] ?? 0
        calls[at] ??= { id: call['id'], name: call['function'].name, input: '' }
        calls[at].input += call['function'].arguments
      }
      return {
        text: messages.map(({ content }) => content ?? '').join(''),
        calls: calls.map((call) => ({ ...call, input: JSON.parse(call.input) as unknown })),
      }
    },
    isFinished: (text) => text.includes('[DONE]'),
  },
  messages: {
    path: () => '/v1/messages',
    body: (model, stream) => ({
      model,
      stream,
      max_tokens: 100,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'hi' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PICTURE } },
          ],
        },
        { role: 'assistant', content: [{ type: 'tool_use', ...EARLIER }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: EARLIER.id, content: RESULT }] },
      ],
      tools: [{ name: 'look', input_schema: SCHEMA }],
    }),
    read(text, stream) {
      const blocks: Json[] = stream ? streamedBlocks(events(text)) : JSON.parse(text).content
      return {
        text: blocks.map(({ text: said = '' }) => said as string).join(''),
        calls: blocks
          .filter(({ type }) => type === 'tool_use')
          .map(({ id, name, input }) => ({ id, name, input })),
      }
    },
    isFinished: (text) => text.includes('message_stop'),
  },
  responses: {
    path: () => '/v1/responses',
    body: (model, stream) => ({
      model,
      stream,
      max_output_tokens: 100,
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'hi' },
            { type: 'input_image', image_url: DATA_URL },
          ],
        },
        {
          type: 'function_call',
          call_id: EARLIER.id,
          name: EARLIER.name,
          arguments: JSON.stringify(EARLIER.input),
        },
        { type: 'function_call_output', call_id: EARLIER.id, output: RESULT },
      ],
      tools: [{ type: 'function', name: 'look', parameters: SCHEMA, strict: false }],
    }),
    read(text, stream) {
      const last = (): Json => events(text).find(({ type }) => type === 'response.completed').response
      const { output } = stream ? last() : JSON.parse(text)
      return {
        text: output
          .flatMap(({ content = [] }: Json) => content)
          .map(({ text: said }: Json) => said)
          .join(''),
        calls: output
          .filter(({ type }: Json) => type === 'function_call')
          .map((call: Json) => ({
            id: call['call_id'],
            name: call['name'],
            input: JSON.parse(call['arguments']),
          })),
      }
    },
    isFinished: (text) => text.includes('event: response.completed'),
  },
  gemini: {
    path: (model, stream) =>
      `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: () => ({
      contents: [
        { role: 'user', parts: [{ text: 'hi' }, { inlineData: { mimeType: 'image/png', data: PICTURE } }] },
        {
          role: 'model',
          parts: [{ functionCall: { id: EARLIER.id, name: EARLIER.name, args: EARLIER.input } }],
        },
        {
          role: 'user',
          parts: [{ functionResponse: { id: EARLIER.id, name: EARLIER.name, response: { output: RESULT } } }],
        },
      ],
      tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: SCHEMA }] }],
      generationConfig: { maxOutputTokens: 100 },
    }),
    read(text, stream) {
      const chunks = stream ? events(text) : [JSON.parse(text)]
      const parts = chunks.flatMap(({ candidates }) => candidates[0].content.parts as Json[])
      return {
        text: parts.map(({ text: said = '' }) => said as string).join(''),
        calls: parts
          .flatMap(({ functionCall }) => (functionCall ? [functionCall] : []))
          .map(({ id, name, args }) => ({ id, name, input: args })),
      }
    },
    isFinished: (text) => text.includes('"finishReason"'),
  },
}

/** The blocks of a stream of the messages dialect. */
function streamedBlocks(all: readonly Json[]): Json[] {
  const blocks: Json[] = []
  const inputs: string[] = []
  for (const { type, index, content_block: started, delta } of all)
    if (type === 'content_block_start') blocks[index] = { ...started }
    else if (delta?.text !== undefined) blocks[index].text += delta.text
    else if (delta?.partial_json !== undefined) inputs[index] = (inputs[index] ?? '') + delta.partial_json
  return blocks.map((block, at) =>
    inputs[at] === undefined ? block : { ...block, input: JSON.parse(inputs[at] || '{}') },
  )
}
