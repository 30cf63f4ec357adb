import type { PairedProtocol } from '../../samples/paired-protocol.ts'
import type { RepeatedPiece } from '../target.ts'

/** Requests with most of the fields that a request may have. */
export const REQUESTS: Record<PairedProtocol, readonly string[]> = {
  chat: [
    '{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"stop":["a"],"temperature":1,"reasoning_effort":"low"}',
  ],
  messages: [
    '{"model":"m","max_tokens":9,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"},{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}],"thinking":{"type":"enabled","budget_tokens":1}}',
  ],
}

/** Requests with a long text or list. */
export const LONG_REQUESTS: readonly RepeatedPiece[] = [
  ...['a', '\\"', '\\\\', '\\u0041', 'é', '😀', '\\n'].map(
    (piece): RepeatedPiece => [
      '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"',
      piece,
      '"}]}',
    ],
  ),
  ...['{"type":"text","text":"a"}', '{"type":"hologram"}'].map(
    (part): RepeatedPiece => [
      '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[',
      `${part},`,
      `${part}]}]}`,
    ],
  ),
  ...['1', '{}', '[]', '""', '{"a":1}', ' ', '1.5e-7'].map(
    (piece): RepeatedPiece => [
      '{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"}],"x":[',
      `${piece},`,
      '1]}',
    ],
  ),
]
