import { GatewayError } from '../../src/errors.ts'
import type { PairedProtocol } from '../paired-protocol.ts'
import { scanObject } from '../../src/protocols/json/json-scan.ts'
import { upstreamOf } from '../conversation.ts'
import { GRAMMARS } from '../conversion/grammar.ts'
import { CHECKERS, CODECS, convertReply, convertStream, OTHER } from '../conversion/road.ts'
import {
  contentFrame,
  DONE_FRAME,
  finishFrame,
  roleFrame,
  usageFrame,
  usageText,
} from '../equipment/behaviour.ts'
import { chunkFrame, streamedChat, wholeChat } from '../equipment/chat-behaviour.ts'
import { eventFrame, messageFrames, wholeMessage } from '../equipment/messages-behaviour.ts'
import { choppedAtRandom } from '../generators/chunks.ts'
import { ourEvents, theirEvents, unmarked } from './event-streams.ts'
import type { Grown, Target } from './target.ts'
import { TEXTS } from './texts.ts'
import { INHERITED, VALUES } from './values.ts'

const MARKS = ['{', '}', '[', ']', ':', ',', '"', '\\', '\n', '\r', ' ', '\\u0000', '\\ud800', '9'.repeat(30)]
const NAMES = [
  'model',
  'messages',
  'role',
  'content',
  'type',
  'text',
  'tools',
  'choices',
  'delta',
  'index',
  'usage',
  'tool_calls',
  'function',
  'arguments',
  'input',
  'source',
  ...INHERITED,
].map((name) => `"${name}":`)
const JSON_TOKENS = [...MARKS, ...NAMES, ...VALUES]
const SSE_TOKENS = [
  ...JSON_TOKENS,
  '\n\n',
  'data: ',
  'event: ',
  ': c\n',
  'data: [DONE]\n\n',
  '\ufeff',
  'event: error\n',
]

const CALLS = [{ id: 'c', name: 'f', input: '{"a":[1,2.50]}' }]
const BLOCKS = [
  { thinking: 'hm', signature: 's' },
  { text: 'Zoë 😀' },
  { id: 't', name: 'f', input: '{"a":1}' },
]
const STREAMS: Record<PairedProtocol, readonly string[]> = {
  chat: [
    [roleFrame(), contentFrame('Zoë 😀'), finishFrame(), usageFrame(usageText(10, 5)), DONE_FRAME].join(''),
    (streamedChat({ text: 'hello', thoughts: 'hm', calls: CALLS }).frames ?? []).join(''),
  ],
  messages: [messageFrames(BLOCKS).join(''), messageFrames([{ text: 'hello' }]).join('')],
}
const REPLIES: Record<PairedProtocol, readonly string[]> = {
  chat: [String(wholeChat({ text: 'hello', thoughts: 'hm', calls: CALLS }).body)],
  messages: [String(wholeMessage(BLOCKS).body)],
}
const REQUESTS: Record<PairedProtocol, readonly string[]> = {
  chat: [
    '{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"stop":["a"],"temperature":1,"reasoning_effort":"low"}',
  ],
  messages: [
    '{"model":"m","max_tokens":9,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"},{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}],"thinking":{"type":"enabled","budget_tokens":1}}',
  ],
}

const TURNS: Record<PairedProtocol, readonly string[]> = {
  chat: [
    '{"role":"user","content":"a"}',
    '{"role":"system","content":"a"}',
    '{"role":"tool","tool_call_id":"c","content":"r"}',
    '{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}',
  ],
  messages: [
    '{"role":"user","content":"a"}',
    '{"role":"assistant","content":"a"}',
    '{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}',
    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}',
  ],
}

const WITHIN: readonly Grown[] = [
  ...['a', '\\"', '\\\\', '\\u0041', 'é', '😀', '\\n'].map(
    (piece): Grown => ['{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"', piece, '"}]}'],
  ),
  ...['{"type":"text","text":"a"}', '{"type":"hologram"}'].map(
    (part): Grown => [
      '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[',
      `${part},`,
      `${part}]}]}`,
    ],
  ),
  ...['1', '{}', '[]', '""', '{"a":1}', ' ', '1.5e-7'].map(
    (piece): Grown => [
      '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"}],"x":[',
      `${piece},`,
      '1]}',
    ],
  ),
]

