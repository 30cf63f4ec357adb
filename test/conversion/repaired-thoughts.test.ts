import { SIGNATURE_ENVELOPE_PREFIX } from '@sluice/wire/signature-envelope'
import { repairWhole, StreamRepair } from '@sluice/wire/repair'
import { expect, test } from 'vitest'
import { ALL_CODECS } from './convert-through.ts'

// With an envelope, the thought would not be sent back to the provider, which accepts it without a signature.

const identity = { id: 'new', created: 1 }
const summary = [{ type: 'summary_text', text: 'hm' }]
const reasoning = { type: 'reasoning', id: 'rs_1', summary }
const RESPONSE = { id: 'resp_1', object: 'response', created_at: 7, model: 'm', status: 'completed' }

test.each<['messages' | 'responses', object, object]>([
  [
    'messages',
    {
      content: [
        { type: 'thinking', thinking: 'hm' },
        { type: 'text', text: ['Hi'] },
      ],
      usage: {},
    },
    { content: [{ type: 'thinking', thinking: 'hm', signature: '' }, { text: 'Hi' }] },
  ],
  ['responses', { ...RESPONSE, status: null, output: [reasoning] }, { output: [reasoning] }],
])('a repaired whole answer keeps a thought without a signature: %s', (name, given, mended) => {
  const codec = ALL_CODECS[name]
  const { bytes, isRepaired } = repairWhole({ codec, name }, Buffer.from(JSON.stringify(given)), identity)
  expect(isRepaired).toBe(true)
  expect(JSON.parse(bytes.toString())).toMatchObject(mended)
  expect(bytes.toString()).not.toContain(SIGNATURE_ENVELOPE_PREFIX)
})

test.each<['messages' | 'responses', readonly object[], string]>([
  [
    'messages',
    [
      {
        type: 'message_start',
        message: { id: 'msg_1', model: 'm', content: [], usage: { input_tokens: 1 } },
      },
      { type: 'content_block_start', index: 1, content_block: { type: 'thinking', thinking: '' } },
      { type: 'content_block_delta', index: 1, delta: { type: 'thinking_delta', thinking: 'hm' } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } },
      { type: 'message_stop' },
    ],
    '"thinking":"hm"',
  ],
  [
    'responses',
    [
      { type: 'response.reasoning_summary_text.delta', output_index: 0, summary_index: 0, delta: 'hm' },
      { type: 'response.completed', response: { ...RESPONSE, output: [], usage: null } },
    ],
    JSON.stringify(summary),
  ],
])('a repaired stream keeps a thought without a signature: %s', (protocol, events, said) => {
  const repair = new StreamRepair({ codec: ALL_CODECS[protocol], protocol, choices: 1, identity })
  const frames = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  const text = repair.push(Buffer.from(frames)).toString() + repair.end().toString()
  repair.release()
  expect(text).toContain(said)
  expect(text).not.toContain(SIGNATURE_ENVELOPE_PREFIX)
})
