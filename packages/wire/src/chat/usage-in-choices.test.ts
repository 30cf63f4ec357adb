import { expect, test } from 'vitest'
import { usageInChatReply, type UsageOfChoices } from './usage.ts'

test.each([
  ['after a later one', [{ index: 1 }, {}]],
  ['before the first one', [{}, { index: 0 }]],
  ['between two', [{ index: 0 }, {}, { index: 1 }]],
  ['with an index that is none', [{ index: null }, { index: 'b' }, { index: 0 }]],
])('a choice without an index counts beside those with one: %s', (_, places) => {
  const choices = places.map((place, at) => ({
    ...place,
    usage: { prompt_tokens: 100, completion_tokens: 10 ** at },
  }))
  const output = choices.length === 2 ? 11 : 111
  expect(usageInChatReply({ choices })).toMatchObject({ input: 100, output })
  // Each chunk of a stream may repeat what the last one stated.
  const known: UsageOfChoices = new Map()
  usageInChatReply({ choices }, known)
  expect(usageInChatReply({ choices }, known)).toMatchObject({ output })
})
