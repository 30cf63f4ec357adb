import fc from 'fast-check'
import { expect, test } from 'vitest'
import { comparable } from '../../../test/conversion/comparable-reply.ts'
import { answers, messagesFrames, messagesReply } from '../../../test/generators/answers.ts'
import { AnswerToolDecoder, answerToolCallAsText } from './answer-tool.ts'
import type { Reply } from './reply.ts'
import { messagesCodec } from './messages/index.ts'
import { foldReply } from '../../../test/conversion/fold-reply.ts'

const reply: Reply = {
  id: 'msg_1',
  model: 'm',
  parts: [
    { kind: 'thinking', text: 'hm' },
    { kind: 'tool-call', id: 'a', name: 'answer', input: '{"2":1,"1":2}' },
    { kind: 'tool-call', id: 'b', name: 'other', input: '{}' },
  ],
  stop: { reason: 'tool-calls' },
  usage: undefined,
}

test('the input of a forced answer tool becomes the text of the answer byte for byte, and the stop reason becomes end', () => {
  expect(answerToolCallAsText(reply, 'answer')).toEqual({
    ...reply,
    parts: [reply.parts[0], { kind: 'text', text: '{"2":1,"1":2}' }, reply.parts[2]],
    stop: { reason: 'end' },
  })
})

test('an answer given through a forced tool keeps a stop reason such as length or refusal', () => {
  for (const reason of ['length', 'refusal', 'stop-sequence', 'pause'] as const)
    expect(answerToolCallAsText({ ...reply, stop: { reason } }, 'answer').stop).toEqual({ reason })
})

test('an answer given through a forced tool has the same content when it is streamed as when it is whole', () => {
  fc.assert(
    fc.property(answers(), (answer) => {
      const segments = answer.segments.map((segment, i) =>
        segment.kind === 'tool' ? { ...segment, name: i % 2 ? 'answer' : 'other' } : segment,
      )
      const said = { ...answer, segments }
      const decoder = new AnswerToolDecoder(messagesCodec.streamDecoder(), 'answer')
      const stream = Buffer.from(messagesFrames(said).join(''))
      const folded = foldReply([...decoder.push(stream), ...decoder.end()])
      const whole = messagesCodec.decodeReply(Buffer.from(messagesReply(said)))
      expect(comparable(folded)).toEqual(comparable(answerToolCallAsText(whole, 'answer')))
    }),
  )
})
