import type { Received } from './scripted-upstream.ts'
import type { Behaviour } from './behaviour.ts'

/** The facts of one response that an upstream made. */
export interface MadeResponse {
  readonly id: string
  readonly key: string
  readonly body: Readonly<Record<string, unknown>>
  status: string
}

/** An upstream of the responses dialect that stores its responses, separately for each key. */
export interface StoringUpstream {
  /** The responses that it made, in order. */
  readonly made: MadeResponse[]
  /** The status of background responses from now on. */
  backgroundStatus: string
  decision(request: Received): Behaviour
}

const USAGE =
  '{"input_tokens":100,"input_tokens_details":{"cached_tokens":0},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":150}'

/** A stateful upstream; its ids contain the lane that made them. */
export function storingUpstream(lane: string): StoringUpstream {
  const made: MadeResponse[] = []
  const upstream: StoringUpstream = { made, backgroundStatus: 'in_progress', decision }
  return upstream

  function decision({ method, path, headers, text }: Received): Behaviour {
    const key = String(headers['authorization'])
    const { pathname, searchParams } = new URL(path, 'http://upstream')
    const [, , , id = '', below] = pathname.split('/')
    if (method === 'POST' && (id === '' || id === 'compact')) return make(JSON.parse(text), key)
    if (method === 'POST' && id === 'input_tokens') return count(JSON.parse(text), key)
    const found = made.find((one) => one.id === id && one.key === key)
    if (!found) return missing(id)
    if (found.status === 'in_progress') found.status = upstream.backgroundStatus
    if (method === 'DELETE') {
      made.splice(made.indexOf(found), 1)
      return { kind: 'whole', body: JSON.stringify({ id, object: 'response.deleted', deleted: true }) }
    }
    if (below === 'cancel') found.status = 'cancelled'
    if (below === 'input_items')
      return {
        kind: 'whole',
        body: JSON.stringify({
          object: 'list',
          data: [{ id: 'msg_1', type: 'message', role: 'user', content: [], asked: searchParams.toString() }],
          first_id: 'msg_1',
          last_id: 'msg_1',
          has_more: false,
        }),
      }
    if (searchParams.get('stream') === 'true')
      return { kind: 'stream', frames: framesOf(found), ending: 'no done' }
    return { kind: 'whole', body: textOf(found) }
  }

  function make(body: MadeResponse['body'], key: string): Behaviour {
    const lost = lostOf(body, key)
    if (lost !== undefined) return missing(lost)
    const status = body['background'] === true ? 'in_progress' : 'completed'
    const response = { id: `resp_${lane}_${made.length + 1}`, key, body, status }
    made.push(response)
    if (body['stream'] === true) return { kind: 'stream', frames: framesOf(response), ending: 'no done' }
    return { kind: 'whole', body: textOf(response) }
  }

  function count(body: MadeResponse['body'], key: string): Behaviour {
    const lost = lostOf(body, key)
    if (lost !== undefined) return missing(lost)
    return { kind: 'whole', body: '{"object":"response.input_tokens",  "input_tokens":4711}' }
  }

  /** The id of the response that a request continues, if this key did not make it. */
  function lostOf(body: MadeResponse['body'], key: string): string | undefined {
    const previous = body['previous_response_id']
    const isLost = typeof previous === 'string' && !made.some((one) => one.id === previous && one.key === key)
    return isLost ? previous : undefined
  }

  function missing(id: string): Behaviour {
    const error = {
      message: `Previous response with id '${id}' not found.`,
      type: 'invalid_request_error',
      param: 'previous_response_id',
      code: 'previous_response_not_found',
    }
    return { kind: 'status', status: 400, body: JSON.stringify({ error }) }
  }

  function textOf({ id, body, status }: MadeResponse): string {
    const isDone = status === 'completed'
    const previous = JSON.stringify(body['previous_response_id'] ?? null)
    const reasoning = `{"id":"rs_${id}","type":"reasoning","summary":[],"encrypted_content":"sealed for ${lane} ${id}"}`
    const message = `{"id":"msg_${id}","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello from ${lane}","annotations":[]}]}`
    return `{"id":"${id}",  "object":"response","created_at":1700000000,"status":"${status}","background":${body['background'] === true},"error":null,"model":"upstream-model","output":[${isDone ? `${reasoning},${message}` : ''}],"previous_response_id":${previous},"usage":${isDone ? USAGE : 'null'},"x_big":9007199254740993}`
  }

  function framesOf(response: MadeResponse): string[] {
    const { id } = response
    const begun = textOf({ ...response, status: 'in_progress' })
    const events = [
      ['response.created', `"response":${begun}`],
      ['response.in_progress', `"response":${begun}`],
      [
        'response.output_item.added',
        `"response_id":"${id}","output_index":0,"item":{"id":"msg_${id}","type":"message"}`,
      ],
      [
        'response.output_text.delta',
        `"item_id":"msg_${id}","output_index":0,"content_index":0,"delta":"Hello from ${lane}"`,
      ],
      ['response.completed', `"response":${textOf({ ...response, status: 'completed' })}`],
    ]
    return events.map(
      ([type, members], number) =>
        `event: ${type}\ndata: {"type":"${type}","sequence_number":${number},${members}}\n\n`,
    )
  }
}
