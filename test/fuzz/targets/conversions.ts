import type { PairedProtocol } from '../../samples/paired-protocol.ts'
import { scanObject } from '@sluice/wire/json/json-scan'
import { upstreamOf } from '../../samples/conversation.ts'
import { GRAMMARS } from '../../conversion/grammar.ts'
import { CHECKERS, CODECS, convertReply, convertStream, OTHER } from '../../conversion/convert.ts'
import { wholeChat } from '../../fixtures/chat-behaviour.ts'
import { wholeMessage } from '../../fixtures/messages-behaviour.ts'
import { choppedAtRandom } from '../../generators/chunks.ts'
import type { RepeatedPiece, Target } from '../target.ts'
import { REQUESTS, LONG_REQUESTS } from './samples.ts'
import { BLOCKS, CALLS, REPEATED_STREAMS, STREAMS } from './streams.ts'
import { JSON_TOKENS, SSE_TOKENS } from './tokens.ts'

const REPLIES: Record<PairedProtocol, readonly string[]> = {
  chat: [String(wholeChat({ text: 'hello', thoughts: 'hm', calls: CALLS }).body)],
  messages: [String(wholeMessage(BLOCKS).body)],
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

/** Parts of a tool's schema, all of which apply. */
const SCHEMA_PARTS = [
  '{"required":["a"]}',
  '{"properties":{"a":{"type":"string"},"b":{}},"additionalProperties":false}',
  '{"properties":{"a":{"const":1}}},{"properties":{"a":{"const":2}}}',
  '{"enum":["a","b"]},{"enum":["c"]}',
  '{"allOf":[{"items":{"minItems":1}},{"items":{"minItems":2}}]}',
  '{"description":"a"}',
]

const repeatedRequests = (protocol: PairedProtocol): RepeatedPiece[] => [
  ...LONG_REQUESTS,
  ...TURNS[protocol].map(
    (turn): RepeatedPiece => [
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
  ...SCHEMA_PARTS.map(
    (part): RepeatedPiece => [
      '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","name":"f","function":{"name":"f","parameters":{"allOf":[',
      `${part},`,
      `${part}]}},"input_schema":{}}]}`,
    ],
  ),
]

const REPEATED_REPLIES: Record<PairedProtocol, readonly RepeatedPiece[]> = {
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
    [
      '{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[',
      '{"id":"c","type":"function","function":{"name":"f","arguments":{"a":1}}},',
      '{"id":"c","type":"function","function":{"name":"f","arguments":{}}}]},"finish_reason":"tool_calls"}]}',
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
  repeated: repeatedRequests(protocol),
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
  repeated: REPEATED_STREAMS[from],
  tokens: SSE_TOKENS,
  run(input, random) {
    const { writes, complete } = convertStream(from, choppedAtRandom(input, 40, random))
    GRAMMARS[OTHER[from]](writes.join(''), complete)
    if (convertStream(from, [input]).writes.join('') !== writes.join(''))
      throw new Error('the result depends on the chunks')
  },
})

const reply = (from: PairedProtocol): Target => ({
  seeds: REPLIES[from],
  repeated: REPEATED_REPLIES[from],
  tokens: JSON_TOKENS,
  run: (input) => void JSON.parse(convertReply(from, input).toString()),
})

/** Readers and converters of client requests, and of upstream replies and streams. */
export const CONVERSIONS = {
  'chat-requests': decoder('chat'),
  'messages-requests': decoder('messages'),
  'chat-streams': stream('chat'),
  'messages-streams': stream('messages'),
  'chat-replies': reply('chat'),
  'messages-replies': reply('messages'),
} satisfies Readonly<Record<string, Target>>
