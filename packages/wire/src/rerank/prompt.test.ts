import { expect, test } from 'vitest'
import { promptTextOf } from '../prompt-text.ts'
import { RERANK_PROMPT } from './request.ts'

test('the query and the texts of each document are counted, once', () => {
  const body = {
    model: 'm',
    query: 'what "is" this?',
    documents: ['one\n', { title: 'its title', text: 'two — 2' }, 'three'],
    instruction: 'rank by age',
    top_n: 2,
  }
  expect(promptTextOf(Buffer.from(JSON.stringify(body)), RERANK_PROMPT, '')).toEqual({
    text: 'what "is" this?\ninstruction\nrank by age\none\n\ntitle\nits title\ntwo — 2\nthree',
    extraTokens: 0,
    chargedExtraTokens: 0,
  })
})