const grownRequests = (protocol: PairedProtocol): Grown[] => [
  ...WITHIN,
  ...TURNS[protocol].map(
    (turn): Grown => [
      '{"model":"m","max_tokens":1,"messages":[',
      `${turn},`,
      '{"role":"user","content":"z"}]}',
    ],
  ),
  [
    '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"}],"tools":[',
    '{"type":"function","name":"f","input_schema":{},"function":{"name":"f"}},',
    '{"type":"function","name":"f","input_schema":{},"function":{"name":"f"}}]}',
  ],
]

/** A part of a stream that is repeated: text, a piece of a call's input, a whole block. */
const GROWN_STREAMS: Record<PairedProtocol, readonly Grown[]> = {
  chat: [
    [roleFrame(), contentFrame('a'), `${finishFrame()}${DONE_FRAME}`],
    [roleFrame(), contentFrame('é😀"\\'), `${finishFrame()}${DONE_FRAME}`],
    [
      roleFrame() +
        chunkFrame({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{"a":"' } }] }),
      chunkFrame({ tool_calls: [{ index: 0, function: { arguments: 'x' } }] }),
      `${finishFrame()}${DONE_FRAME}`,
    ],
    [
      roleFrame() +
        chunkFrame({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '[1' } }] }),
      chunkFrame({ tool_calls: [{ index: 0, function: { arguments: ',[' } }] }),
      `${finishFrame()}${DONE_FRAME}`,
    ],
    [
      roleFrame() +
        chunkFrame({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{' } }] }),
      chunkFrame({ tool_calls: [{ index: 1, id: 'd', function: { name: 'f', arguments: 'x' } }] }),
      `${finishFrame()}${DONE_FRAME}`,
    ],
    [
      roleFrame(),
      contentFrame('a') + chunkFrame({ reasoning_content: 'b' }),
      `${finishFrame()}${DONE_FRAME}`,
    ],
  ],
  messages: [
    [
      messageFrames([{ text: 'a' }])
        .slice(0, 2)
        .join(''),
      eventFrame('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'a' } }),
      messageFrames([{ text: 'a' }])
        .slice(-3)
        .join(''),
    ],
    [
      messageFrames([])[0] ?? '',
      messageFrames([{ text: 'a' }])
        .slice(1, -2)
        .join(''),
      messageFrames([]).slice(-2).join(''),
    ],
    [
      messageFrames([{ text: 'a' }])[0] ?? '',
      eventFrame('content_block_start', {
        index: 0,
        content_block: { type: 'tool_use', id: 't', name: 'f', input: {} },
      }),
      messageFrames([]).slice(-2).join(''),
    ],
  ],
}

const GROWN_REPLIES: Record<PairedProtocol, readonly Grown[]> = {
  chat: [
    [
      '{"choices":[{"index":0,"message":{"role":"assistant","content":"',
      'a\\n',
      '"},"finish_reason":"stop"}]}',
    ],
    [
      '{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[',
      '{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},',
      '{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}',
    ],
  ],
  messages: [
    ['{"id":"m","type":"message","content":[', '{"type":"text","text":"a"},', '{"type":"text","text":"z"}]}'],
    [
      '{"id":"m","type":"message","content":[',
      '{"type":"tool_use","id":"t","name":"f","input":{"a":1}},',
      '{"type":"text","text":"z"}]}',
    ],
  ],
}

const decoder = (protocol: PairedProtocol): Target => ({
  seeds: REQUESTS[protocol],
  grown: grownRequests(protocol),
  tokens: JSON_TOKENS,
  run(input) {
    const scan = scanObject(input)
    CHECKERS[protocol](scan)
    const dropped = new Set<string>()
    const conversation = CODECS[protocol].decodeRequest(scan, dropped)
    for (const name of dropped) if (!/^[a-z_.]{1,40}$/.test(name)) throw new Error(`dropped ${name}`)
    CODECS[OTHER[protocol]].encodeRequest(conversation, upstreamOf('m'), dropped)
  },
})

const stream = (from: PairedProtocol): Target => ({
  seeds: STREAMS[from],
  grown: GROWN_STREAMS[from],
  tokens: SSE_TOKENS,
  run(input, random) {
    const { writes, complete } = convertStream(from, choppedAtRandom(input, 40, random))
    GRAMMARS[OTHER[from]](writes.join(''), complete)
    if (convertStream(from, [input]).writes.join('') !== writes.join(''))
      throw new Error('it depends on chunks')
  },
})

const reply = (from: PairedProtocol): Target => ({
  seeds: REPLIES[from],
  grown: GROWN_REPLIES[from],
  tokens: JSON_TOKENS,
  run: (input) => void JSON.parse(convertReply(from, input).toString()),
})

const PARSERS: Readonly<Record<string, Target>> = {
  'the event stream parser': {
    seeds: [...STREAMS.chat, ...STREAMS.messages],
    grown: [...GROWN_STREAMS.chat, ['data: ', 'x', '\n\n'], ['data: ', '\ndata: x', '\n\n']],
    tokens: SSE_TOKENS,
    run(input, random) {
      const bytes = unmarked(input)
      const ours = JSON.stringify(ourEvents(choppedAtRandom(bytes, 20, random)))
      // The reference parser takes quadratic time for carriage returns.
      if (bytes.length < 100_000 && ours !== JSON.stringify(theirEvents(bytes)))
        throw new Error('other events')
    },
  },
  'the scan of JSON': {
    seeds: [...REQUESTS.chat, ...REQUESTS.messages],
    grown: WITHIN,
    tokens: JSON_TOKENS,
    run(input) {
      const { members } = scanObject(input)
      const parsed = JSON.parse(input.toString()) as object
      if (Object.keys(parsed).length !== members.size) throw new Error('other members')
    },
  },
  'requests of chat': decoder('chat'),
  'requests of messages': decoder('messages'),
  'streams of chat': stream('chat'),
  'streams of messages': stream('messages'),
  'answers of chat': reply('chat'),
  'answers of messages': reply('messages'),
}

/** Every target, by name. */
export const TARGETS: Readonly<Record<string, Target>> = { ...PARSERS, ...TEXTS }

/** Upper limit for any input, in milliseconds. */
const SLOW_MS = 1000

/** Mutates one of the target's seeds: cut, spliced, with tokens and bytes inserted. */
function bred({ seeds, tokens }: Target, random: () => number): Buffer {
  const upTo = (end: number): number => Math.floor(random() * end)
  const pick = (texts: readonly string[]): string => texts[upTo(texts.length)] ?? ''
  let bytes: Buffer = Buffer.from(pick(seeds))
  for (let changes = 1 + upTo(6); changes > 0; changes--) {
    const [at, to] = [upTo(bytes.length + 1), upTo(bytes.length + 1)]
    const [from, until] = at < to ? [at, Math.min(to, at + 60)] : [at, at + upTo(8)]
    const middles = [
      Buffer.from(pick(tokens)),
      Buffer.concat([bytes.subarray(from, until), bytes.subarray(from, until)]),
      Buffer.from(pick(seeds)).subarray(from, until),
      Buffer.of(upTo(256)),
      Buffer.alloc(0),
    ]
    const middle = middles[upTo(middles.length)] ?? Buffer.alloc(0)
    bytes = Buffer.concat([bytes.subarray(0, from), middle, bytes.subarray(random() < 0.3 ? from : until)])
  }
  return bytes
}

/**
 * Runs a target on mutated inputs for a while. Returns the number of runs, or fails with the input that broke
 * the target.
 */
export function campaign(target: Target, random: () => number, forMs: number): number {
  const end = performance.now() + forMs
  let runs = 0
  for (; performance.now() < end; runs++) {
    const input = bred(target, random)
    try {
      // Repeats the measurement, because on a busy machine any input may be slow once.
      if ([1, 2, 3].every(() => millisecondsOf(target, input, random) > SLOW_MS))
        throw new Error('it is slow')
    } catch (cause) {
      throw new Error(`found after ${runs} runs: ${JSON.stringify(input.toString('latin1'))}`, { cause })
    }
  }
  return runs
}

/** Runs the target. Returns the milliseconds; a refusal is no fault. */
function millisecondsOf(target: Target, input: Buffer, random: () => number): number {
  const began = performance.now()
  try {
    target.run(input, random)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
  }
  return performance.now() - began
}
