import {
  type Behaviour,
  completionText,
  DONE_FRAME,
  errorBody,
  finishFrame,
  roleFrame,
  usageFrame,
  usageText,
} from '../../test/fixtures/behaviour.ts'
import {
  eventFrame,
  messageFrames,
  messagesErrorText,
  streamedMessage,
  wholeMessage,
} from '../../test/fixtures/messages-behaviour.ts'
import {
  frames,
  responsesUsage,
  streamedResponse,
  wholeResponse,
} from '../../test/fixtures/responses-behaviour.ts'
import { cohereAnswer, scored } from '../../test/fixtures/rerank-behaviour.ts'
import type { Received, ScriptedUpstream } from '../../test/fixtures/scripted-upstream.ts'

/** The default answer. */
const GREETING = 'Hello there.'
const AFTER_TOOL = 'It is sunny in Bern.'
const STRUCTURED = '{"city":"Bern","degrees":21}'
const CALL = { id: 'call_1', name: 'get_weather', input: '{"city":"Bern"}' }
const COUNTS = { input_tokens: 10, output_tokens: 5 }

/** Lanes of the upstream that answer prompts, by protocol. */
type Lane = 'chat' | 'messages' | 'responses'

/**
 * Makes the lanes `chat`, `messages`, `responses` and `rerank` play the scenario that a prompt names, so that
 * a test in any language can select it: `scenario: greet`, `tool`, `structured`, `forever`, `status 429`,
 * `status 529 once`. A word after it distinguishes one test's requests from another's.
 */
export function playScenarios(upstream: ScriptedUpstream): void {
  const failedOnce = new Set<string>()
  for (const lane of ['chat', 'messages', 'responses'] as const)
    upstream.decide(lane, (request) => conversation(lane, request, failedOnce))
  upstream.decide('rerank', () => cohereAnswer(scored(0.1, 0.9, 0.5), '2'))
}

function conversation(lane: Lane, { path, text }: Received, failedOnce: Set<string>): Behaviour {
  if (path.endsWith('/count_tokens')) return { kind: 'whole', body: '{"input_tokens":42}' }
  const [, scenario = 'greet', word = ''] =
    /scenario: ((?:status \d{3}(?: once)?)|\w+) ?([\w-]*)/.exec(text) ?? []
  const [, status] = /^status (\d{3})/.exec(scenario) ?? []
  if (status !== undefined && !(scenario.endsWith('once') && failedOnce.has(word))) {
    failedOnce.add(word)
    return refusal(lane, Number(status))
  }
  const streams = /"stream":\s*true/.test(text)
  if (scenario === 'forever') return forever(lane)
  if (scenario === 'structured') return answer(lane, streams, STRUCTURED)
  const hasResult = /"tool_result"|"role":\s*"tool"|"function_call_output"/.test(text)
  if (scenario === 'tool' && !hasResult) return toolCall(lane, streams)
  return answer(lane, streams, scenario === 'tool' ? AFTER_TOOL : GREETING)
}

function refusal(lane: Lane, status: number): Behaviour {
  const message = `the scenario asked for ${status}`
  const body = lane === 'messages' ? messagesErrorText('invalid_request_error', message) : errorBody(message)
  return { kind: 'status', status, body, headers: { 'retry-after': '0' } }
}

function answer(lane: Lane, streams: boolean, text: string): Behaviour {
  if (lane === 'messages')
    return streams ? streamedMessage([{ text }], { counts: COUNTS }) : wholeMessage([{ text }])
  if (lane === 'responses') return response({ text }, streams)
  if (!streams) return { kind: 'whole', content: text, usage: usageText(10, 5) }
  return chatStream(
    text.split(/(?<= )/).map((content) => ({ content })),
    'stop',
  )
}

function toolCall(lane: Lane, streams: boolean): Behaviour {
  if (lane === 'messages') return streams ? streamedMessage([CALL], { counts: COUNTS }) : wholeMessage([CALL])
  if (lane === 'responses') return response({ calls: [CALL] }, streams)
  const { id, name, input } = CALL
  const whole = { id, type: 'function', function: { name, arguments: input } }
  if (!streams) {
    const body = completionText('', usageText(10, 5))
      .replace('"content":""', `"content":null,"tool_calls":[${JSON.stringify(whole)}]`)
      .replace('"finish_reason":"stop"', '"finish_reason":"tool_calls"')
    return { kind: 'whole', body }
  }
  const pieces = [
    { index: 0, ...whole, function: { name, arguments: '' } },
    ...[input.slice(0, 5), input.slice(5)].map((text) => ({ index: 0, function: { arguments: text } })),
  ]
  return chatStream(
    pieces.map((piece) => ({ tool_calls: [piece] })),
    'tool_calls',
  )
}

function response(content: Parameters<typeof wholeResponse>[0], streams: boolean): Behaviour {
  const said = { ...content, usage: responsesUsage(10, 5) }
  return streams ? streamedResponse(said) : wholeResponse(said)
}

function chatStream(deltas: readonly object[], reason: string): Behaviour {
  const frames = [
    roleFrame(),
    ...deltas.map((delta) => chunk({ index: 0, delta, finish_reason: null })),
    finishFrame().replace('"finish_reason":"stop"', `"finish_reason":"${reason}"`),
    usageFrame(usageText(10, 5)),
    DONE_FRAME,
  ]
  return { kind: 'stream', frames }
}

function chunk(choice: object): string {
  const base = {
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'upstream-model',
  }
  return `data: ${JSON.stringify({ ...base, choices: [choice] })}\n\n`
}

/** A stream that continues until its client leaves; it is limited, in case the client never does. */
function forever(lane: Lane): Behaviour {
  const events = 2_000
  if (lane === 'chat') return { kind: 'stream', events, paceMs: 20 }
  if (lane === 'responses') return foreverResponse(events)
  const [start = '', ...rest] = messageFrames([{ text: 'word ' }])
  const [begin = ''] = rest
  const delta = eventFrame('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'word ' } })
  const frames = [start, begin, ...Array.from({ length: events }, () => delta)]
  return { kind: 'stream', frames, paceMs: 20, ending: 'no done' }
}

function foreverResponse(events: number): Behaviour {
  const all = frames({ text: 'word ' })
  const first = all.findIndex((frame) => frame.includes('.delta'))
  const deltas = Array.from({ length: events }, () => all[first] ?? '')
  return { kind: 'stream', frames: [...all.slice(0, first), ...deltas], paceMs: 20, ending: 'no done' }
}
