import { expect, test } from 'vitest'
import { type AnswerHead, AnswerRecorder } from './answer-recorder.ts'

test('a header that is set before the head of an answer is recorded with the head', () => {
  const heads: AnswerHead[] = []
  const recorder = new AnswerRecorder({
    begin: (head) => void heads.push(head),
    write: () => true,
    complete() {},
    breakOff() {},
    needsUpstream() {},
    keepAlive() {},
  })
  recorder.setHeader('x-vowels', '3')
  recorder.writeHead(200, { 'content-type': 'application/json' })
  expect(heads).toEqual([{ status: 200, headers: { 'x-vowels': '3', 'content-type': 'application/json' } }])
})
