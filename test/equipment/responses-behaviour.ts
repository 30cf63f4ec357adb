import type { Streamed, Whole } from './behaviour.ts'

/** The content of a response; a call's arguments are given as JSON text. */
export interface ResponsesContent {
  readonly text?: string
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly input: string }[]
  /** The JSON text of the usage object. */
  readonly usage?: string
}

/** Unusual spacing and a large number reveal any rewriting by the gateway. */
const HEAD =
  '"id":"resp_upstream",  "object":"response","created_at":1700000000,"model":"upstream-model","x_unknown":9007199254740993'

/** The text with the upstream's own response id in place of the one that the gateway issued. */
export function upstreamNamed(text: string): string {
  return text.replaceAll(/"resp_[0-9a-f]{44}"/g, '"resp_upstream"')
}

/** The usage object of the responses dialect as JSON text. */
export function responsesUsage(input: number, output: number, cached = 0): string {
  return `{"input_tokens":${input},"input_tokens_details":{"cached_tokens":${cached}},"output_tokens":${output},"output_tokens_details":{"reasoning_tokens":0},"total_tokens":${input + output}}`
}

/** A whole response. */
export function wholeResponse(content: ResponsesContent): Whole {
  return { kind: 'whole', body: `${responseText('completed', content)}\n` }
}

/** The same content as a stream. */
export function streamedResponse(
  content: ResponsesContent,
  ending: Streamed['ending'] = 'no done',
): Streamed {
  return { kind: 'stream', frames: frames(content), ending }
}

/** The frames of a stream, in order. */
export function frames(content: ResponsesContent): string[] {
  const events: [type: string, members: string][] = [
    ['response.created', `"response":${responseText('in_progress', {})}`],
    ['response.in_progress', `"response":${responseText('in_progress', {})}`],
  ]
  for (const [index, item] of itemsOf(content).entries()) {
    const at = `"output_index":${index}`
    const of = `"item_id":"${item.id}",${at}`
    const deltas = [item.text.slice(0, 3), item.text.slice(3)].map((text) => JSON.stringify(text))
    const isCall = item.kind === 'function_call'
    const kind = isCall ? 'function_call_arguments' : 'output_text'
    const inContent = isCall ? '' : ',"content_index":0'
    events.push(['response.output_item.added', `${at},"item":${item.empty}`])
    if (!isCall) events.push(['response.content_part.added', `${of},"content_index":0,"part":${part('')}`])
    for (const delta of deltas) events.push([`response.${kind}.delta`, `${of}${inContent},"delta":${delta}`])
    const whole = `"${isCall ? 'arguments' : 'text'}":${JSON.stringify(item.text)}`
    events.push([`response.${kind}.done`, `${of}${inContent},${whole}`])
    if (!isCall)
      events.push(['response.content_part.done', `${of},"content_index":0,"part":${part(item.text)}`])
    events.push(['response.output_item.done', `${at},"item":${item.whole}`])
  }
  events.push(['response.completed', `"response":${responseText('completed', content)}`])
  return events.map(
    ([type, members], number) =>
      `event: ${type}\ndata: {"type":"${type}","sequence_number":${number},  ${members}}\n\n`,
  )
}

function responseText(status: string, content: ResponsesContent): string {
  const output = itemsOf(content).map(({ whole }) => whole)
  const usage = status === 'completed' ? (content.usage ?? responsesUsage(10, 5)) : 'null'
  return `{${HEAD},"status":"${status}","error":null,"incomplete_details":null,"output":[${output.join(',')}],"parallel_tool_calls":true,"tools":[],"usage":${usage}}`
}

function itemsOf({ text, calls = [] }: ResponsesContent): {
  readonly id: string
  readonly kind: 'message' | 'function_call'
  readonly text: string
  readonly empty: string
  readonly whole: string
}[] {
  const message = (status: string, content: string): string =>
    `{"id":"msg_1","type":"message","role":"assistant","status":"${status}","content":[${content}]}`
  return [
    ...(text === undefined
      ? []
      : [
          {
            id: 'msg_1',
            kind: 'message' as const,
            text,
            empty: message('in_progress', ''),
            whole: message('completed', part(text)),
          },
        ]),
    ...calls.map(({ id, name, input }) => {
      const item = (status: string, given: string): string =>
        JSON.stringify({
          id: `fc_${id}`,
          type: 'function_call',
          status,
          call_id: id,
          name,
          arguments: given,
        })
      return {
        id: `fc_${id}`,
        kind: 'function_call' as const,
        text: input,
        empty: item('in_progress', ''),
        whole: item('completed', input),
      }
    }),
  ]
}

function part(text: string): string {
  return `{"type":"output_text","text":${JSON.stringify(text)},"annotations":[]}`
}
