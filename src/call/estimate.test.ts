import { expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import type { Override } from '../domain/records/channel.ts'
import type { ProtocolName } from '@sluice/wire/protocols'
import { editedBounds } from './estimate.ts'

const bounds = (
  protocol: ProtocolName,
  { set = {}, defaults = {}, remove = [] }: Edits,
  outputMaximum: number | undefined,
  choices = 1,
) => {
  const textsOf = (values: object) =>
    new Map(Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)]))
  const override = { set: textsOf(set), default: textsOf(defaults), remove }
  const channel = channelOf({ protocol: [protocol], override })
  const { output, named } = editedBounds({
    channel,
    outputMaximum,
    choices,
    prepare: () => {
      throw new Error('not asked')
    },
  })
  return [output, named]
}

interface Edits {
  readonly set?: object
  readonly defaults?: object
  readonly remove?: Override['remove']
}

test.each<[ProtocolName, Edits, number | undefined, number | undefined, boolean]>([
  ['messages', {}, 9, 9, true],
  ['messages', { set: { max_tokens: 5 } }, 9, 5, true],
  ['messages', { defaults: { max_tokens: 5 } }, 9, 9, true],
  ['messages', { defaults: { max_tokens: 5 } }, undefined, 5, true],
  ['messages', { remove: ['max_tokens'] }, 9, undefined, false],
  ['responses', { set: { max_output_tokens: 50 } }, undefined, 50, true],
  ['responses', { set: { max_output_tokens: null } }, 9, undefined, false],
  ['gemini', { set: { generationConfig: { maxOutputTokens: 7 } } }, 9, 7, true],
  ['gemini', { set: { generationConfig: { maxOutputTokens: 7, candidateCount: 3 } } }, 9, 21, true],
  ['gemini', { set: { generationConfig: { temperature: 1 } } }, 9, undefined, false],
  // The client may have used either name.
  ['chat', { set: { max_completion_tokens: 5 } }, 9, 9, true],
  ['chat', { set: { max_tokens: 50 } }, 9, 50, true],
  ['chat', { set: { max_tokens: 50 } }, undefined, 50, true],
  ['chat', { remove: ['max_tokens'] }, 9, 9, false],
  ['chat', { set: { temperature: 1 } }, 9, 9, true],
])(
  "the upper bound of a call's output tokens follows from the request: %s with %j and a maximum of %s: %s tokens",
  (protocol, edits, stated, output, named) => {
    expect(bounds(protocol, edits, stated)).toEqual([output, named])
  },
)

test("the upper bound of a call's output tokens is the requested maximum times the number of choices", () => {
  expect(bounds('chat', { set: { max_tokens: 5 } }, undefined, 3)).toEqual([15, true])
})
