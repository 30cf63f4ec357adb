import { expect, test } from 'vitest'
import { promptText } from './prompt.ts'

test('what is counted is the query and the text of each document, once', () => {
  const body = {
    model: 'm',
    query: 'what "is" this?',
    documents: ['one\n', { title: 'left out', text: 'two — 2' }, 'three'],
    instruction: 'left out',
  }
  expect(promptText(Buffer.from(JSON.stringify(body)))).toEqual({
    text: 'what "is" this?\none\n\ntwo — 2\nthree',
    extraTokens: 0,
  })
})
