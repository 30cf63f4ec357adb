import { expect, test } from 'vitest'
import { campaign, TARGETS } from '../corpus/campaign.ts'
import { randomFrom } from '../equipment/random.ts'

/** What is new each night has its beginnings here, always the same. */
const SEED = 1

test.each(Object.keys(TARGETS))('no input that is bred for a fifth of a second breaks %s', (name) => {
  const target = TARGETS[name]
  expect(target && campaign(target, randomFrom(SEED), 200)).toBeGreaterThan(0)
})
