import { expect, test } from 'vitest'
import { z } from 'zod'
import { sectionSchema } from './fields.ts'

test('a known key is suggested for the first 100 unknown keys of a mapping, as it takes long', () => {
  const given = Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`retries${index}`, 1]))
  const messages = sectionSchema({ retries: z.unknown().optional() })
    .safeParse(given)
    .error?.issues[0]?.message.split('\n')
  expect(messages?.slice(98)).toEqual([
    'unknown key, expected retries',
    'unknown key, expected retries',
    'unknown key, expected one of retries',
  ])
})
