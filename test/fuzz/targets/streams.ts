import type { PairedProtocol } from '../../samples/paired-protocol.ts'
import {
  contentFrame,
  DONE_FRAME,
  finishFrame,
  roleFrame,
  usageFrame,
  usageText,
} from '../../fixtures/behaviour.ts'
import { chunkFrame, streamedChat } from '../../fixtures/chat-behaviour.ts'
import { eventFrame, messageFrames } from '../../fixtures/messages-behaviour.ts'
import type { RepeatedPiece } from '../target.ts'

/** Calls of a sample, and blocks of one. */
export const CALLS = [{ id: 'c', name: 'f', input: '{"a":[1,2.50]}' }]
/** Blocks of a message: thinking, text, and a call. */
export const BLOCKS = [
  { thinking: 'hm', signature: 's' },
  { text: 'Zoë 😀' },
  { id: 't', name: 'f', input: '{"a":1}' },
]

/** Streams in the form that upstreams send. */
export const STREAMS: Record<PairedProtocol, readonly string[]> = {
  chat: [
    [roleFrame(), contentFrame('Zoë 😀'), finishFrame(), usageFrame(usageText(10, 5)), DONE_FRAME].join(''),
    (streamedChat({ text: 'hello', thoughts: 'hm', calls: CALLS }).frames ?? []).join(''),
  ],
  messages: [messageFrames(BLOCKS).join(''), messageFrames([{ text: 'hello' }]).join('')],
}

/** Streams with one repeated frame: text, a piece of a call's input, a whole block. */
export const REPEATED_STREAMS: Record<PairedProtocol, readonly RepeatedPiece[]> = {
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
    [
      'event: message_start\ndata: {"type":"message_start","message":{"id":"m","content":[',
      '{"type":"tool_use","id":"t","name":"f","input":{"a":1}},',
      `{"type":"text","text":"z"}]}}\n\n${messageFrames([]).slice(-2).join('')}`,
    ],
  ],
}
