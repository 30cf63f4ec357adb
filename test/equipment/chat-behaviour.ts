import { DONE_FRAME, type Streamed, usageFrame, usageText, type Whole } from './behaviour.ts'

/** The content of a chat response; a call's arguments are given as JSON text. */
export interface ChatContent {
  readonly text?: string
  readonly thoughts?: string
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly input: string }[]
  /** The JSON text of the usage object. */
  readonly usage?: string
}

/** A whole chat response with reasoning and tool calls. */
export function wholeChat({ text, thoughts, calls = [], usage = usageText(10, 5) }: ChatContent): Whole {
  const message = {
    role: 'assistant',
    content: text ?? null,
    ...(thoughts !== undefined && { reasoning_content: thoughts }),
    ...(calls.length > 0 && { tool_calls: calls.map(callOf) }),
  }
  const choice = { index: 0, message, logprobs: null, finish_reason: finishOf(calls) }
  return {
    kind: 'whole',
    body: `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"upstream-model","choices":[${JSON.stringify(choice)}],"usage":${usage}}`,
  }
}

/** The same content as a stream; several calls are interleaved. */
export function streamedChat({
  text,
  thoughts,
  calls = [],
  usage = usageText(10, 5),
}: ChatContent): Streamed {
  const started = calls.map(({ id, name }, index) => ({
    tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }],
  }))
  const grown = (from: number, to?: number): object[] =>
    calls.map(({ input }, index) => ({
      tool_calls: [{ index, function: { arguments: input.slice(from, to) } }],
    }))
  const deltas = [
    { role: 'assistant', content: '' },
    ...(thoughts === undefined ? [] : [{ reasoning_content: thoughts }]),
    ...(text === undefined ? [] : [{ content: text.slice(0, 3) }, { content: text.slice(3) }]),
    ...started,
    ...grown(0, 4),
    ...grown(4),
  ]
  return {
    kind: 'stream',
    frames: [
      ...deltas.map((delta) => chunkFrame(delta)),
      chunkFrame({}, finishOf(calls)),
      usageFrame(usage),
      DONE_FRAME,
    ],
    ending: 'no done',
  }
}

/** One chunk. */
export function chunkFrame(delta: object, finish: string | null = null): string {
  const choice = { index: 0, delta, logprobs: null, finish_reason: finish }
  return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"upstream-model","choices":[${JSON.stringify(choice)}]}\n\n`
}

function callOf({ id, name, input }: NonNullable<ChatContent['calls']>[number]): object {
  return { id, type: 'function', function: { name, arguments: input } }
}

function finishOf(calls: readonly unknown[]): string {
  return calls.length > 0 ? 'tool_calls' : 'stop'
}
